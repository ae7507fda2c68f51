//! A client inside the process, for tests.

use super::{Handlers, serve};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::fmt;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A client for tests: see [`Server::client`](crate::Server::client).
pub struct Client {
    handlers: Arc<Handlers>,
}

/// What a server has answered to a [`Client`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the body as text. Bytes that are not UTF-8 become `U+FFFD`.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) fn new(handlers: Arc<Handlers>) -> Client {
        Client { handlers }
    }

    /// Makes a request without a body.
    ///
    /// # Panics
    /// If what the server sends is not an answer.
    pub fn get(&self, target: &str) -> Answer {
        self.request(Method::GET, target, &[], b"")
    }

    /// Makes a request with a body.
    ///
    /// # Panics
    /// If what the server sends is not an answer.
    pub fn post(&self, target: &str, body: impl AsRef<[u8]>) -> Answer {
        self.request(Method::POST, target, &[], body.as_ref())
    }

    /// Makes a request with any method and header fields.
    ///
    /// # Panics
    /// If what the server sends is not an answer.
    pub fn request(
        &self,
        method: Method,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut text = Vec::new();
        let _ = write!(
            text,
            "{method} {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n"
        );
        for (name, value) in fields {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if !body.is_empty() {
            let _ = write!(text, "content-length: {}\r\n", body.len());
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(body);
        let all = self.send(&text);
        parse(&all, &method).unwrap_or_else(|| {
            panic!("this is no answer: {:?}", String::from_utf8_lossy(&all));
        })
    }

    /// Sends these bytes on a connection of their own, and no more. Returns all that comes back
    /// until the server closes the connection.
    ///
    /// # Panics
    /// If there are no descriptors for the connection.
    pub fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let (ours, server) = UnixStream::pair().expect("descriptors for a pair of sockets");
        serve(server, &self.handlers);
        let mut all = Vec::new();
        pirn::thread::scope(|scope| {
            // Failure: the server reads no more, or closes the connection with bytes unread.
            scope.spawn(|| {
                let _ = (&ours).write_all(bytes);
                let _ = ours.shutdown(Shutdown::Write);
            });
            let _ = (&ours).read_to_end(&mut all);
        });
        all
    }
}

fn parse(all: &[u8], method: &Method) -> Option<Answer> {
    let mut rest = all;
    loop {
        let mut room = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut room);
        let httparse::Status::Complete(length) = head.parse(rest).ok()? else {
            return None;
        };
        let status = StatusCode::from_u16(head.code?).ok()?;
        let mut headers = HeaderMap::new();
        for field in head.headers {
            let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
        }
        rest = &rest[length..];
        if status.is_informational() {
            continue;
        }
        let chunked = headers.contains_key(http::header::TRANSFER_ENCODING);
        let body = match chunked && *method != Method::HEAD {
            true => unchunk(rest)?,
            false => rest.to_vec(),
        };
        return Some(Answer {
            status,
            headers,
            body,
        });
    }
}

/// Returns the data of complete chunks; `None` if the last one is missing.
fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    loop {
        let (start, size) = match httparse::parse_chunk_size(rest).ok()? {
            httparse::Status::Complete((start, size)) => (start, size as usize),
            httparse::Status::Partial => return None,
        };
        if size == 0 {
            return Some(data);
        }
        data.extend_from_slice(rest.get(start..start + size)?);
        rest = rest.get(start + size + 2..)?;
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
