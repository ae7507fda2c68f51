//! The server, tested over loopback byte by byte.

use super::*;
use std::io::BufRead;
use std::net::SocketAddr;

const HELLO_RESPONSE: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

/// A server that runs until the tests end.
struct Running(SocketAddr);

impl Running {
    fn start(delay: Duration) -> Self {
        let listener = listen("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, delay));
        Running(address)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.0).unwrap();
        // A test that waits in vain fails instead of hanging.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Returns all that the server answers to `request` until it closes the connection by itself.
    fn answers(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        read_to_end(&mut stream)
    }

    /// Returns all that the server answers to `request` when the client sends no more.
    fn answers_to_all(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_to_end(&mut stream)
    }
}

fn read_to_end(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn start() -> Running {
    Running::start(Duration::ZERO)
}

#[test]
fn the_handler_waits_but_health_is_answered_at_once() {
    let delay = Duration::from_millis(50);
    let server = Running::start(delay);
    let started = std::time::Instant::now();
    assert_eq!(
        server.answers_to_all(b"GET /?q HTTP/1.1\r\nHost: x\r\n\r\n"),
        HELLO_RESPONSE
    );
    assert!(started.elapsed() >= delay);

    // Longer than the test would wait for an answer.
    let server = Running::start(Duration::from_secs(90));
    assert_eq!(
        server.answers_to_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"),
        HELLO_RESPONSE
    );
}

#[test]
fn a_connection_is_kept_for_the_next_request() {
    let server = start();
    let mut stream = server.connect();
    for _ in 0..3 {
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut response = vec![0; HELLO_RESPONSE.len()];
        stream.read_exact(&mut response).unwrap();
        assert_eq!(response, HELLO_RESPONSE.as_bytes());
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let said = start().answers(
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n\
          GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n\
          GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n\
          GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    let statuses: Vec<_> = said.split("HTTP/1.1 ").skip(1).map(|r| &r[..3]).collect();
    assert_eq!(statuses, ["200", "404", "200"], "{said}");
}

#[test]
fn http_1_0_closes_unless_it_asks_to_be_kept() {
    let server = start();
    let said = server.answers(b"GET / HTTP/1.0\r\n\r\n");
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    assert!(said.contains("\r\nConnection: close\r\n"), "{said}");

    let said =
        server.answers(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    assert!(said.contains("\r\nConnection: keep-alive\r\n"), "{said}");
    assert_eq!(said.matches(HELLO).count(), 2, "{said}");
}

#[test]
fn head_has_no_body() {
    let said = start().answers_to_all(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(said, HELLO_RESPONSE.trim_end_matches(HELLO));
}

#[test]
fn bodies_are_read_and_discarded() {
    let server = start();
    let long = [
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n".as_slice(),
        &[b'x'; 100_000],
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nGET ",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ];
    let said = server.answers(&long.concat());
    let statuses: Vec<_> = said.split("HTTP/1.1 ").skip(1).map(|r| &r[..3]).collect();
    assert_eq!(statuses, ["200", "405", "200"], "{said}");
    assert!(said.contains("\r\nAllow: GET, HEAD\r\n"), "{said}");
}

#[test]
fn a_client_that_waits_for_it_is_told_to_continue() {
    let server = start();
    let mut stream = server.connect();
    let head = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head).unwrap();
    let mut reader = io::BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
    stream.write_all(b"ok").unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("\r\nHTTP/1.1 200 OK\r\n"), "{rest}");
}

#[test]
fn bad_requests_are_refused() {
    let server = start();
    for request in [
        "hello\r\n\r\n",
        "GET / HTTP/3.9\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nNo colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\nx",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    ] {
        let said = server.answers(request.as_bytes());
        assert!(
            said.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{request:?}: {said:?}"
        );
        assert!(said.contains("\r\nConnection: close\r\n"), "{said:?}");
    }
    let cut_short = server.answers_to_all(b"GET / HTTP/1.1\r\nHo");
    assert!(cut_short.starts_with("HTTP/1.1 400 "), "{cut_short:?}");
    assert_eq!(server.answers_to_all(b"\r\n"), "", "nothing was asked");
}

#[test]
fn chunked_bodies_are_refused() {
    let said = start()
        .answers(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert!(
        said.starts_with("HTTP/1.1 411 Length Required\r\n"),
        "{said}"
    );
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let server = start();
    let long = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "x".repeat(50_000)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
        "X: x\r\n".repeat(100)
    );
    for request in [long, many] {
        let said = server.answers(request.as_bytes());
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
    }
    let fits = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "x".repeat(7_000)
    );
    assert_eq!(server.answers_to_all(fits.as_bytes()), HELLO_RESPONSE);
}
