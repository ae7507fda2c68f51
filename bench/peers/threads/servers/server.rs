//! A thread-per-connection HTTP/1.1 server, as in a textbook on blocking I/O.
//!
//! One thread accepts; each connection gets its own thread, which reads a request, handles it,
//! writes the response, and starts over until the client is done. Every call simply blocks. Nothing
//! here knows whose threads they are: `crate::thread` does.
//!
//! `GET /` waits for the configured delay, as for a database, and answers `Hello, World!`. `GET
//! /health` answers at once.

use crate::thread::{self, Builder};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// The response body of `GET /`.
const HELLO: &str = "Hello, World!";

/// The maximum length of a request head.
const MAX_HEAD: usize = 8 * 1024;

/// The maximum number of headers of a request.
const MAX_HEADERS: usize = 32;

/// The number of bytes read at once. They are on the stack of each connection's thread, so they are
/// few.
const CHUNK: usize = 1024;

/// The room for a response, which has fewer bytes.
const ANSWER: usize = 256;

/// How long to wait for the client to see that its request was refused.
const LINGER: Duration = Duration::from_millis(500);

/// How many bytes a refused client may still send before it is cut off.
const LINGER_BYTES: usize = 1024 * 1024;

/// The number of connections that may wait to be accepted: as many as the system allows by default
/// (`net.core.somaxconn`). `std` asks for 128; a client that comes while that many are waiting gets
/// no answer for a second.
const BACKLOG: i32 = 4096;

/// Listens on an address, with room for many clients.
///
/// # Errors
/// If the address is not available.
pub fn listen(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    rustix::net::listen(&listener, BACKLOG)?; // it listens already: this changes the number
    Ok(listener)
}

/// Accepts connections, for ever, and serves each on its own thread. The handler waits for `delay`.
pub fn serve(listener: &TcpListener, delay: Duration) {
    for accepted in listener.incoming() {
        match accepted {
            Ok(stream) => start(stream, delay),
            // The client is gone already, or no descriptors are left until other connections close.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Serves one connection on its own thread, or refuses it if no thread can be started.
fn start(stream: TcpStream, delay: Duration) {
    let stream = Arc::new(stream);
    let for_thread = Arc::clone(&stream);
    let started = Builder::new().spawn(move || {
        // An I/O error means that the client is gone, so it cannot be told.
        let _ = Connection::new(&for_thread, delay).serve();
    });
    if started.is_err() {
        let _ = Connection::new(&stream, delay).send(&Response::close(UNAVAILABLE));
    }
}

/// One connection: the socket and the bytes that have been read from it but not used yet.
struct Connection<'a> {
    stream: &'a TcpStream,
    pending: Vec<u8>,
    delay: Duration,
}

/// Why there is no request.
enum NoRequest {
    /// The client has closed the connection.
    Closed,
    /// The client's bytes are answered with this error.
    Refused(Status),
    /// The connection is broken.
    Broken(io::Error),
}

impl<'a> Connection<'a> {
    fn new(stream: &'a TcpStream, delay: Duration) -> Self {
        Connection {
            stream,
            pending: Vec::new(),
            delay,
        }
    }

    /// Serves requests until the client is done.
    fn serve(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        loop {
            match self.next_request() {
                Ok(request) => {
                    self.send(&self.handle(&request))?;
                    if !request.keep_alive {
                        return self.part();
                    }
                }
                Err(NoRequest::Closed) => return Ok(()),
                Err(NoRequest::Refused(status)) => {
                    self.send(&Response::close(status))?;
                    return self.linger();
                }
                Err(NoRequest::Broken(error)) => return Err(error),
            }
        }
    }

    /// Handles a request.
    fn handle(&self, request: &Request) -> Response {
        let status = match (request.method, request.target) {
            (Method::Other, Target::Hello | Target::Health) => METHOD_NOT_ALLOWED,
            (_, Target::Hello) => {
                thread::sleep(self.delay);
                OK
            }
            (_, Target::Health) => OK,
            (_, Target::Unknown) => NOT_FOUND,
        };
        Response::to(request, status)
    }

    /// Reads the next request, and its body, which this server ignores.
    fn next_request(&mut self) -> Result<Request, NoRequest> {
        let (request, length) = loop {
            match Request::parse(&self.pending).map_err(NoRequest::Refused)? {
                Some(head) => break head,
                None if self.pending.len() >= MAX_HEAD => {
                    return Err(NoRequest::Refused(HEAD_TOO_LARGE));
                }
                None if self.fill().map_err(NoRequest::Broken)? => {}
                None if self.pending.trim_ascii().is_empty() => return Err(NoRequest::Closed),
                None => return Err(NoRequest::Refused(BAD_REQUEST)),
            }
        };
        self.pending.drain(..length);
        self.discard_body(&request).map_err(NoRequest::Broken)?;
        if self.pending.is_empty() && self.pending.capacity() > CHUNK {
            self.pending = Vec::new(); // an idle connection holds no large buffer
        }
        Ok(request)
    }

    fn discard_body(&mut self, request: &Request) -> io::Result<()> {
        let mut left = request.content_length;
        if request.expects_continue && left > 0 {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        loop {
            let here = self
                .pending
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            self.pending.drain(..here);
            left -= here as u64;
            if left == 0 {
                return Ok(());
            }
            if !self.fill()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads a few more bytes; `false` at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; CHUNK];
        let length = retry(|| self.stream.read(&mut chunk))?;
        self.pending.extend_from_slice(&chunk[..length]);
        Ok(length > 0)
    }

    fn send(&mut self, response: &Response) -> io::Result<()> {
        let mut text = Vec::with_capacity(ANSWER);
        write!(text, "{response}")?;
        self.stream.write_all(&text)
    }

    /// Ends the connection of a client that has said that it makes no more requests (RFC 9112,
    /// section 9.6). Unless it has sent more all the same, nothing is unread, and the server need
    /// not wait for it.
    fn part(&mut self) -> io::Result<()> {
        match self.pending.is_empty() {
            true => Ok(()),
            false => self.linger(),
        }
    }

    /// Waits, within bounds, until the client has closed its side: closing a socket that has unread
    /// bytes resets the connection, and the client may then never see the response.
    fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.stream.set_read_timeout(Some(LINGER))?;
        for _ in 0..LINGER_BYTES / CHUNK {
            self.pending.clear();
            if !self.fill()? {
                break;
            }
        }
        Ok(())
    }
}

/// Calls `call` until no signal's handler has interrupted it.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The parts of a request that this server needs.
#[derive(Debug, PartialEq)]
struct Request {
    method: Method,
    target: Target,
    content_length: u64,
    keep_alive: bool,
    /// HTTP/1.0, where both sides must agree to keep a connection.
    old: bool,
    expects_continue: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Get,
    Head,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Hello,
    Health,
    Unknown,
}

impl Request {
    /// Parses a request head. Returns the request and the head's length in bytes, `None` while it
    /// is incomplete, or the status with which to refuse it.
    fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Status> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(HEAD_TOO_LARGE),
            Err(_) => return Err(BAD_REQUEST),
        };
        let old = head.version == Some(0);
        let mut request = Request {
            method: match head.method {
                Some("GET") => Method::Get,
                Some("HEAD") => Method::Head,
                _ => Method::Other,
            },
            target: match head.path.and_then(|path| path.split('?').next()) {
                Some("/") => Target::Hello,
                Some("/health") => Target::Health,
                _ => Target::Unknown,
            },
            content_length: 0,
            keep_alive: !old,
            old,
            expects_continue: false,
        };
        request.read_headers(head.headers)?;
        Ok(Some((request, length)))
    }

    fn read_headers(&mut self, headers: &[httparse::Header<'_>]) -> Result<(), Status> {
        let mut hosts = 0;
        let mut content_length = None;
        for header in headers {
            let value = header.value.trim_ascii();
            if header.name.eq_ignore_ascii_case("host") {
                hosts += 1;
            } else if header.name.eq_ignore_ascii_case("content-length") {
                let length = parse_decimal(value).ok_or(BAD_REQUEST)?;
                if content_length.replace(length).is_some() {
                    return Err(BAD_REQUEST);
                }
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(LENGTH_REQUIRED);
            } else if header.name.eq_ignore_ascii_case("expect") {
                self.expects_continue = !self.old && value.eq_ignore_ascii_case(b"100-continue");
            } else if header.name.eq_ignore_ascii_case("connection") {
                for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    if option.eq_ignore_ascii_case(b"close") {
                        self.keep_alive = false;
                    } else if self.old && option.eq_ignore_ascii_case(b"keep-alive") {
                        self.keep_alive = true;
                    }
                }
            }
        }
        if hosts > 1 || (hosts == 0 && !self.old) {
            return Err(BAD_REQUEST); // RFC 9112, section 3.2
        }
        self.content_length = content_length.unwrap_or(0);
        Ok(())
    }
}

