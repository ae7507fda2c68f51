use super::*;

fn parse(text: &str) -> Result<Option<Request>, Status> {
    Request::parse(text.as_bytes())
}

fn with(header: &str) -> Result<Option<Request>, Status> {
    parse(&format!("GET / HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n"))
}

#[test]
fn a_head_is_read() {
    let request = with("Origin: http://x \r\nSec-Fetch-Site: none\r\nContent-Length: 0");
    let request = request.unwrap().unwrap();
    assert_eq!((&*request.method, &*request.path), ("GET", "/"));
    assert_eq!(
        (&*request.host, request.origin.as_deref()),
        ("x", Some("http://x"))
    );
    assert_eq!(request.fetch_site.as_deref(), Some("none"));
    assert_eq!(parse("GET / HTTP/1.1\r\nHost: x\r\n"), Ok(None));
    assert_eq!(parse(""), Ok(None));
}

#[test]
fn what_has_two_meanings_is_refused() {
    for header in [
        "Host: y",
        "Origin: http://x\r\nOrigin: http://y",
        "Content-Length: 5",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Host : x",
        " folded",
    ] {
        assert_eq!(with(header), Err(Status::BadRequest), "{header:?}");
    }
    assert_eq!(parse("GET / HTTP/1.1\r\n\r\n"), Err(Status::BadRequest));
    assert_eq!(parse("nonsense\0\r\n\r\n"), Err(Status::BadRequest));
    let many = "A: b\r\n".repeat(MAX_HEADERS);
    assert_eq!(with(many.trim_end()), Err(Status::HeadTooLarge));
}

#[test]
fn queries_are_decoded_once() {
    let query = Query::parse("where=name%3da%20b%2Bc+d&max=12&x").unwrap();
    assert_eq!(query.text("where"), "name=a b+c d");
    assert_eq!(
        (query.number("max"), query.number("where")),
        (Some(12), None)
    );
    assert_eq!((query.text("x"), query.text("y")), ("", ""));
    assert_eq!(Query::parse("a=%2541").unwrap().text("a"), "%41");
    for wrong in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
        assert_eq!(Query::parse(wrong), None, "{wrong}");
    }
    assert_eq!(
        parse("GET /?a=%ff HTTP/1.1\r\nHost: x\r\n\r\n"),
        Err(Status::BadRequest)
    );
}
