//! A client that knows which answers it waits for, and what is drawn.

pub use pirn_testing::below;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

pub const SERVER: &str = "server:80";

/// Sleeps for less than this number of milliseconds.
pub fn nap(millis: u64) {
    thread::sleep(Duration::from_micros(below(1000 * millis)));
}

/// A connection.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The number of the request that it says it is the answer to.
    pub id: Option<u64>,
    pub closes: bool,
    pub body: Vec<u8>,
}

fn malformed(bytes: &[u8]) -> ! {
    panic!("malformed: {:?}", String::from_utf8_lossy(bytes))
}

impl Client {
    pub fn new(stream: TcpStream) -> Client {
        Client {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Connects as soon as there is a server.
    pub fn connect() -> Client {
        loop {
            match TcpStream::connect(SERVER) {
                Ok(stream) => return Client::new(stream),
                Err(_) => nap(20),
            }
        }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends bytes, in some pieces.
    pub fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let size = match below(3) {
                0 => 1 + below(bytes.len() as u64) as usize,
                _ => bytes.len(),
            };
            self.stream.write_all(&bytes[..size])?;
            bytes = &bytes[size..];
            if below(4) == 0 {
                nap(3);
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut piece = [0; 4096];
        let size = 1 + below(4096) as usize;
        match self.stream.read(&mut piece[..size])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.buffer.extend_from_slice(&piece[..count]);
                Ok(())
            }
        }
    }

    /// Takes so many bytes.
    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            self.fill()?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|it| it == b"\r\n") {
                let line = self.take(end + 2)?;
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill()?;
        }
    }

    /// Reads the next whole answer.
    ///
    /// # Errors
    /// The connection ends before that; `UnexpectedEof` if it has been closed.
    pub fn answer(&mut self, is_head: bool) -> io::Result<Answer> {
        let (mut answer, length, chunked) = loop {
            let mut fields = [httparse::EMPTY_HEADER; 32];
            let mut head = httparse::Response::new(&mut fields);
            match head.parse(&self.buffer) {
                Ok(httparse::Status::Partial) => {}
                Err(_) => malformed(&self.buffer),
                Ok(httparse::Status::Complete(size)) => {
                    let value = |name: &str| {
                        let field = head.headers.iter().find(|it| it.name == name);
                        field.map(|it| String::from_utf8_lossy(it.value).into_owned())
                    };
                    let answer = Answer {
                        status: head.code.unwrap(),
                        id: value("x-id").map(|id| id.parse().unwrap()),
                        closes: value("connection").is_some_and(|it| it == "close"),
                        body: Vec::new(),
                    };
                    let length = value("content-length").map(|it| it.parse::<usize>().unwrap());
                    let chunked = value("transfer-encoding").is_some();
                    self.buffer.drain(..size);
                    if answer.status != 100 {
                        break (answer, length, chunked);
                    }
                    continue;
                }
            }
            self.fill()?;
        };
        if is_head || matches!(answer.status, 204 | 304) {
            return Ok(answer);
        }
        if chunked {
            loop {
                let size = self.line()?;
                let Ok(size) = usize::from_str_radix(&size, 16) else {
                    malformed(size.as_bytes())
                };
                let chunk = self.take(size)?;
                answer.body.extend(chunk);
                assert_eq!(self.line()?, "");
                if size == 0 {
                    return Ok(answer);
                }
            }
        }
        match length {
            Some(length) => answer.body = self.take(length)?,
            None => malformed(b"an answer without an end"),
        }
        Ok(answer)
    }

    /// Returns whether the server has closed the connection, and has sent no more.
    pub fn is_over(&mut self) -> bool {
        self.buffer.is_empty() && self.fill().is_err()
    }
}
