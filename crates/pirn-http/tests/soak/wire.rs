//! What goes over the wire: bodies that show whose they are, and a client's side of HTTP/1.1.

use std::io::{self, Read, Write};

/// A body without end, of whose bytes each depends on its number and its place.
pub(crate) struct Pattern {
    number: u64,
    position: u64,
}

impl Pattern {
    pub(crate) fn new(number: u64) -> Pattern {
        Pattern::at(number, 0)
    }

    pub(crate) fn at(number: u64, position: u64) -> Pattern {
        Pattern { number, position }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns whether these are the next bytes.
    pub(crate) fn is_next(&mut self, bytes: &[u8]) -> bool {
        let mut own = vec![0; bytes.len()];
        self.read_exact(&mut own).is_ok() && own == bytes
    }

    /// Returns the first bytes of a body.
    pub(crate) fn bytes(number: u64, length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let whole = Pattern::new(number).take(length).read_to_end(&mut bytes);
        whole.unwrap();
        bytes
    }
}

impl Read for Pattern {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = &mut *buffer;
        while !rest.is_empty() {
            let word = (self.number << 24) ^ (self.position >> 3);
            let word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let of_word = &word[(self.position & 7) as usize..];
            let count = of_word.len().min(rest.len());
            let (piece, after) = rest.split_at_mut(count);
            piece.copy_from_slice(&of_word[..count]);
            self.position += count as u64;
            rest = after;
        }
        Ok(buffer.len())
    }
}

/// A client's side of a connection.
pub(crate) struct Line<S> {
    pub(crate) stream: S,
    /// What has come, and is not used yet.
    unused: Vec<u8>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl<S: Read + Write> Line<S> {
    pub(crate) fn new(stream: S) -> Line<S> {
        let unused = Vec::new();
        Line { stream, unused }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
        self.stream.flush().expect("the server reads");
    }

    /// Reads an answer. Interim ones are skipped.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        loop {
            let (status, length) = self.head()?;
            let body = match (status, length) {
                (100..200, _) => continue,
                (_, Some(length)) => self.take(length)?,
                (_, None) => self.chunks()?,
            };
            return Ok(Answer { status, body });
        }
    }

    /// Reads an answer, which must be this.
    pub(crate) fn expect(&mut self, status: u16, body: &[u8]) {
        let answer = self.answer().expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.body == body, "not my answer: {}", answer.text());
    }

    /// Returns an answer's status and the length of its body; `None`: it is in chunks.
    fn head(&mut self) -> io::Result<(u16, Option<usize>)> {
        let end = self.until(b"\r\n\r\n")?;
        let head = Vec::from_iter(self.unused.drain(..end));
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut parsed = httparse::Response::new(&mut fields);
        assert!(parsed.parse(&head).expect("a head").is_complete());
        let fields = &mut parsed.headers.iter();
        let length = fields.find(|field| field.name == "content-length");
        let length = length.map(|field| str::from_utf8(field.value).unwrap().parse().unwrap());
        Ok((parsed.code.unwrap(), length))
    }

    /// Reads until there is this, and returns where that ends.
    fn until(&mut self, end: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.unused, end) {
                return Ok(at + end.len());
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> io::Result<()> {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.unused.extend_from_slice(&piece[..count]);
                Ok(())
            }
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unused.len() < length {
            self.more()?;
        }
        Ok(Vec::from_iter(self.unused.drain(..length)))
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = self.until(b"\r\n")?;
            let line = Vec::from_iter(self.unused.drain(..end));
            let digits = str::from_utf8(line.trim_ascii()).unwrap();
            let size = usize::from_str_radix(digits, 16).expect("a chunk's size");
            body.append(&mut self.take(size)?);
            assert_eq!(self.take(2)?, b"\r\n");
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads until the server has closed the connection, and returns what came.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        while self.more().is_ok() {}
        self.unused
    }
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        let start = &self.body[..self.body.len().min(100)];
        String::from_utf8_lossy(start).into_owned()
    }
}
