use super::*;

fn refusal<T>(result: io::Result<T>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_request_has_a_command_and_pairs() {
    let request = Request::parse(b"pirn 1 dump threads=all max=10").unwrap();
    assert_eq!(request.command, "dump");
    assert_eq!(request.text("threads"), Some("all"));
    assert_eq!(request.text("all"), None);
    assert_eq!(request.number("max").unwrap(), Some(10));
    assert_eq!(request.number("min").unwrap(), None);
    assert_eq!(find(&request).unwrap().name, "dump");
    let empty = Request::parse(b"pirn 1 dump empty=").unwrap();
    assert_eq!(empty.text("empty"), Some(""));
    assert_eq!(refusal(find(&empty)), "dump has no empty");
}

#[test]
fn anything_else_is_refused_with_a_reason() {
    let refused = |line: &str| refusal(Request::parse(line.as_bytes()));
    assert_eq!(refused(""), "this is not a request of pirn's tools");
    assert_eq!(
        refused("GET / HTTP/1.1"),
        "this is not a request of pirn's tools"
    );
    assert_eq!(
        refused("pirn 2 dump"),
        "this process speaks version 1 of the protocol, the tool version \"2\""
    );
    assert_eq!(refused("pirn 1"), "the request has no command");
    assert_eq!(refused("pirn 1 dump all"), "\"all\" is not key=value");
    assert_eq!(refused("pirn 1 dump a=1 a=2"), "a is there twice");
    assert_eq!(
        refusal(Request::parse(b"pirn \xff")),
        "the request is not text"
    );
    for bad in ["x", "", "-1", "+1", "1e3", "99999999999999999999"] {
        let line = format!("pirn 1 dump max={bad}");
        let request = Request::parse(line.as_bytes()).unwrap();
        assert_eq!(
            refusal(request.number("max")),
            format!("max is {bad:?}, not a number")
        );
    }
}

#[test]
fn one_large_list_is_made_at_a_time() {
    let large = memory(SMALL + 1, Duration::ZERO).unwrap();
    assert!(large.is_some());
    let said = refusal(memory(SMALL + 1, Duration::ZERO));
    assert!(said.starts_with("busy: another large list"), "{said}");
    assert!(memory(SMALL, Duration::ZERO).unwrap().is_none());
    let waiting = thread::spawn(|| memory(SMALL + 1, Duration::from_secs(600)).is_ok());
    drop(large);
    assert!(waiting.join().unwrap());
    let said = refusal(memory(u64::MAX, Duration::from_secs(600)));
    assert!(said.contains("no memory for this dump"), "{said}");
}
