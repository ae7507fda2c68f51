//! Requests that no handler sees: the same in both versions, and known to logs and metrics.

use super::http2::{Client, served};
use ::http::{Method, Request as Asked};
use pirn_http::observe::{AccessLog, LogFormat, Metrics};
use pirn_http::{Server, Uri};
use std::io::{self, Write};
use std::sync::mpsc;

/// What both versions refuse: method, target, fields.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const REFUSED: [(u16, Case); 12] = [
    (417, ("GET", "http://a/", &[("expect", "x")])),
    (417, ("GET", "http://a/", &[("expect", "100-continue, x")])),
    (400, ("GET", "http://a/", &[("host", "b")])),
    (400, ("GET", "http://a/", &[("host", "")])),
    (400, ("GET", "http://a/", &[("host", "a"), ("host", "a")])),
    (400, ("GET", "http://a@b/", &[("host", "a@b")])),
    (400, ("GET", "http://a:+80/", &[("host", "a:+80")])),
    (400, ("GET", "http://a:65536/", &[("host", "a:65536")])),
    (400, ("GET", "ftp://a/", &[("host", "a")])),
    (400, ("GET", "http://a/\\b", &[("host", "a")])),
    (
        400,
        (
            "GET",
            "http://a/",
            &[
                ("host", "a"),
                ("content-length", "1"),
                ("content-length", "2"),
            ],
        ),
    ),
    (
        431,
        (
            "GET",
            "http://a/",
            &[("host", "a"), ("b", ""), ("c", ""), ("d", ""), ("e", "")],
        ),
    ),
];

/// What both versions serve.
const SERVED: [Case; 3] = [
    ("GET", "http://a/", &[("host", "a")]),
    ("GET", "http://a:80/", &[("host", "a:80")]),
    (
        "POST",
        "http://a/",
        &[("host", "a"), ("content-length", "0")],
    ),
];

fn any() -> Server {
    let limits = pirn_http::Limits::default().fields(4);
    Server::new().any("/", || "in").limits(limits)
}

fn of_h1(&(method, target, fields): &Case) -> u16 {
    let mut head = format!("{method} {target} HTTP/1.1\r\n");
    let has_host = fields.iter().any(|(name, _)| *name == "host");
    let default = (!has_host).then_some(&("host", "a"));
    for (name, value) in default.into_iter().chain(fields) {
        head += &format!("{name}: {value}\r\n");
    }
    let answer = any()
        .client()
        .send(format!("{head}connection: close\r\n\r\n").as_bytes());
    String::from_utf8(answer)
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// 400 as well if the stream is reset for what the client has sent.
fn of_h2(client: &Client, &(method, target, fields): &Case) -> u16 {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut asked = Asked::builder()
        .method(method)
        .uri(target.parse::<Uri>().unwrap());
    for (name, value) in fields {
        asked = asked.header(*name, *value);
    }
    match client.ask(asked.body(()).unwrap(), b"") {
        Ok(answer) => answer.status.as_u16(),
        Err(error) => {
            assert_eq!(error.reason(), Some(h2::Reason::PROTOCOL_ERROR), "{error}");
            400
        }
    }
}

#[test]
fn both_versions_refuse_the_same() {
    let server = served(any());
    let client = Client::connect(&server);
    for (status, case) in &REFUSED {
        assert_eq!(of_h1(case), *status, "HTTP/1.1: {case:?}");
        assert_eq!(of_h2(&client, case), *status, "HTTP/2: {case:?}");
    }
    for case in &SERVED {
        assert_eq!((of_h1(case), of_h2(&client, case)), (200, 200), "{case:?}");
    }
}

/// A writer whose lines can be waited for.
struct Lines(mpsc::Sender<String>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .send(String::from_utf8(bytes.to_vec()).unwrap())
            .unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_refused_request_is_in_the_log_and_in_the_counts() {
    let (lines, written) = mpsc::channel();
    let (metrics, log) = (
        Metrics::new(),
        AccessLog::new(Lines(lines)).format(LogFormat::Common),
    );
    let server = served(any().with(metrics.clone()).with(log));
    let client = any_raw(&server);
    for (bytes, line) in [
        ("GET / HTTP/1.1\r\n\r\n", "\"GET / HTTP/1.1\" 400 "),
        ("GET /a b HTTP/1.1\r\n\r\n", "\"GET /a b HTTP/1.1\" 400 "),
        ("GET / HTTP/3.7\r\n\r\n", "\"GET / HTTP/3.7\" 505 "),
        ("no\"nsense\r\n\r\n", "\"no\\\"nsense\" 400 "),
        (
            "POST / HTTP/1.1\r\nhost: a\r\nexpect: x\r\n\r\n",
            "\"POST / HTTP/1.1\" 417 ",
        ),
        ("GET / HTTP/1.1\n", "\"GET / HTTP/1.1\" 400 "),
        ("\rx", "\"-\" 400 "),
    ] {
        client(bytes);
        let seen = written.recv().unwrap();
        assert!(
            seen.starts_with("127.0.0.1 - - [") && seen.contains(line),
            "{line}: {seen}"
        );
    }
    let h2 = Client::connect(&server);
    assert_eq!(of_h2(&h2, &REFUSED[0].1), 417);
    let seen = written.recv().unwrap();
    assert!(seen.contains("\"GET http://a/ HTTP/2.0\" 417 "), "{seen}");
    assert_eq!(of_h2(&h2, &SERVED[0]), 200);
    let seen = written.recv().unwrap();
    assert!(seen.contains("\"GET / HTTP/2.0\" 200 2"), "{seen}");
    let text = metrics.text();
    for (labels, count) in [
        ("route=\"none\",method=\"GET\",status=\"4xx\"", 4),
        ("route=\"none\",method=\"GET\",status=\"5xx\"", 1),
        ("route=\"none\",method=\"POST\",status=\"4xx\"", 1),
        ("route=\"none\",method=\"other\",status=\"4xx\"", 2),
        ("route=\"/\",method=\"GET\",status=\"2xx\"", 1),
    ] {
        let line = format!("http_requests_total{{{labels}}} {count}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

/// Returns what sends bytes on a connection of their own, and waits for its end.
fn any_raw(server: &pirn_http::Running) -> impl Fn(&str) {
    let address = server.local_addr().unwrap();
    move |bytes| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        io::copy(&mut stream, &mut io::sink()).unwrap();
    }
}
