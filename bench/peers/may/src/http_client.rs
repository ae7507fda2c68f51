//! A minimal HTTP client over may's sockets, with a pool of kept-alive connections.
//!
//! No published HTTP client works with `may::net`, so a user of may writes something like this.

use httparse::{EMPTY_HEADER, Header, Status};
use may::net::TcpStream;
use may::sync::Mutex;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// Speaks to one server.
pub struct Client {
    server: SocketAddr,
    idle: Mutex<Vec<TcpStream>>,
}

impl Client {
    pub fn new(server: SocketAddr) -> Client {
        Client {
            server,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// The body of the answer to a `GET`.
    pub fn get(&self, path: &str) -> io::Result<Vec<u8>> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.server);
        // The server may have closed an idle connection meanwhile; then another one is tried.
        while let Some(stream) = self.take_idle() {
            if let Ok(body) = self.exchange(stream, &request) {
                return Ok(body);
            }
        }
        let stream = TcpStream::connect(self.server)?;
        stream.set_nodelay(true)?;
        self.exchange(stream, &request)
    }

    fn take_idle(&self) -> Option<TcpStream> {
        self.idle.lock().unwrap().pop()
    }

    fn exchange(&self, mut stream: TcpStream, request: &str) -> io::Result<Vec<u8>> {
        stream.write_all(request.as_bytes())?;
        let mut received = Vec::with_capacity(1024);
        let head = loop {
            read_more(&mut stream, &mut received)?;
            if let Some(head) = parse_head(&received)? {
                break head;
            }
        };
        let end = head.length + head.body_length;
        while received.len() < end {
            read_more(&mut stream, &mut received)?;
        }
        if head.keeps_alive && received.len() == end {
            self.idle.lock().unwrap().push(stream);
        }
        received.truncate(end);
        Ok(received.split_off(head.length))
    }
}

fn read_more(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 1024];
    match stream.read(&mut buffer)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        length => {
            received.extend_from_slice(&buffer[..length]);
            Ok(())
        }
    }
}

/// What matters of the beginning of an answer.
struct Head {
    length: usize,
    body_length: usize,
    keeps_alive: bool,
}

/// Nothing as long as it is incomplete.
fn parse_head(received: &[u8]) -> io::Result<Option<Head>> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let Status::Complete(length) = response.parse(received).map_err(io::Error::other)? else {
        return Ok(None);
    };
    match response.code {
        Some(200) => {}
        other => return Err(io::Error::other(format!("the server answered {other:?}"))),
    }
    let body_length = header(response.headers, "content-length").and_then(|text| text.parse().ok());
    let closes = header(response.headers, "connection")
        .is_some_and(|text| text.eq_ignore_ascii_case("close"));
    Ok(Some(Head {
        length,
        body_length: body_length.ok_or_else(|| io::Error::other("no content-length"))?,
        keeps_alive: !closes,
    }))
}

fn header<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a str> {
    let header = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(header.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_head_is_none() {
        let head = parse_head(b"HTTP/1.1 200 OK\r\nContent-Le").unwrap();
        assert!(head.is_none());
    }

    #[test]
    fn a_head_says_how_long_it_and_the_body_are_and_whether_the_connection_lives() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\nHello";
        let head = parse_head(text).unwrap().unwrap();
        assert_eq!((head.length, head.body_length), (text.len() - 5, 13));
        assert!(head.keeps_alive);

        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n";
        assert!(!parse_head(text).unwrap().unwrap().keeps_alive);
    }

    #[test]
    fn other_answers_are_errors() {
        assert!(parse_head(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(parse_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