/// Parses digits only: unlike `str::parse`, no sign.
fn parse_decimal(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Status(u16, &'static str);

const OK: Status = Status(200, "OK");
const BAD_REQUEST: Status = Status(400, "Bad Request");
const NOT_FOUND: Status = Status(404, "Not Found");
const METHOD_NOT_ALLOWED: Status = Status(405, "Method Not Allowed");
const LENGTH_REQUIRED: Status = Status(411, "Length Required");
const HEAD_TOO_LARGE: Status = Status(431, "Request Header Fields Too Large");
const UNAVAILABLE: Status = Status(503, "Service Unavailable");

/// A response; its `Display` writes its bytes.
struct Response {
    status: Status,
    /// The value of the `Connection` header, if one is needed.
    connection: Option<&'static str>,
    with_body: bool,
}

impl Response {
    /// Returns the response to a valid request.
    fn to(request: &Request, status: Status) -> Self {
        Response {
            status,
            connection: match (request.keep_alive, request.old) {
                (false, _) => Some("close"),
                (true, true) => Some("keep-alive"),
                (true, false) => None,
            },
            with_body: request.method != Method::Head,
        }
    }

    /// Returns a response after which the connection is closed, whatever the request was.
    fn close(status: Status) -> Self {
        Response {
            status,
            connection: Some("close"),
            with_body: true,
        }
    }
}

impl std::fmt::Display for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Status(code, reason) = self.status;
        let body = if self.status == OK { HELLO } else { reason };
        write!(f, "HTTP/1.1 {code} {reason}\r\n")?;
        write!(f, "Content-Type: text/plain\r\n")?;
        write!(f, "Content-Length: {}\r\n", body.len())?;
        if self.status == METHOD_NOT_ALLOWED {
            write!(f, "Allow: GET, HEAD\r\n")?;
        }
        if let Some(connection) = self.connection {
            write!(f, "Connection: {connection}\r\n")?;
        }
        write!(f, "\r\n{}", if self.with_body { body } else { "" })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
