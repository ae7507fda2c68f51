//! A small thread-per-connection HTTP/1.1 server for `GET /`.

use super::start::spawn;
use crate::thread;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A status line's code and reason, and a text.
pub struct Answer(&'static str, String);

impl Answer {
    pub fn ok(text: String) -> Answer {
        Answer("200 OK", text)
    }

    pub fn bad_gateway(text: String) -> Answer {
        Answer("502 Bad Gateway", text)
    }

    fn plain(status: &'static str) -> Answer {
        Answer(status, String::new())
    }
}

/// Serves each connection on a thread of its own, for ever.
pub fn serve(listener: &TcpListener, handler: impl Fn() -> Answer + Clone + Send + 'static) {
    for (number, accepted) in (0..).zip(listener.incoming()) {
        let handler = handler.clone();
        let served = accepted.map_err(anyhow::Error::from).and_then(|stream| {
            // An error means that the client is gone: no one is left to be told.
            spawn(number, move || drop(converse(&stream, handler)))
        });
        if served.is_err() {
            // Out of descriptors, or of threads, until others close; the client sees a closed
            // connection.
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Answers requests until the client is done.
fn converse(mut stream: &TcpStream, handler: impl Fn() -> Answer) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut pending = Vec::new();
    while let Some(request) = next_request(stream, &mut pending)? {
        let (answer, keep_alive) = match request {
            Request::Hello { keep_alive } => (handler(), keep_alive),
            Request::Other { keep_alive } => (Answer::plain("404 Not Found"), keep_alive),
            Request::Bad => (Answer::plain("400 Bad Request"), false),
        };
        let Answer(status, text) = answer;
        let connection = if keep_alive {
            ""
        } else {
            "Connection: close\r\n"
        };
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{connection}\r\n{text}",
            text.len()
        );
        stream.write_all(response.as_bytes())?;
        if !keep_alive {
            break;
        }
    }
    Ok(())
}

enum Request {
    Hello {
        keep_alive: bool,
    },
    Other {
        keep_alive: bool,
    },
    /// Not understood, or with a body, which no workload sends.
    Bad,
}

/// Reads the next request; `None` if the client has closed the connection. What has been read and
/// not used is `pending`.
fn next_request(mut stream: &TcpStream, pending: &mut Vec<u8>) -> io::Result<Option<Request>> {
    const MAX_HEAD: usize = 8 * 1024;
    loop {
        if let Some((request, length)) = parse(pending) {
            pending.drain(..length);
            return Ok(Some(request));
        }
        if pending.len() >= MAX_HEAD {
            return Ok(Some(Request::Bad));
        }
        let mut chunk = [0; 1024];
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Ok(None);
        }
        pending.extend_from_slice(&chunk[..length]);
    }
}

/// The request at the beginning and its length; `None` while it is incomplete.
fn parse(bytes: &[u8]) -> Option<(Request, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some((Request::Bad, 0)),
    };
    let has = |name: &str, value: &[u8]| {
        let mut named = head
            .headers
            .iter()
            .filter(|h| h.name.eq_ignore_ascii_case(name));
        named.any(|h| h.value.trim_ascii().eq_ignore_ascii_case(value))
    };
    let body = head.headers.iter().any(|h| {
        h.name.eq_ignore_ascii_case("content-length")
            || h.name.eq_ignore_ascii_case("transfer-encoding")
    });
    let keep_alive = head.version == Some(1) && !has("connection", b"close");
    let request = match (head.method, head.path) {
        _ if body => Request::Bad,
        (Some("GET"), Some("/")) => Request::Hello { keep_alive },
        _ => Request::Other { keep_alive },
    };
    Some((request, length))
}
