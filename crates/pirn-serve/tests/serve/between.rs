//! What `pirn serve --proxy` passes on while the other end waits for it: in both directions, to
//! clients of both versions, compressed or not; and answers that come before a request is over.

use super::hostile::{behind, head};
use super::{ask, get, serve};
use pirn_testing::Server;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// A client of one request, which reads its answer piece by piece.
struct Client {
    stream: TcpStream,
    is_http2: bool,
    bytes: Vec<u8>,
}

/// What a client of HTTP/2 begins with.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl Client {
    /// Sends the head of a request; `method`: with a body to follow, if it is POST.
    fn ask(proxy: &Server, method: &str, is_http2: bool) -> Client {
        let mut stream = proxy.connect();
        let has_body = method == "POST";
        let bytes = match is_http2 {
            true => {
                // Of the static table: the method, "http", "/", a value of ":authority", and
                // "accept-encoding: gzip, deflate".
                let method = if has_body { 0x83 } else { 0x82 };
                let fields = [method, 0x86, 0x84, 0x01, 1, b'a', 0x90];
                let flags = 4 | u8::from(!has_body);
                [PREFACE, &frame(4, 0, 0, b""), &frame(1, flags, 1, &fields)].concat()
            }
            false => {
                let body = if has_body {
                    "transfer-encoding: chunked\r\n"
                } else {
                    ""
                };
                let fields = format!("accept-encoding: gzip\r\nconnection: close\r\n{body}");
                format!("{method} / HTTP/1.1\r\nhost: a\r\n{fields}\r\n").into_bytes()
            }
        };
        stream.write_all(&bytes).unwrap();
        Client {
            stream,
            is_http2,
            bytes: Vec::new(),
        }
    }

    fn send(&mut self, data: &str, is_last: bool) {
        let bytes = match self.is_http2 {
            true => frame(0, u8::from(is_last), 1, data.as_bytes()),
            false => {
                let end = if is_last { "0\r\n\r\n" } else { "" };
                format!("{:x}\r\n{data}\r\n{end}", data.len()).into_bytes()
            }
        };
        self.stream.write_all(&bytes).unwrap();
    }

    /// Returns whether the head has come, how many bytes of the body have, and whether it is over.
    fn seen(&self) -> (bool, usize, bool) {
        let mut bytes = &self.bytes[..];
        let (mut has_head, mut count, mut is_over) = (false, 0, false);
        while self.is_http2 && bytes.len() >= 9 {
            let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
            let (kind, flags) = (bytes[3], bytes[4]);
            bytes = bytes.get(9 + length..).unwrap_or_default();
            has_head |= kind == 1;
            count += if kind == 0 { length } else { 0 };
            is_over |= kind < 2 && flags & 1 != 0;
        }
        if !self.is_http2 {
            let text = String::from_utf8_lossy(&self.bytes);
            has_head = text.contains("\r\n\r\n");
            count = text
                .split_once("\r\n\r\n")
                .map_or(0, |(_, body)| body.len());
        }
        (has_head, count, is_over)
    }

    /// Waits for more. Returns whether there is some.
    fn more(&mut self) -> bool {
        let mut piece = [0; 4096];
        let count = self.stream.read(&mut piece).unwrap();
        self.bytes.extend_from_slice(&piece[..count]);
        count > 0
    }
}

/// What a test lets a server behind go on by.
fn gate() -> (mpsc::Sender<()>, Arc<Mutex<mpsc::Receiver<()>>>) {
    let (open, gate) = mpsc::channel();
    (open, Arc::new(Mutex::new(gate)))
}

