//! An answer of the other server, as it comes: RFC 9112, sections 4, 6 and 7, with no leniency
//! where its end is concerned.

use std::io::{self, Read, Write};

use pirn_http::header::{CONNECTION, TRANSFER_ENCODING};
use pirn_http::{HeaderMap, HeaderName, HeaderValue, Method, Status};

use crate::framing;
use crate::origin::Connection;
use crate::proxy::Failure;
use crate::retry::retry;

/// The maximum length of a head, and of the lines of chunks.
const MAX_HEAD: usize = 64 * 1024;
/// The maximum number of fields.
const MAX_FIELDS: usize = 256;
/// How many bytes are read, and passed on, at once.
const PIECE: usize = 32 * 1024;

/// The head of an answer.
pub(super) struct Head {
    pub(super) status: Status,
    pub(super) headers: HeaderMap,
    /// The connection is not used for another request.
    pub(super) closes: bool,
}

impl Head {
    /// Returns whether no more of a request's body is wanted: RFC 9112, section 9.5. The connection
    /// may end with the answer even so.
    pub(super) fn has_enough(&self) -> bool {
        self.status.as_u16() >= 300
    }
}

/// The bytes of a connection that have come and have not been taken.
#[derive(Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    used: usize,
    /// Something has come.
    pub(super) has_come: bool,
}

impl Incoming {
    pub(super) fn unused(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// Waits for more. Returns whether there is some.
    fn receive(&mut self, mut connection: &Connection) -> io::Result<bool> {
        self.bytes.drain(..self.used);
        self.used = 0;
        let length = self.bytes.len();
        self.bytes.resize(length + PIECE, 0);
        let count = retry(|| connection.read(&mut self.bytes[length..]));
        self.bytes.truncate(length + *count.as_ref().unwrap_or(&0));
        self.has_come |= self.bytes.len() > length;
        Ok(count? > 0)
    }

    /// Waits for the head of an answer; interim ones are left out (RFC 9110, section 15.2). It can
    /// go on after an interrupt.
    ///
    /// # Errors
    /// `InvalidData` if what comes is no answer, `UnexpectedEof` if it ends before.
    pub(super) fn head(&mut self, connection: &Connection) -> io::Result<Head> {
        loop {
            match parse(self.unused())? {
                Some((head, length)) => {
                    self.used += length;
                    if !head.status.is_informational() || head.status == Status::SWITCHING_PROTOCOLS
                    {
                        return Ok(head);
                    }
                }
                None if self.unused().len() > MAX_HEAD => return Err(bad("its head is too long")),
                None if !self.receive(connection)? => return Err(ended()),
                None => {}
            }
        }
    }

    /// Returns the next line, without its end.
    fn line(&mut self, connection: &Connection) -> io::Result<&[u8]> {
        loop {
            let unused = self.unused();
            if let Some(end) = unused.iter().position(|&byte| byte == b'\n') {
                let start = self.used;
                self.used += end + 1;
                let line = self.bytes[start..start + end].strip_suffix(b"\r");
                return line.ok_or_else(|| bad("a line of a chunk does not end with CR LF"));
            }
            if unused.len() > MAX_HEAD {
                return Err(bad("a line of a chunk is too long"));
            }
            if !self.receive(connection)? {
                return Err(ended());
            }
        }
    }

    /// Reads bytes of a body; zero: there are no more.
    fn read(&mut self, connection: &Connection, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unused().is_empty() && !self.receive(connection)? {
            return Ok(0);
        }
        let count = buffer.len().min(self.unused().len());
        buffer[..count].copy_from_slice(&self.unused()[..count]);
        self.used += count;
        Ok(count)
    }
}

fn bad(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn ended() -> io::Error {
    let why = "it has closed the connection before the end of its answer";
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

/// Returns a head and its length, once all of it has come.
fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let invalid = |error: httparse::Error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = head.parse(bytes).map_err(invalid)? else {
        return Ok(None);
    };
    let mut headers = HeaderMap::new();
    for field in head.headers.iter() {
        let name = HeaderName::try_from(field.name);
        let value = HeaderValue::from_bytes(field.value);
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let status = Status::from_u16(head.code.unwrap_or_default());
    let says_so = headers.get_all(CONNECTION).iter().any(|value| {
        let mut options = value.as_bytes().split(|&byte| byte == b',');
        options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    });
    let head = Head {
        status: status.map_err(|_| bad("its status is not a number from 100 to 999"))?,
        headers,
        closes: says_so || head.version != Some(1),
    };
    Ok(Some((head, length)))
}

/// The part of a body that the other server has not sent yet.
enum Rest {
    Nothing,
    Length(u64),
    /// A chunk's size.
    Size,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The end of a chunk's line.
    ChunkEnd,
    UntilClose,
}

/// The body of an answer.
pub(super) struct Body<'c> {
    pub(super) connection: &'c Connection,
    incoming: &'c mut Incoming,
    rest: Rest,
    /// The length that the head announces.
    pub(super) length: Option<u64>,
    closes: bool,
}

impl<'c> Body<'c> {
    /// Returns the body of the answer to a request with this method.
    ///
    /// # Errors
    /// If two readers of the head could find the body's end in two places.
    pub(super) fn new(
        head: &Head,
        connection: &'c Connection,
        incoming: &'c mut Incoming,
        method: &Method,
    ) -> io::Result<Body<'c>> {
        let length = framing::length(head.status, &head.headers).map_err(bad)?;
        let has_none = [Status::NO_CONTENT, Status::NOT_MODIFIED].contains(&head.status);
        let rest = match length {
            _ if has_none || *method == Method::HEAD => Rest::Nothing,
            Some(length) => Rest::Length(length),
            None if head.headers.contains_key(TRANSFER_ENCODING) => Rest::Size,
            None => Rest::UntilClose,
        };
        Ok(Body {
            connection,
            incoming,
            rest,
            length,
            closes: head.closes,
        })
    }

    /// Returns whether all has been read.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.rest, Rest::Nothing | Rest::Length(0))
    }

