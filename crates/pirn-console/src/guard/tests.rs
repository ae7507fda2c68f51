use super::*;

/// A guard, and a request that it lets in.
fn pass(path: &str) -> (Guard, Asked) {
    let token = Token::random().unwrap();
    let request = Asked {
        method: "GET".into(),
        path: format!("/{}/{path}", token.text()),
        host: "127.0.0.1:8080".into(),
        ..Asked::default()
    };
    (
        Guard::new(token, "127.0.0.1:8080".parse().unwrap()),
        request,
    )
}

#[test]
fn a_page_of_the_console_may_ask() {
    let (guard, mut request) = pass("groups");
    assert_eq!(guard.check(&request), Ok("groups"));
    request.origin = Some("http://127.0.0.1:8080".into());
    request.fetch_site = Some("same-origin".into());
    assert_eq!(guard.check(&request), Ok("groups"));
    request.host = "localhost:8080".into();
    assert_eq!(
        guard.check(&request),
        Err(Status::FORBIDDEN),
        "its origin is another"
    );
    request.origin = Some("http://localhost:8080".into());
    assert_eq!(guard.check(&request), Ok("groups"));
}

#[test]
fn another_host_is_refused() {
    let hosts = [
        "",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:8081",
        "127.0.0.1:80801",
        "127.0.0.1:8080.evil.example",
        "evil.example:8080",
        "LOCALHOST:8080 ",
        "0.0.0.0:8080",
    ];
    for host in hosts {
        let (guard, mut request) = pass("");
        request.host = host.into();
        assert_eq!(guard.check(&request), Err(Status::FORBIDDEN), "{host:?}");
    }
}

#[test]
fn another_origin_is_refused() {
    for origin in [
        "null",
        "",
        "http://evil.example",
        "https://127.0.0.1:8080",
        "http://127.0.0.1:8081",
        "http://127.0.0.1:8080.evil.example",
    ] {
        let (guard, mut request) = pass("");
        request.origin = Some(origin.into());
        assert_eq!(guard.check(&request), Err(Status::FORBIDDEN), "{origin:?}");
    }
    for site in ["cross-site", "same-site"] {
        let (guard, mut request) = pass("groups");
        request.fetch_site = Some(site.into());
        request.fetch_mode = Some("navigate".into());
        assert_eq!(guard.check(&request), Err(Status::FORBIDDEN), "{site}");
    }
}

#[test]
fn a_link_opens_the_page_and_nothing_else() {
    let (guard, mut request) = pass("");
    request.fetch_site = Some("cross-site".into());
    request.fetch_mode = Some("navigate".into());
    assert_eq!(guard.check(&request), Ok(""));
    request.fetch_mode = Some("no-cors".into());
    assert_eq!(guard.check(&request), Err(Status::FORBIDDEN));
}

#[test]
fn without_the_token_there_is_nothing() {
    let wrong = "0".repeat(32);
    for path in [
        "/",
        "",
        "/groups",
        "//groups",
        &format!("/{wrong}/"),
        "/../etc/passwd",
    ] {
        let (guard, mut request) = pass("");
        request.path = path.into();
        assert_eq!(guard.check(&request), Err(Status::FORBIDDEN), "{path:?}");
    }
    let (guard, mut request) = pass("");
    request.path.truncate(33); // The token without what follows it.
    assert_eq!(guard.check(&request), Err(Status::FORBIDDEN));
}

#[test]
fn it_only_reads() {
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "get"] {
        let (guard, mut request) = pass("groups");
        request.method = method.into();
        assert_eq!(
            guard.check(&request),
            Err(Status::METHOD_NOT_ALLOWED),
            "{method}"
        );
    }
    // Who does not know the token does not learn which methods there are.
    let (guard, mut request) = pass("groups");
    (request.method, request.path) = ("POST".into(), "/x/".into());
    assert_eq!(guard.check(&request), Err(Status::FORBIDDEN));
}
