//! Requests and answers, one at a time.

use super::{Client, get, served};
use crate::common;
use ::http::{HeaderMap, HeaderValue, Request as Asked};
use bytes::Bytes;
use h2::Reason;
use pirn::{AsyncIo, block_on, thread};
use pirn_http::observe::{AccessLog, LogFormat};
use pirn_http::{
    Body, Error, Limits, Listener, Request, Response, Running, Server, Status, Timeouts,
};
use pirn_testing::patient;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn server() -> Server {
    common()
        .get(
            "/users/{id}",
            |request: &mut Request| -> Result<String, Error> {
                Ok(format!(
                    "{} {}",
                    request.param::<String>("id")?,
                    request.uri
                ))
            },
        )
        .get("/fields", |request: &mut Request| {
            let field = |name| request.header(name).unwrap_or_default().to_owned();
            format!(
                "{:?} {} {}",
                request.version,
                field("host"),
                field("cookie")
            )
        })
        .get("/same", || Status::NOT_MODIFIED)
        .get("/nothing", Response::ok)
        .get("/reader", || Body::from_reader(&b"abc"[..]))
        .get("/connection", || {
            let field = |name| Response::ok().header(name, "close");
            let mut response = field(pirn_http::header::CONNECTION);
            let value = HeaderValue::from_static("timeout=5");
            response.headers.insert("keep-alive", value);
            response
        })
        .post("/echo", |request: &mut Request| request.bytes())
        .post("/ignore", || Status::OK)
}