    /// Returns whether the next read may have to wait for the other server.
    fn may_wait(&self) -> bool {
        let unused = self.incoming.unused();
        match self.rest {
            Rest::Nothing | Rest::Length(0) => false,
            Rest::Length(_) | Rest::Chunk(_) | Rest::UntilClose => unused.is_empty(),
            // The proxy knows whether the last chunk has come, but not how much of the others.
            Rest::ChunkEnd => unused != b"\r\n0\r\n\r\n",
            Rest::Size => unused != b"0\r\n\r\n",
        }
    }

    /// Returns whether the connection can take another request, if it has got all of this one.
    pub(super) fn is_clean(&self) -> bool {
        !self.closes && self.is_over() && self.incoming.unused().is_empty()
    }

    /// Passes it on as it comes.
    pub(super) fn pass_on(&mut self, to: &mut impl Write) -> Result<(), Failure> {
        let connection = self.connection;
        let mut piece = vec![0; PIECE];
        loop {
            if self.may_wait() {
                // More may come only after the client has seen this.
                let flushed = connection.while_passing(|| to.flush());
                flushed.map_err(Failure::NotTaken)?;
            }
            match retry(|| self.read(&mut piece)).map_err(Failure::NoAnswer)? {
                0 => return Ok(()),
                count => {
                    let passed = connection.while_passing(|| to.write_all(&piece[..count]));
                    passed.map_err(Failure::NotTaken)?;
                }
            }
        }
    }

    fn read_size(&mut self) -> io::Result<()> {
        let line = self.incoming.line(self.connection)?;
        let digits = line.split(|byte| b"; \t".contains(byte)).next();
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let rest = line[digits.map_or(0, str::len)..].trim_ascii();
        let size = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        self.rest = match size {
            Some(_) if !rest.is_empty() && rest[0] != b';' => return Err(bad_size()),
            Some(0) => {
                let mut length = 0;
                while let trailer @ 1.. = self.incoming.line(self.connection)?.len() {
                    length += trailer; // Trailers are left out.
                    if length > MAX_HEAD {
                        return Err(bad("its trailers are too long"));
                    }
                }
                Rest::Nothing
            }
            Some(size) => Rest::Chunk(size),
            None => return Err(bad_size()),
        };
        Ok(())
    }
}

fn bad_size() -> io::Error {
    bad("invalid chunk size")
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Rest::ChunkEnd = self.rest {
            if !self.incoming.line(self.connection)?.is_empty() {
                return Err(bad("a chunk is longer than its size"));
            }
            self.rest = Rest::Size;
        }
        if let Rest::Size = self.rest {
            self.read_size()?;
        }
        let most = match self.rest {
            Rest::Length(left) | Rest::Chunk(left) => left,
            Rest::UntilClose => u64::MAX,
            Rest::Nothing | Rest::Size | Rest::ChunkEnd => 0,
        };
        let room = buffer
            .len()
            .min(usize::try_from(most).unwrap_or(usize::MAX));
        if room == 0 {
            return Ok(0);
        }
        let count = self.incoming.read(self.connection, &mut buffer[..room])?;
        match &mut self.rest {
            Rest::UntilClose if count == 0 => self.rest = Rest::Nothing,
            _ if count == 0 => return Err(ended()),
            Rest::Chunk(left) if *left == count as u64 => self.rest = Rest::ChunkEnd,
            Rest::Length(left) | Rest::Chunk(left) => *left -= count as u64,
            _ => {}
        }
        Ok(count)
    }
}
