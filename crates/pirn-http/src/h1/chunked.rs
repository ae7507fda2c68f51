//! Bodies in chunks: RFC 9112, section 7.1, with no leniency.
//!
//! ```text
//!   Size --size line--> Data --data--> DataEnd --CR LF--> Size
//!     `--zero--> Trailers --empty line--> End
//! ```
//!
//! Lines end with CR LF; a size has 1 to 16 hexadecimal digits, and nothing before or after them
//! but an extension, which is ignored. A lone LF in an extension is where two programs have been
//! made to disagree (CVE-2025-55315).

use crate::fields::NO_TRAILERS;
use crate::input::Input;
use crate::refusal::Refusal;
use crate::stream::Stream;
use crate::transfer::ended_early;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::io;

/// The maximum number of bytes of all extensions of a body, and of its trailers.
const MAX_LINES: usize = 16 * 1024;
/// The maximum number of trailer fields.
const MAX_TRAILERS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Trailers,
    End,
}

/// A body that is being read.
#[derive(Debug)]
pub(crate) struct Chunked {
    state: State,
    /// How many bytes of lines may still come.
    lines_left: usize,
    trailers: Option<HeaderMap>,
}

impl Chunked {
    pub(crate) fn new() -> Chunked {
        Chunked {
            state: State::Size,
            lines_left: MAX_LINES,
            trailers: None,
        }
    }

    /// Returns whether all has been read, trailers as well.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::End
    }

    /// Returns the trailers, once all has been read.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// Reads data into `buffer`; zero: the body is over, or the buffer has no room.
    ///
    /// # Errors
    /// If reading fails, the client sends no more, or what it sends is not in chunks.
    pub(crate) fn read(
        &mut self,
        input: &mut Input,
        stream: &Stream,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        loop {
            match self.state {
                State::Size => self.read_size(input, stream)?,
                State::Data(_) if buffer.is_empty() => return Ok(0),
                State::Data(left) => {
                    let count = input.read_announced(stream, buffer, left)?;
                    self.state = match left - count as u64 {
                        0 => State::DataEnd,
                        left => State::Data(left),
                    };
                    return Ok(count);
                }
                State::DataEnd => {
                    if self.line(input, stream)? != 2 {
                        return Err(Refusal::bad("a chunk is longer than its size").into());
                    }
                    input.consume(2);
                    self.state = State::Size;
                }
                State::Trailers => self.read_trailers(input, stream)?,
                State::End => return Ok(0),
            }
        }
    }

    fn read_size(&mut self, input: &mut Input, stream: &Stream) -> io::Result<()> {
        let length = self.line(input, stream)?;
        let line = &input.unused()[..length - 2];
        let digits = line
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let rest = &line[digits..];
        let is_extension = rest.trim_ascii_start().starts_with(b";");
        if digits == 0 || digits > 16 || !(rest.is_empty() || is_extension) {
            return Err(Refusal::bad("invalid chunk size").into());
        }
        if rest
            .iter()
            .any(|&byte| byte != b'\t' && byte.is_ascii_control())
        {
            return Err(Refusal::bad("control characters in a chunk extension").into());
        }
        let size = line[..digits].iter().fold(0, |size, &digit| {
            size << 4 | u64::from((digit as char).to_digit(16).unwrap_or(0))
        });
        self.lines_left = self.lines_left.saturating_sub(rest.len());
        if self.lines_left == 0 {
            return Err(too_long().into());
        }
        input.consume(length);
        self.state = match size {
            0 => State::Trailers,
            size => State::Data(size),
        };
        Ok(())
    }

    fn read_trailers(&mut self, input: &mut Input, stream: &Stream) -> io::Result<()> {
        let length = self.line(input, stream)?;
        if length > 2 {
            self.read_trailer(&input.unused()[..length])?;
        }
        self.lines_left = self.lines_left.checked_sub(length).ok_or(too_long())?;
        input.consume(length);
        if length == 2 {
            self.state = State::End;
        }
        Ok(())
    }

    fn read_trailer(&mut self, line: &[u8]) -> io::Result<()> {
        let bad = Refusal::bad("malformed trailer");
        // `parse_headers` ends at an empty line.
        let text = [line, b"\r\n"].concat();
        let mut room = [httparse::EMPTY_HEADER; 1];
        let field = match httparse::parse_headers(&text, &mut room) {
            Ok(httparse::Status::Complete((_, [field]))) => *field,
            _ => return Err(bad.into()),
        };
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| bad)?;
        let value = HeaderValue::from_bytes(field.value.trim_ascii()).map_err(|_| bad)?;
        let trailers = self.trailers.get_or_insert_default();
        if trailers.len() == MAX_TRAILERS {
            return Err(too_long().into());
        }
        if !NO_TRAILERS.contains(&name) {
            trailers.append(name, value);
        }
        Ok(())
    }

    /// Returns the length of the next line, with its CR LF, which has been read.
    fn line(&mut self, input: &mut Input, stream: &Stream) -> io::Result<usize> {
        let mut scanned = 0;
        loop {
            let unused = input.unused();
            match memchr::memchr2(b'\r', b'\n', &unused[scanned..]).map(|at| at + scanned) {
                Some(at) if unused[at..].starts_with(b"\r\n") => return Ok(at + 2),
                Some(at) if unused[at..] != *b"\r" => {
                    return Err(Refusal::bad("a line does not end with CRLF").into());
                }
                Some(at) => scanned = at,
                None => scanned = unused.len(),
            }
            if scanned > self.lines_left {
                return Err(too_long().into());
            }
            if input.fill(stream)? == 0 {
                return Err(ended_early());
            }
        }
    }
}

fn too_long() -> Refusal {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Refusal::new(status, "chunk extensions or trailers are too long")
}

#[cfg(test)]
mod tests;
