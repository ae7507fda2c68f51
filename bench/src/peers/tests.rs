use super::*;

#[test]
fn an_unknown_peer_is_refused_with_a_list() {
    let error = chosen(&["rust".into()]).err().unwrap().to_string();
    assert!(
        error.contains("\"rust\"") && error.contains("jdk-virtual"),
        "{error}"
    );
    assert_eq!(chosen(&["go".into()]).unwrap()[0].name, "go");
    assert_eq!(chosen(&[]).unwrap().len(), KNOWN.len());
}

#[test]
fn a_missing_tool_is_named() {
    let error = run(&mut Command::new("no-such-tool-anywhere"), "nst").unwrap_err();
    assert_eq!(error, "nst is not installed");
    let error = run(
        Command::new("sh").args(["-c", "echo why >&2; exit 3"]),
        "sh",
    )
    .unwrap_err();
    assert!(
        error.contains("exit status: 3") && error.contains("why"),
        "{error}"
    );
}
