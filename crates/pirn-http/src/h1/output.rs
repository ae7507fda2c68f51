//! What goes to a client: heads, and bodies in the framing that their heads announce.
//!
//! Bytes are collected. They are written before the connection reads again or waits, and when there
//! are many: so the answers to requests that came together leave together, and a head leaves with
//! its body.
//!
//! The bytes that are collected of a body in chunks become one chunk, in however many pieces the
//! handler has written them. The size of the chunk is known at its end only, so there is room for
//! four digits before it:
//!
//! ```text
//!   ... head | 0 0 0 0 CR LF | data data data ...
//!              ^ chunk         the digits are written when the chunk is closed
//! ```

use crate::date;
use crate::fields::NO_TRAILERS;
use crate::stream::Stream;
use crate::transfer;
use http::header::{
    CONNECTION, CONTENT_LENGTH, DATE, HeaderMap, HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use http::{StatusCode, Version};
use std::io::{self, Write};

/// More bytes than this are not collected, so that four digits are enough for a chunk of them.
const ENOUGH: usize = 16 * 1024;

/// The room that most heads need, and with them a small body.
const HEAD: usize = 256;

/// The first bytes of a chunk while it is collected.
const OPEN_CHUNK: &[u8] = b"0000\r\n";

/// The length that a response's head announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    /// The response has no body, and its head announces no length: 1xx, 204, 205, 304.
    None,
    /// This number of bytes.
    Known(u64),
    /// In chunks, or, to a client of HTTP/1.0, until the connection is closed.
    Unknown,
}

/// How the body that follows is framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// No bytes are sent, whatever is written: HEAD, 1xx, 204, 205, 304.
    Omitted,
    /// How many bytes are still to be sent.
    Left(u64),
    Chunks,
    /// All that is written until the connection is closed.
    UntilClose,
}

/// The properties of a request on which the framing of its answer depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) version: Version,
    pub(crate) is_head: bool,
    /// The connection may be used again.
    pub(crate) keep_alive: bool,
}

impl Asked {
    /// There is no request.
    pub(super) const NOTHING: Asked = Asked {
        version: Version::HTTP_11,
        is_head: false,
        keep_alive: false,
    };
}

/// See the module's documentation.
#[derive(Default, Debug)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// Where the chunk that is being collected begins.
    chunk: Option<usize>,
    date: date::Last,
}

impl Output {
    /// Adds a head. Returns how the body is framed. Only the server says how the message is framed:
    /// a handler's fields that say it are left out.
    pub(crate) fn head(
        &mut self,
        asked: &Asked,
        status: StatusCode,
        headers: &HeaderMap,
        length: Length,
    ) -> Body {
        let out = &mut self.bytes;
        status_line(out, status);
        let (mut has_date, mut has_upgrade) = (false, false);
        for (name, value) in headers {
            if *name != CONNECTION && *name != TRANSFER_ENCODING && *name != CONTENT_LENGTH {
                field(out, name.as_str(), value);
                has_date |= *name == DATE;
                has_upgrade |= *name == UPGRADE;
            }
        }
        if status == StatusCode::RESET_CONTENT {
            out.extend_from_slice(b"content-length: 0\r\n"); // RFC 9110, section 15.3.6.
        }
        if !has_date && !status.is_informational() {
            out.extend_from_slice(b"date: ");
            out.extend_from_slice(self.date.now());
            out.extend_from_slice(b"\r\n");
        }
        let body = framing(out, asked, length);
        let closes = !asked.keep_alive || body == Body::UntilClose;
        if has_upgrade && (status.is_informational() || !closes) {
            out.extend_from_slice(b"connection: upgrade\r\n");
        } else if has_upgrade {
            out.extend_from_slice(b"connection: upgrade, close\r\n");
        } else if closes {
            out.extend_from_slice(b"connection: close\r\n");
        } else if asked.version == Version::HTTP_10 {
            out.extend_from_slice(b"connection: keep-alive\r\n");
        }
        out.extend_from_slice(b"\r\n");
        match asked.is_head {
            true => Body::Omitted,
            false => body,
        }
    }

    /// Adds `100 Continue`, and writes it.
    pub(crate) fn go_on(&mut self, stream: &Stream) -> io::Result<()> {
        self.bytes
            .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        self.flush(stream)
    }