/// The command has one coding, gzip. A build of the workspace has the other features of `pirn-http`
/// as well; its test `timely` tests their codings.
#[test]
fn what_comes_of_an_answer_is_passed_on_before_there_is_more() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (name, fields, first, rest) in [
        ("head", "Content-Length: 2000\r\n", "", "x".repeat(2000)),
        ("head", chunked, "", "5\r\nhello\r\n0\r\n\r\n".into()),
        ("head", "", "", "hello".into()),
        (
            "piece",
            "Content-Length: 2000\r\n",
            "1234567890",
            "x".repeat(1990),
        ),
        (
            "piece",
            chunked,
            "a\r\n1234567890\r\n",
            "5\r\nhello\r\n0\r\n\r\n".into(),
        ),
        (
            "piece without its end",
            chunked,
            "a\r\n1234567890",
            "\r\n5\r\nhello\r\n0\r\n\r\n".into(),
        ),
        ("piece", "", "1234567890", "hello".into()),
    ] {
        let (open, gate) = gate();
        let url = behind(move |_, mut stream| {
            head(&stream);
            let start = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
            write!(stream, "{start}{fields}\r\n{first}").unwrap();
            gate.lock().unwrap().recv().unwrap();
            write!(stream, "{rest}").unwrap();
        });
        for more in [&[][..], &["--compress"]] {
            let proxy = serve(&[&["--proxy", &url], more].concat());
            for is_http2 in [false, true] {
                let what = format!("{name}, {fields:?}, HTTP/2: {is_http2}, {more:?}");
                let mut client = Client::ask(&proxy, "GET", is_http2);
                // A head of gzip alone has 10 bytes, and a chunk's size 3 or 4.
                let least = if first.is_empty() {
                    0
                } else {
                    10 + 5 * more.len()
                };
                while !client.seen().0 || client.seen().1 < least {
                    assert!(client.more(), "{what}");
                }
                if !is_http2 {
                    let head = String::from_utf8_lossy(&client.bytes);
                    let is_coded = head.contains("content-encoding: gzip\r\n");
                    assert_eq!(is_coded, !more.is_empty(), "{what}: {head}");
                }
                open.send(()).unwrap();
                while !client.seen().2 && client.more() {}
                assert!(client.seen().1 > least, "{what}");
            }
        }
    }
}

