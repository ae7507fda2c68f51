//! Tests of requests.

use super::*;

fn refused(line: &str) -> String {
    Request::parse(line.as_bytes()).unwrap_err().0
}

#[test]
fn a_request_has_a_command_and_pairs() {
    let request = Request::parse(b"pirn 1 dump threads=all max=10 empty=").unwrap();
    assert_eq!(request.command, "dump");
    assert_eq!(request.text("threads"), Some("all"));
    assert_eq!(request.text("empty"), Some(""));
    assert_eq!(request.text("all"), None);
    assert_eq!(request.number("max"), Ok(Some(10)));
    assert_eq!(request.number("min"), Ok(None));
    assert_eq!(request.check_keys(&["max", "threads", "empty"]), Ok(()));
    let unknown = request.check_keys(&["max", "empty"]).unwrap_err();
    assert_eq!(unknown.0, "dump has no threads");
}

#[test]
fn anything_else_is_refused_with_a_reason() {
    assert_eq!(refused(""), "this is no request of pirn's tools");
    assert_eq!(
        refused("GET / HTTP/1.1"),
        "this is no request of pirn's tools"
    );
    assert_eq!(
        refused("pirn 2 dump"),
        "this process speaks version 1 of the protocol, the tool version \"2\""
    );
    assert_eq!(refused("pirn 1"), "the request has no command");
    assert_eq!(refused("pirn 1 dump all"), "\"all\" is not key=value");
    assert_eq!(refused("pirn 1 dump a=1 a=2"), "a is there twice");
    assert_eq!(
        Request::parse(b"pirn \xff").unwrap_err().0,
        "the request is not text"
    );
    for bad in ["x", "", "-1", "+1", "1e3", "99999999999999999999"] {
        let line = format!("pirn 1 dump max={bad}");
        let request = Request::parse(line.as_bytes()).unwrap();
        assert_eq!(
            request.number("max").unwrap_err().0,
            format!("max is {bad:?}, not a number")
        );
    }
}