    /// Adds bytes of a body, framed.
    ///
    /// # Errors
    /// If writing fails, or there are more bytes than the head has announced.
    pub(crate) fn body(
        &mut self,
        stream: &Stream,
        framing: &mut Body,
        bytes: &[u8],
    ) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(()); // A chunk of no bytes would end the body.
        }
        match framing {
            Body::Omitted => Ok(()),
            Body::UntilClose => self.raw(stream, bytes),
            Body::Left(left) => {
                transfer::take_off(left, bytes.len())?;
                self.raw(stream, bytes)
            }
            Body::Chunks if self.has_room(bytes.len()) => {
                if self.chunk.is_none() {
                    self.chunk = Some(self.bytes.len());
                    self.bytes.extend_from_slice(OPEN_CHUNK);
                }
                self.bytes.extend_from_slice(bytes);
                Ok(())
            }
            Body::Chunks => {
                self.close_chunk();
                // Writing to a vector does not fail.
                let _ = write!(self.bytes, "{:x}\r\n", bytes.len());
                self.raw(stream, bytes)?;
                self.bytes.extend_from_slice(b"\r\n");
                Ok(())
            }
        }
    }

    /// Writes as much of a body as the kernel takes without a wait, behind what has been collected.
    /// Returns how many bytes of the body it wrote: 0 of a body in chunks.
    ///
    /// # Errors
    /// As from [`body`](Self::body).
    pub(crate) fn offer(
        &mut self,
        stream: &Stream,
        framing: &mut Body,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let mut rest = match *framing {
            Body::Left(left) => left,
            Body::UntilClose => u64::MAX,
            Body::Omitted | Body::Chunks => return Ok(0),
        };
        transfer::take_off(&mut rest, bytes.len())?;
        let count = stream.offer(&self.bytes, bytes)?;
        let of_head = count.min(self.bytes.len());
        self.bytes.drain(..of_head);
        let of_body = count - of_head;
        if let Body::Left(left) = framing {
            transfer::take_off(left, of_body)?;
        }
        Ok(of_body)
    }

    /// Writes the size of the chunk that is being collected, and its end.
    fn close_chunk(&mut self) {
        let Some(start) = self.chunk.take() else {
            return;
        };
        let (size, data) = self.bytes[start..].split_at_mut(OPEN_CHUNK.len());
        let _ = write!(&mut *size, "{:04x}", data.len()); // There is room for it.
        let zeros = size.iter().take_while(|&&digit| digit == b'0').count();
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.drain(start..start + zeros); // Allowed, but no other server sends them.
    }

    /// Returns whether this many more bytes can be collected.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= ENOUGH
    }

    /// Adds the end of a body.
    ///
    /// # Errors
    /// If there were fewer bytes than the head has announced.
    pub(crate) fn end(&mut self, framing: Body, trailers: Option<&HeaderMap>) -> io::Result<()> {
        match framing {
            Body::Omitted | Body::UntilClose | Body::Left(0) => Ok(()),
            Body::Left(_) => Err(transfer::too_short()),
            Body::Chunks => {
                self.close_chunk();
                self.bytes.extend_from_slice(b"0\r\n");
                let trailers = trailers.into_iter().flatten();
                for (name, value) in trailers.filter(|(name, _)| !NO_TRAILERS.contains(name)) {
                    field(&mut self.bytes, name.as_str(), value);
                }
                self.bytes.extend_from_slice(b"\r\n");
                Ok(())
            }
        }
    }

    fn raw(&mut self, stream: &Stream, bytes: &[u8]) -> io::Result<()> {
        if self.has_room(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        let result = stream.write_all(&self.bytes, bytes);
        self.bytes.clear();
        result
    }

    /// Writes what has been collected.
    ///
    /// # Errors
    /// If writing fails.
    pub(crate) fn flush(&mut self, stream: &Stream) -> io::Result<()> {
        self.close_chunk();
        if self.bytes.is_empty() {
            return Ok(());
        }
        let result = stream.write_all(&self.bytes, &[]);
        self.bytes.clear();
        if self.bytes.capacity() > 1024 {
            self.bytes = Vec::new(); // A connection that waits holds no large buffer.
        }
        result
    }
}

/// Adds the first line. The version is the server's own: RFC 9110, section 2.5.
fn status_line(out: &mut Vec<u8>, status: StatusCode) {
    out.reserve(HEAD);
    if status == StatusCode::OK {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or("Unknown").as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn field(out: &mut Vec<u8>, name: &str, value: &HeaderValue) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Adds what the head says about the body's length.
fn framing(out: &mut Vec<u8>, asked: &Asked, length: Length) -> Body {
    match length {
        Length::None => Body::Omitted,
        Length::Known(bytes) => {
            out.extend_from_slice(b"content-length: ");
            decimal(out, bytes);
            out.extend_from_slice(b"\r\n");
            Body::Left(bytes)
        }
        Length::Unknown if asked.version == Version::HTTP_10 => Body::UntilClose,
        Length::Unknown => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Body::Chunks
        }
    }
}

/// Adds a number. `write!` takes as long for one as for the rest of a small head.
fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20]; // as many as the largest number has
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[start..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 99, 100, 1_234_567_890, u64::MAX] {
            let mut out = b"x".to_vec();
            decimal(&mut out, number);
            assert_eq!(out, format!("x{number}").as_bytes());
        }
    }
}
