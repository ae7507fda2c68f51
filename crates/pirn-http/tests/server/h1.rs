//! HTTP/1.1 over connections inside the process and over sockets.

use super::common;
use pirn_http::{Limits, Redirect, Request, Response, Server, Status};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

fn hello() -> Server {
    common()
        .post("/echo", |request: &mut Request| request.bytes())
        .post("/ignore", || Status::OK)
        .get("/users/{id}", |request: &mut Request| {
            request.param::<String>("id")
        })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Sends bytes and returns what comes back, without its dates.
fn answers(bytes: &str) -> String {
    let all = text(&hello().client().send(bytes.as_bytes()));
    let lines = all
        .split_inclusive("\r\n")
        .filter(|line| !line.starts_with("date: "));
    lines.collect()
}

fn status_of(bytes: &str) -> String {
    let all = answers(bytes);
    all.split(' ').nth(1).unwrap_or("none").to_owned()
}

#[test]
fn a_connection_serves_requests_until_it_is_closed() {
    let one = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let last = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\n\
                  content-length: 13\r\n\r\nHello, World!";
    let closing = answer.replace("13\r\n", "13\r\nconnection: close\r\n");
    assert_eq!(
        answers(&[one, one, last, one].concat()),
        [answer, answer, &closing].concat()
    );
}

#[test]
fn old_clients_keep_a_connection_if_they_ask_for_it() {
    assert!(answers("GET / HTTP/1.0\r\n\r\n").contains("connection: close"));
    let kept = "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n";
    let both = answers(&kept.repeat(2));
    assert_eq!(both.matches("connection: keep-alive").count(), 2, "{both}");
    // No chunks: the end is where the connection ends.
    let streamed = answers("GET /stream HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    assert!(
        streamed.ends_with("connection: close\r\n\r\nabc"),
        "{streamed}"
    );
}

#[test]
fn bodies_are_read_in_both_framings() {
    let sized = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    assert!(answers(sized).ends_with("\r\n\r\nhello"));
    let chunked = "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n\
                   3;x=\"y\"\r\nhel\r\n2\r\nlo\r\n0\r\nx-sum: 1\r\n\r\n";
    let next = "GET /users/7%2f8 HTTP/1.1\r\nhost: a\r\n\r\n";
    let both = answers(&[chunked, next].concat());
    assert!(
        both.contains("\r\n\r\nhelloHTTP/1.1 200") && both.ends_with("\r\n\r\n7/8"),
        "{both}"
    );
}

#[test]
fn pieces_that_are_written_together_are_one_chunk() {
    let server = Server::new().get("/", |request: &mut Request| -> io::Result<()> {
        let mut body = request.respond(Response::ok())?;
        for number in 0..3 {
            write!(body, "{number}, {}; ", number + 1)?;
        }
        body.flush()?;
        body.write_all(b"next")?;
        body.write_all(&[b'x'; 20_000])
    });
    let all = text(&server.client().send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
    let (_, body) = all.split_once("\r\n\r\n").unwrap();
    let large = format!("4e20\r\n{}\r\n", "x".repeat(20_000));
    let expected = [
        "12\r\n0, 1; 1, 2; 2, 3; \r\n4\r\nnext\r\n",
        &large,
        "0\r\n\r\n",
    ];
    assert_eq!(body, expected.concat());
}

#[test]
fn a_body_that_ends_early_is_the_clients_fault() {
    for framing in [
        "content-length: 10\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhel",
        "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        let all = answers(&format!("POST /echo HTTP/1.1\r\nhost: a\r\n{framing}"));
        assert!(all.starts_with("HTTP/1.1 400 "), "{framing:?}: {all}");
        assert!(
            all.ends_with("the body ended too early"),
            "{framing:?}: {all}"
        );
        assert!(all.contains("connection: close"), "{framing:?}: {all}");
    }
}

#[test]
fn a_body_that_nobody_reads_is_not_the_next_request() {
    let ignored = "POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: 27\r\n\r\n\
                   GET /users/1 HTTP/1.1\r\n\r\n\r\n";
    let next = "GET /users/2 HTTP/1.1\r\nhost: a\r\n\r\n";
    let both = answers(&[ignored, next].concat());
    assert_eq!(both.matches("HTTP/1.1 200").count(), 2, "{both}");
    assert!(both.ends_with("\r\n\r\n2"), "{both}");
}

#[test]
fn heads_that_another_program_might_read_differently_are_refused() {
    for (bad, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", "400"),
        ("GET / HTTP/1.1\nhost: a\n\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: 1\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\nx : 1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: 1\r\n y\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\n: x\r\n\r\n", "400"),
        ("GET  / HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("GET /a b HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("GET * HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("GET a HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a b\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a:8x\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a:+80\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a:65536\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: [::1]:x\r\n\r\n", "400"),
        ("GET http://a:x/ HTTP/1.0\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: u@a\r\n\r\n", "400"),
        ("G{T / HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("GET / HTTP/2.0\r\nhost: a\r\n\r\n", "505"),
        ("GET / HTTP/1.1\r\nhost: a\r\nexpect: x\r\n\r\n", "417"),
        ("GET / HTTP/1.1\r\nhost: a\r\n", "400"),
        ("\0\0\0\r\n\r\n", "400"),
    ] {
        let all = answers(bad);
        assert_eq!(status_of(bad), status, "{bad:?}: {all}");
        assert_eq!(all.matches("content-length: ").count(), 1, "{bad:?}: {all}");
        assert!(all.contains("connection: close"), "{bad:?}: {all}");
    }
    for good in [
        "\r\nGET / HTTP/1.1\r\nhost:a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost:\r\n\r\n",
        "GET /?a HTTP/1.1\r\nhost: [::1]:80\r\nx: \u{fc}\t1\r\n\r\n",
    ] {
        assert_eq!(status_of(good), "200", "{good:?}");
    }
}

#[test]
fn chunks_that_another_program_might_read_differently_are_refused() {
    let head = "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    for bad in [
        "+3\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "3\r\nabc\r\n0\n\r\n",
        "3\r\nabc\r\n0\r\n\n",
        "3\r\nabc\r\n0\r\nx: y\n\r\n",
        "3;a\nb\r\nabc\r\n0\r\n\r\n",
        "3;a\rb\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc0\r\n\r\n",
        "00000000000000003\r\nabc\r\n0\r\n\r\n",
        "3_0\r\nabc\r\n0\r\n\r\n",
        "\r\n",
        "0\r\nbad\r\n\r\n",
        "0\r\nx : y\r\n\r\n",
    ] {
        let request = [head, bad].concat();
        assert_eq!(status_of(&request), "400", "{bad:?}: {}", answers(&request));
    }
}

#[test]
fn limits_hold() {
    let server = || hello().limits(Limits::default().head(200).fields(3).body(10));
    let status = |request: &str| {
        let all = text(&server().client().send(request.as_bytes()));
        all.split(' ').nth(1).unwrap_or("none").to_owned()
    };
    let long = "x".repeat(300);
    assert_eq!(
        status(&format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n")),
        "414"
    );
    assert_eq!(
        status(&format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n")),
        "431"
    );
    let fields = "a: b\r\n".repeat(4);
    assert_eq!(
        status(&format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n")),
        "431"
    );
    let post = "POST /echo HTTP/1.1\r\nhost: a\r\n";
    assert_eq!(
        status(&format!("{post}content-length: 11\r\n\r\nhello world")),
        "413"
    );
    assert_eq!(
        status(&format!("{post}content-length: 10\r\n\r\nhelloworld")),
        "200"
    );
    let chunked = format!("{post}transfer-encoding: chunked\r\n\r\n");
    assert_eq!(
        status(&format!("{chunked}a\r\nhelloworld\r\n0\r\n\r\n")),
        "200"
    );
    assert_eq!(
        status(&format!("{chunked}b\r\nhello world\r\n0\r\n\r\n")),
        "413"
    );
}

#[test]
fn a_hundred_fields_are_read() {
    let fields = "a: b\r\n".repeat(99);
    assert_eq!(
        status_of(&format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n")),
        "200"
    );
}

#[test]
fn answers_that_are_cut_short_show_it() {
    let half = answers("GET /half HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(
        half.contains("4\r\nhalf\r\n") && !half.contains("0\r\n\r\n"),
        "{half}"
    );
    let short = answers("GET /short HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(
        short.contains("content-length: 10\r\n") && short.ends_with("\r\n\r\n1234"),
        "{short}"
    );
}

#[test]
fn heads_are_answered_without_bodies() {
    let head = "HEAD / HTTP/1.1\r\nhost: a\r\n\r\n";
    let both = answers(&head.repeat(2));
    assert_eq!(
        both.matches("content-length: 13\r\n\r\n").count(),
        2,
        "{both}"
    );
    assert!(!both.contains("Hello"), "{both}");
    // What is no request has an answer of its own kind, also after one by HEAD.
    let then_none = answers(&[head, "GET / HTTP/1.1\r\n\r\n"].concat());
    assert!(
        then_none.ends_with("\r\n\r\nthe Host header is missing"),
        "{then_none}"
    );
    let empty = answers("GET /empty HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(empty, "HTTP/1.1 204 No Content\r\n\r\n");
}

#[test]
fn routes_answer_404_405_and_500() {
    let client = hello().client();
    assert_eq!(client.get("/nowhere").status, Status::NOT_FOUND);
    let refused = client.post("/", "");
    assert_eq!(refused.status, Status::METHOD_NOT_ALLOWED);
    assert_eq!(refused.headers["allow"], "GET, HEAD");
    assert_eq!(client.get("/users/a%20b").text(), "a b");
    assert_eq!(client.get("/users/%ff").status, Status::BAD_REQUEST);
    assert_eq!(client.get("/panic").status, Status::INTERNAL_SERVER_ERROR);
}

#[test]
fn a_payload_that_panics_when_it_is_dropped_is_the_end_of_one_request() {
    let get = |path| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    let both = answers(&(get("/bomb") + &get("/empty")));
    assert!(both.starts_with("HTTP/1.1 500 "), "{both}");
    assert!(both.contains("HTTP/1.1 204 "), "{both}");
}

#[test]
fn a_client_that_waits_for_100_gets_it_when_the_body_is_read() {
    let running = hello().bind("127.0.0.1:0").unwrap().start().unwrap();
    let mut stream = TcpStream::connect(running.local_addr().unwrap()).unwrap();
    let head =
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut buffer = [0; 25];
    stream.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hi").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("\r\n\r\nhi"), "{rest}");
    assert_eq!(running.shutdown(), 0);
}

#[test]
fn a_shutdown_lets_requests_end() {
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let may_go = std::sync::Mutex::new(may_go);
    let server = Server::new().get("/", move || {
        begun.send(()).unwrap();
        let _ = may_go.lock().unwrap().recv();
        "done"
    });
    let running = server.bind("127.0.0.1:0").unwrap().start().unwrap();
    let address = running.local_addr().unwrap();
    let _idle = TcpStream::connect(address).unwrap();
    let mut busy = TcpStream::connect(address).unwrap();
    busy.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    has_begun.recv().unwrap();
    thread::scope(|scope| {
        let ending = scope.spawn(|| running.shutdown());
        while TcpStream::connect(address).is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
        go.send(()).unwrap();
        let mut answer = String::new();
        busy.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(answer.ends_with("\r\n\r\ndone"), "{answer}");
        assert_eq!(ending.join().unwrap(), 0);
    });
}

#[test]
fn an_informational_answer_is_an_error_of_the_handler() {
    let respond = |request: &mut Request| match request.respond(Response::new(Status::PROCESSING)) {
        Ok(_) => Status::OK,
        Err(_) => Status::IM_A_TEAPOT,
    };
    let client = Server::new()
        .get("/100", || Status::CONTINUE)
        .get("/101", || Status::SWITCHING_PROTOCOLS)
        .get("/102", respond)
        .get("/", || "next")
        .client();
    for (path, status) in [("/100", "500"), ("/101", "500"), ("/102", "418")] {
        let both =
            format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let all = text(&client.send(both.as_bytes()));
        assert!(all.starts_with(&format!("HTTP/1.1 {status} ")), "{all}");
        assert!(all.ends_with("\r\n\r\nnext"), "{all}");
    }
}

#[test]
fn an_answer_that_resets_has_no_body() {
    let reset = || Response::new(Status::RESET_CONTENT).body("left out");
    let client = Server::new()
        .get("/", reset)
        .get("/pushed", |request: &mut Request| -> io::Result<()> {
            let mut body = request.respond(Response::new(Status::RESET_CONTENT))?;
            body.write_all(b"left out")
        })
        .client();
    for path in ["/", "/pushed"] {
        let one = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        let all = text(&client.send(one.repeat(2).as_bytes()));
        assert_eq!(all.matches("HTTP/1.1 205 ").count(), 2, "{all}");
        assert_eq!(all.matches("content-length: 0\r\n").count(), 2, "{all}");
        assert!(
            all.ends_with("\r\n\r\n") && !all.contains("left out"),
            "{all}"
        );
    }
}

#[test]
fn a_location_has_no_line_ends_whatever_it_is_made_of() {
    let there =
        |request: &mut Request| Redirect::to(&request.query_value("to").unwrap_or_default());
    let client = Server::new().get("/", there).client();
    let location = |to: &str| {
        let answer = client.get(&format!("/?to={to}"));
        assert_eq!(answer.status, Status::SEE_OTHER);
        answer.headers["location"].to_str().unwrap().to_owned()
    };
    assert_eq!(location("/a%3Fb=c%26d"), "/a?b=c&d");
    assert_eq!(location("/a%0D%0Ax:%00"), "/a%0D%0Ax:%00");
    assert_eq!(location("/%C3%BC%25"), "/%C3%BC%");
}
