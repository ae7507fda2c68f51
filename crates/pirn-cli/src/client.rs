//! A blocking HTTP/1.1 client: one connection, one request at a time.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::server::HELLO;

/// The number of bytes read at once: more than any response of our server, and few on a stack.
const CHUNK: usize = 512;

/// Why a request has no valid response.
#[derive(Debug)]
pub enum Failure {
    /// A call failed: the action, and its error.
    Io(&'static str, io::Error),
    /// The server closed the connection before it had answered, or reset it.
    Closed,
    /// The response was not the expected one.
    BadResponse(String),
}

impl Failure {
    /// Returns the failure of a call on a connection.
    fn of(doing: &'static str, error: io::Error) -> Failure {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Io(doing, error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A read that timed out says "Resource temporarily unavailable", which helps no user.
            Failure::Io(doing, error) if error.kind() == ErrorKind::WouldBlock => {
                write!(f, "{doing}: timed out")
            }
            Failure::Io(doing, error) => write!(f, "{doing}: {error}"),
            Failure::Closed => write!(f, "closed by the server before it had answered"),
            Failure::BadResponse(what) => write!(f, "bad response: {what}"),
        }
    }
}

/// A connection to a server.
pub struct Client {
    stream: TcpStream,
    host: SocketAddr,
}

impl Client {
    /// Connects. No single read of a response may later take longer than `timeout`.
    pub fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, Failure> {
        let io = |error| Failure::Io("connect", error);
        let stream = TcpStream::connect(address).map_err(io)?;
        stream.set_nodelay(true).map_err(io)?;
        stream.set_read_timeout(Some(timeout)).map_err(io)?;
        Ok(Client {
            stream,
            host: address,
        })
    }

    /// Asks for `path` and reads the whole response, which must be the server's greeting.
    pub fn get(&mut self, path: &str) -> Result<(), Failure> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream
            .write_all(request.as_bytes())
            .map_err(|error| Failure::of("write", error))?;
        self.read_response()
    }

    fn read_response(&mut self) -> Result<(), Failure> {
        let mut response = Vec::new();
        let mut chunk = [0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) => return Err(Failure::Closed),
                Ok(length) => response.extend_from_slice(&chunk[..length]),
                Err(error) => return Err(Failure::of("read", error)),
            }
            if is_complete(&response)? {
                return Ok(());
            }
        }
    }
}

/// Returns whether `bytes` are the whole response; `false` while they may still become it.
fn is_complete(bytes: &[u8]) -> Result<bool, Failure> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(false),
        Err(error) => return Err(Failure::BadResponse(error.to_string())),
    };
    match head.code {
        Some(200) => {}
        code => {
            let code = code.unwrap_or_default();
            return Err(Failure::BadResponse(format!("status {code}")));
        }
    }
    let expected = head
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok())
        .ok_or_else(|| Failure::BadResponse("no Content-Length".into()))?;
    let body = &bytes[length..];
    if body.len() < expected {
        return Ok(false);
    }
    if body != HELLO.as_bytes() {
        let body = String::from_utf8_lossy(body);
        return Err(Failure::BadResponse(format!("the body is {body:?}")));
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