#[test]
fn what_comes_of_a_request_is_passed_on_before_there_is_more() {
    let (seen, has_seen) = mpsc::channel();
    let url = behind(move |_, mut stream| {
        head(&stream);
        let mut all = String::new();
        for piece in ["first", "second"] {
            while !all.contains(piece) {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                all.push(char::from(byte[0]));
            }
            seen.send(()).unwrap();
        }
        // A connection that the proxy keeps might close under the next request, which gets 502.
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    for is_http2 in [false, true] {
        let mut client = Client::ask(&proxy, "POST", is_http2);
        client.send("first", false);
        has_seen.recv().unwrap();
        client.send("second", true);
        has_seen.recv().unwrap();
        while client.seen().1 < 2 {
            assert!(client.more());
        }
    }
}

const EARLY: &str = "Content-Length: 5\r\nX-Why: quota\r\n\r\nearly";

#[test]
fn an_answer_that_comes_before_the_body_is_read_reaches_the_client() {
    for (status, then_closes) in [("413 No", false), ("413 No", true), ("200 OK", true)] {
        let (_open, gate) = gate();
        let url = behind(move |_, mut stream| {
            head(&stream);
            write!(stream, "HTTP/1.1 {status}\r\n{EARLY}").unwrap();
            if !then_closes {
                let _ = gate.lock().unwrap().recv(); // It reads nothing, and stays.
            }
        });
        let proxy = serve(&["--proxy", &url]);
        let mut client = proxy.connect();
        let length = 64 << 20;
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        let mut sender = client.try_clone().unwrap();
        let sent = thread::spawn(move || sender.write_all(&vec![b'x'; length]));
        let mut answer = Vec::new();
        while !answer.ends_with(b"early") {
            let mut piece = [0; 1024];
            let count = client.read(&mut piece).unwrap();
            assert!(count > 0, "{status}: {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..count]);
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {}", &status[..3])),
            "{answer}"
        );
        assert!(answer.contains("x-why: quota\r\n"), "{answer}");
        drop(client);
        let _ = sent.join().unwrap();
    }
}

#[test]
fn a_client_that_waits_in_the_middle_of_its_body_gets_an_early_answer() {
    let url = behind(|_, mut stream| {
        head(&stream);
        stream.read_exact(&mut [0; 10]).unwrap(); // The first chunk.
        write!(stream, "HTTP/1.1 401 No\r\n{EARLY}").unwrap();
        super::hostile::until_closed(stream);
    });
    let proxy = serve(&["--proxy", &url]);
    for is_http2 in [false, true] {
        let mut client = Client::ask(&proxy, "POST", is_http2);
        client.send("first", false);
        while client.seen().1 < 5 {
            assert!(client.more());
        }
        if !is_http2 {
            let text = String::from_utf8_lossy(&client.bytes);
            assert!(text.starts_with("HTTP/1.1 401 "), "{text}");
            assert!(text.contains("connection: close\r\n"), "{text}");
        }
    }
}

#[test]
fn an_interim_answer_ends_no_upload() {
    let url = behind(|_, mut stream| {
        head(&stream);
        let interim =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        stream.write_all(interim).unwrap();
        let mut body = [0; 5];
        stream.read_exact(&mut body).unwrap();
        assert_eq!(&body, b"hello");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    let answer = ask(&proxy, &["POST / HTTP/1.1", "Content-Length: 5"], "hello");
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"),
        "{answer}"
    );
}

#[test]
fn a_refused_upgrade_is_asked_for_once_and_its_reason_told() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let url = behind(move |_, mut stream| {
        if head(&stream) {
            count.fetch_add(1, SeqCst);
            write!(stream, "HTTP/1.1 403 Forbidden\r\n{EARLY}").unwrap();
        }
    });
    let proxy = serve(&["--proxy", &url]);
    let lines = [
        "GET /ws HTTP/1.1",
        "Connection: upgrade, close",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version: 13",
    ];
    let answer = ask(&proxy, &lines, "");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(
        answer.contains("x-why: quota\r\n") && answer.ends_with("early"),
        "{answer}"
    );
    assert_eq!(asked.load(SeqCst), 1);
}

#[test]
fn a_client_is_told_what_is_wrong_with_the_other_server() {
    let nothing = behind(|_, stream| {
        head(&stream);
    });
    let nonsense = behind(|_, mut stream| {
        head(&stream);
        stream.write_all(b"HTTP/9.9 nonsense\r\n\r\n").unwrap();
    });
    let unreachable = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (url, what) in [
        (nothing, "has closed the connection without an answer"),
        (nonsense, "sends something that is not an HTTP answer"),
        (format!("http://{unreachable}"), "cannot be reached"),
    ] {
        let answer = get(&serve(&["--proxy", &url]), "/");
        assert!(
            answer.starts_with("HTTP/1.1 502 ") && answer.ends_with(what),
            "{answer}"
        );
    }
}

#[test]
fn a_websocket_has_the_grace_when_the_proxy_is_told_to_end() {
    let url = behind(|_, mut stream| {
        head(&stream);
        let switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n";
        write!(stream, "{switched}Connection: upgrade\r\n\r\n").unwrap();
        let mut piece = [0; 16];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            stream.write_all(&piece[..count]).unwrap();
        }
    });
    let mut proxy = serve(&["--proxy", &url]);
    let mut client = proxy.connect();
    let head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    proxy.running.signal("-TERM");
    while TcpStream::connect(&proxy.address).is_ok() {
        thread::yield_now();
    }
    for _ in 0..3 {
        client.write_all(&[0x81, 2, b'h', b'i']).unwrap();
        let mut echoed = [0; 4];
        client.read_exact(&mut echoed).unwrap();
        assert_eq!(echoed, [0x81, 2, b'h', b'i']);
    }
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(proxy.running.process.wait().unwrap().code(), Some(0));
}