#[test]
fn requests_are_served_as_in_http_1() {
    let server = served(server());
    let client = Client::connect(&server);
    let hello = client.get("/");
    assert_eq!((hello.status, hello.text()), (Status::OK, "Hello, World!"));
    assert_eq!(hello.headers["content-length"], "13");
    assert!(hello.headers.contains_key("date"));
    for (path, body) in [
        ("/users/7%2f8?a=b", "7/8 /users/7%2f8?a=b"),
        ("/fields", "HTTP/2.0 a "),
        ("/reader", "abc"),
        ("/stream", "abc"),
        ("/nothing", ""),
    ] {
        assert_eq!(client.get(path).text(), body, "{path}");
    }
    for (path, status) in [
        ("/missing", Status::NOT_FOUND),
        ("/panic", Status::INTERNAL_SERVER_ERROR),
        ("/bomb", Status::INTERNAL_SERVER_ERROR),
    ] {
        assert_eq!(client.get(path).status, status);
    }
    assert_eq!(client.post("/echo", b"hello").text(), "hello");
    assert_eq!(client.post("/ignore", b"hello").status, Status::OK);
    assert_eq!(client.get("/").text(), "Hello, World!");
    client.end().unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn some_answers_have_no_body() {
    let server = served(server());
    let client = Client::connect(&server);
    for (path, status) in [
        ("/empty", Status::NO_CONTENT),
        ("/same", Status::NOT_MODIFIED),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.text()), (status, ""));
        assert!(!answer.headers.contains_key("content-length"), "{path}");
    }
    for (path, length) in [("/", Some("13")), ("/reader", None), ("/stream", None)] {
        let head = Asked::head(format!("http://a{path}")).body(()).unwrap();
        let answer = client.ask(head, b"").unwrap();
        assert_eq!((answer.status, answer.text()), (Status::OK, ""));
        let announced = answer.headers.get("content-length");
        assert_eq!(announced.map(|value| value.to_str().unwrap()), length);
    }
    let answer = client.get("/connection");
    for name in ["connection", "keep-alive", "transfer-encoding"] {
        assert!(!answer.headers.contains_key(name), "{name}");
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_body_that_ends_early_is_no_answer() {
    let server = served(server());
    let client = Client::connect(&server);
    for path in ["/half", "/short"] {
        let error = client.ask(get(path), b"").unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR), "{path}");
    }
    assert_eq!(client.get("/").status, Status::OK);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn fields_have_one_form() {
    let server = served(server());
    let client = Client::connect(&server);
    let request = Asked::get("http://b.example:81/fields")
        .header("cookie", "a=1")
        .header("cookie", "b=2");
    let answer = client.ask(request.body(()).unwrap(), b"").unwrap();
    assert_eq!(answer.text(), "HTTP/2.0 b.example:81 a=1; b=2");
    let request = Asked::get("http://a/fields").header("host", "b");
    let answer = client.ask(request.body(()).unwrap(), b"").unwrap();
    assert_eq!(answer.status, Status::BAD_REQUEST);
    assert_eq!(answer.text(), "Host and target disagree");
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn trailers_go_both_ways() {
    let server = Server::new().post("/", |request: &mut Request| -> io::Result<Body> {
        let body = request.bytes()?;
        let trailers = request.trailers().cloned().unwrap_or_default();
        let sum = trailers.get("x-sum").cloned();
        let answer = request.response_trailers_mut();
        answer.extend(sum.map(|sum| (pirn_http::HeaderName::from_static("x-sum"), sum)));
        answer.insert("content-length", HeaderValue::from(7));
        Ok(body.into())
    });
    let server = served(server);
    let client = Client::connect(&server);
    for body in ["", "abc"] {
        let request = Asked::post("http://a/").body(()).unwrap();
        let (answer, mut stream) = client.begin(request, false);
        stream.send_data(Bytes::from(body), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from(6));
        trailers.insert("host", HeaderValue::from_static("b"));
        stream.send_trailers(trailers).unwrap();
        let answer = super::receive(answer).unwrap();
        assert_eq!(answer.text(), body);
        let trailers = answer.trailers.unwrap();
        assert_eq!(
            (trailers.len(), &trailers["x-sum"]),
            (1, &HeaderValue::from(6))
        );
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn heads_and_bodies_have_limits() {
    let server = served(server().limits(Limits::default().body(10).fields(20)));
    let client = Client::connect(&server);
    assert_eq!(client.post("/echo", b"0123456789").status, Status::OK);
    let too_large = client.post("/echo", b"0123456789a");
    assert_eq!(too_large.status, Status::PAYLOAD_TOO_LARGE);
    let request = Asked::post("http://a/echo").header("content-length", 11);
    let (answer, _stream) = client.begin(request.body(()).unwrap(), false);
    let announced = super::receive(answer).unwrap();
    assert_eq!(announced.status, Status::PAYLOAD_TOO_LARGE);
    let too_many = (0..21).fold(Asked::get("http://a/"), |request, number| {
        request.header(format!("x-{number}"), "")
    });
    let long = Asked::get("http://a/").header("x", "0123456789".repeat(1640));
    for request in [too_many, long] {
        let answer = client.ask(request.body(()).unwrap(), b"").unwrap();
        assert_eq!(answer.status, Status::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    assert_eq!(client.get("/").status, Status::OK);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_may_end_its_body_after_the_answer() {
    let server = served(server());
    let client = Client::connect(&server);
    let request = Asked::post("http://a/ignore").body(()).unwrap();
    let (answer, mut stream) = client.begin(request, false);
    stream.send_data(Bytes::from("abc"), false).unwrap();
    assert_eq!(super::receive(answer).unwrap().status, Status::OK);
    // What has been asked later has been answered: so would have been a reset.
    assert_eq!(client.get("/").status, Status::OK);
    stream.send_data(Bytes::from("def"), true).unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_body_that_is_not_as_long_as_announced_is_refused() {
    let server = served(server());
    let client = Client::connect(&server);
    let request = Asked::post("http://a/echo").header("content-length", 5);
    let (answer, mut stream) = client.begin(request.body(()).unwrap(), false);
    stream.send_data(Bytes::from("abc"), true).unwrap();
    let error = super::receive(answer).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::PROTOCOL_ERROR));
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn slow_bodies_and_slow_handlers_are_answered() {
    let late = || -> io::Result<()> {
        let (mut silent, _other) = UnixStream::pair()?;
        silent.read(&mut [0]).map(drop)
    };
    let timeouts = Timeouts::default().handler(patient(Duration::from_millis(50)));
    let server = served(Server::new().get("/late", late).timeouts(timeouts));
    let late = Client::connect(&server).get("/late");
    assert_eq!(late.status, Status::SERVICE_UNAVAILABLE);
    assert_eq!(server.shutdown(), 0);
    let timeouts = Timeouts::default().body(patient(Duration::from_millis(50)), 1000);
    let server = served(self::server().timeouts(timeouts));
    let client = Client::connect(&server);
    let request = Asked::post("http://a/echo").body(()).unwrap();
    let (answer, _stream) = client.begin(request, false);
    let slow = super::receive(answer).unwrap();
    assert_eq!(slow.status, Status::REQUEST_TIMEOUT);
    assert_eq!(client.get("/").status, Status::OK);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn the_time_that_a_handler_takes_is_not_its_clients() {
    const LINE: &str = "one moment\n";
    let server = Server::new().get("/", |request: &mut Request| -> io::Result<()> {
        let mut body = request.respond(Response::ok())?;
        for _ in 0..3 {
            body.write_all(LINE.as_bytes())?;
            body.flush()?;
            thread::sleep(patient(Duration::from_secs(1)));
        }
        body.write_all(&[b'x'; 100])?;
        body.flush()
    });
    let server =
        served(server.timeouts(Timeouts::default().body(patient(Duration::from_secs(2)), 500)));
    let mut builder = h2::client::Builder::new();
    let client = Client::built(
        builder.initial_window_size(LINE.len() as u32 * 3 + 50),
        &server,
    );
    let (answer, _) = client.begin(get("/"), true);
    let mut body = block_on(answer).unwrap().into_body();
    let mut piece = || block_on(body.data()).transpose();
    let mut seen = 0;
    while seen < LINE.len() * 3 + 50 {
        seen += piece().unwrap().unwrap().len();
    }
    // The handler waits for more of the window, for some ticks of the watch.
    thread::sleep(patient(Duration::from_millis(700)));
    body.flow_control().release_capacity(seen).unwrap();
    while let Some(more) = block_on(body.data()).transpose().unwrap() {
        seen += more.len();
    }
    assert_eq!(seen, LINE.len() * 3 + 100);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_stream_may_pause_while_others_of_its_connection_move() {
    let tenth = patient(Duration::from_millis(100));
    // A connection that moves 50 bytes per tenth is fast enough.
    let timeouts = Timeouts::default().body(20 * tenth, (50.0 / tenth.as_secs_f64()) as u64);
    let server = served(server().timeouts(timeouts));
    let client = Client::connect(&server);
    let post = || Asked::post("http://a/echo").body(()).unwrap();
    let (paused, mut paused_body) = client.begin(post(), false);
    let (moving, mut moving_body) = client.begin(post(), false);
    // It pauses for longer than that allows, and gets a few bytes shortly before its time is over.
    // The other moves enough within two seconds, not within what is then left of them.
    super::send(&mut paused_body, Bytes::from("now "), false);
    let begin = Instant::now();
    let mut more = Some(Bytes::from("or "));
    let mut sent = 0;
    while begin.elapsed() < 35 * tenth {
        super::send(&mut moving_body, Bytes::from(vec![b'x'; 100]), false);
        sent += 100;
        thread::sleep(tenth);
        if begin.elapsed() > 17 * tenth
            && let Some(more) = more.take()
        {
            super::send(&mut paused_body, more, false);
        }
    }
    super::send(&mut paused_body, Bytes::from("later"), true);
    assert_eq!(super::receive(paused).unwrap().text(), "now or later");
    moving_body.send_data(Bytes::new(), true).unwrap();
    assert_eq!(super::receive(moving).unwrap().body.len(), sent);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn the_protocol_is_changed_for_those_only_who_ask() {
    let server = Server::new()
        .websocket("/socket", |_| Ok(()))
        .get("/", || Response::upgrade("shout", |_| ()));
    let server = served(server);
    let client = Client::connect(&server);
    for path in ["/", "/socket"] {
        let answer = client.get(path);
        assert_eq!(answer.status, Status::NOT_IMPLEMENTED);
        assert!(answer.text().contains("RFC 8441"));
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn logs_say_that_it_was_http_2() {
    let (lines, writer) = io::pipe().unwrap();
    let log = AccessLog::new(writer).format(LogFormat::Common);
    let server = served(server().with(log));
    Client::connect(&server).get("/users/1?a=b");
    let mut line = String::new();
    BufReader::new(lines).read_line(&mut line).unwrap();
    assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
    assert!(
        line.ends_with("\"GET /users/1?a=b HTTP/2.0\" 200 14\n"),
        "{line}"
    );
    assert_eq!(server.shutdown(), 0);
}

/// Sends bytes and returns all that comes back.
fn talk(server: &Running, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    socket.write_all(bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    let _ = socket.read_to_end(&mut all); // The connection may be reset.
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn both_protocols_are_spoken_on_one_port_and_on_unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let unix = Listener::unix(&path).unwrap();
    let server = server().bind("127.0.0.1:0").unwrap().and(unix);
    let server = server.start().unwrap();
    let one = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    assert!(talk(&server, one.as_bytes()).ends_with("Hello, World!"));
    assert_eq!(Client::connect(&server).get("/").text(), "Hello, World!");
    let socket = AsyncIo::new(UnixStream::connect(&path).unwrap()).unwrap();
    assert_eq!(Client::on(socket).get("/").text(), "Hello, World!");
    // Not after a request of HTTP/1.1.
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let both = talk(&server, format!("{one}{preface}").as_bytes());
    assert!(both.contains("HTTP/1.1 505 "), "{both}");
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn http_2_can_be_switched_off() {
    let server = served(server().http2(false));
    let answer = talk(&server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
    assert_eq!(server.shutdown(), 0);
}
