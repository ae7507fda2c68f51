//! Forms with files, `multipart/form-data`: RFC 7578.

mod head;

use crate::media_type::MediaType;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::socket::retry;
use head::Head;
use http::{HeaderMap, StatusCode};
use memchr::memmem::Finder;
use std::fmt;
use std::io::{self, Read};

/// How many bytes are read at once.
const PIECE: usize = 8 * 1024;

/// A form with files, which is read while it comes.
///
/// Nothing of a part is kept, so files of any size can be received. The
/// [limit](Request::allow_body) on the size of a body holds for the whole form.
///
/// # Examples
/// ```
/// use pirn_http::{Method, Request, Server};
/// use std::io::Read;
/// let server = Server::new().post("/", |request: &mut Request| -> std::io::Result<String> {
///     let mut form = request.multipart()?;
///     let mut found = String::new();
///     while let Some(mut part) = form.next_part()? {
///         let bytes = std::io::copy(&mut part, &mut std::io::sink())?;
///         found += &format!("{}: {bytes} bytes\n", part.name());
///     }
///     Ok(found)
/// });
/// let fields = [("content-type", "multipart/form-data; boundary=x")];
/// let body = b"--x\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nhello\r\n--x--\r\n";
/// let answer = server.client().request(Method::POST, "/", &fields, body);
/// assert_eq!(answer.text(), "a: 5 bytes\n");
/// ```
pub struct Multipart<R> {
    reader: R,
    /// What ends a part: `CR LF -- boundary`.
    delimiter: Finder<'static>,
    /// What has been read; up to `start` it has been used.
    buffer: Vec<u8>,
    start: usize,
    state: State,
    parts_left: usize,
    head_limit: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In a part's data, or before the first part.
    Data,
    /// Right after a delimiter.
    Delimiter,
    /// After the last part.
    End,
}

impl Request {
    /// Returns the body, a form (`multipart/form-data`).
    ///
    /// # Errors
    /// 415 if the body is no such form, 400 if its boundary is invalid.
    pub fn multipart(&mut self) -> io::Result<Multipart<&mut Request>> {
        let media_type = MediaType::of(self.headers())
            .filter(|media_type| media_type.is("multipart/form-data"))
            .ok_or(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body is not multipart/form-data",
            ))?;
        let boundary = media_type
            .parameter("boundary")
            .unwrap_or_default()
            .to_owned();
        Multipart::new(self, &boundary)
    }
}

impl<R: Read> Multipart<R> {
    /// Returns the form that a reader has, whose parts are separated by `boundary`.
    ///
    /// # Errors
    /// If the boundary is invalid: it must have 1 to 70 characters of ASCII (RFC 2046, section
    /// 5.1.1).
    pub fn new(reader: R, boundary: &str) -> io::Result<Multipart<R>> {
        let is_boundary = (1..=70).contains(&boundary.len())
            && boundary.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            && !boundary.ends_with(' ');
        if !is_boundary {
            return Err(Refusal::bad("invalid multipart boundary").into());
        }
        let delimiter = format!("\r\n--{boundary}");
        Ok(Multipart {
            reader,
            delimiter: Finder::new(&delimiter).into_owned(),
            // The first delimiter may begin the body, without a line end before it.
            buffer: b"\r\n".to_vec(),
            start: 0,
            state: State::Data,
            parts_left: 128,
            head_limit: 8 * 1024,
        })
    }

    /// Sets how many parts there may be; 128. The answer to more is 413.
    #[must_use]
    pub fn max_parts(self, parts: usize) -> Multipart<R> {
        Multipart {
            parts_left: parts,
            ..self
        }
    }

    /// Sets how many bytes the header fields of a part may have; 8 KiB. The answer to more is 413.
    #[must_use]
    pub fn max_head(self, bytes: usize) -> Multipart<R> {
        Multipart {
            head_limit: bytes,
            ..self
        }
    }

    /// Returns the next part, and skips what has not been read of the previous one. `None`: the
    /// form has no more parts.
    ///
    /// # Errors
    /// 400 if this is no form, 413 if there are too many parts or header fields, and what reading
    /// fails with.
    pub fn next_part(&mut self) -> io::Result<Option<Part<'_, R>>> {
        let mut skipped = [0; 1024];
        while self.state == State::Data && self.read(&mut skipped)? > 0 {}
        if self.state == State::End || self.is_last()? {
            self.state = State::End;
            return Ok(None);
        }
        self.parts_left = self.parts_left.checked_sub(1).ok_or(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the form has too many parts",
        ))?;
        let head = self.head()?;
        self.state = State::Data;
        Ok(Some(Part { form: self, head }))
    }

    fn unused(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads more bytes.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let end = self.buffer.len();
        self.buffer.resize(end + PIECE, 0);
        let result = retry(|| self.reader.read(&mut self.buffer[end..]));
        self.buffer.truncate(end + *result.as_ref().unwrap_or(&0));
        match result? {
            0 => Err(Refusal::bad("the form ended too early").into()),
            _ => Ok(()),
        }
    }

    /// Reads the rest of a delimiter's line. Returns whether it is the last one.
    fn is_last(&mut self) -> io::Result<bool> {
        loop {
            // Proxies may have added white space (RFC 2046, section 5.1.1).
            let unused = self.unused();
            let padding = unused
                .iter()
                .take_while(|byte| matches!(byte, b' ' | b'\t'))
                .count();
            let after = &unused[padding..];
            if padding == 0 && after.starts_with(b"--") {
                return Ok(true);
            }
            if after.starts_with(b"\r\n") {
                // The line end stays: a head without fields is the empty line after it.
                self.start += padding;
                return Ok(false);
            }
            let may_be = after.is_empty() || after == b"\r" || (padding == 0 && after == b"-");
            if !may_be || padding > 256 {
                return Err(Refusal::bad("a line of the form looks like a boundary").into());
            }
            self.fill()?;
        }
    }

    /// Reads the header fields of a part.
    fn head(&mut self) -> io::Result<Head> {
        let mut searched = 0;
        loop {
            let unused = self.unused();
            if let Some(end) = memchr::memmem::find(&unused[searched..], b"\r\n\r\n") {
                let length = searched + end + 4;
                if length > self.head_limit {
                    return Err(head::too_large().into());
                }
                let head = Head::parse(&unused[2..length])?;
                self.start += length;
                return Ok(head);
            }
            if unused.len() > self.head_limit {
                return Err(head::too_large().into());
            }
            searched = unused.len().saturating_sub(3);
            self.fill()?;
        }
    }

    /// Reads data of a part; zero: there is no more.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.state != State::Data {
            return Ok(0);
        }
        let length = self.delimiter.needle().len();
        loop {
            // No more than can be returned, so that reads of single bytes stay cheap.
            let most = self.unused().len().min(buffer.len().saturating_add(length));
            let window = &self.unused()[..most];
            let count = match self.delimiter.find(window) {
                Some(0) => {
                    self.start += length;
                    self.state = State::Delimiter;
                    return Ok(0);
                }
                Some(at) => at,
                // The delimiter may have begun.
                None => window.len().saturating_sub(length - 1),
            };
            let count = count.min(buffer.len());
            if count > 0 {
                buffer[..count].copy_from_slice(&window[..count]);
                self.start += count;
                return Ok(count);
            }
            self.fill()?;
        }
    }
}

impl<R> fmt::Debug for Multipart<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multipart")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// A part of a [form](Multipart): a [`Read`] of its data.
pub struct Part<'f, R> {
    form: &'f mut Multipart<R>,
    head: Head,
}

impl<R: Read> Part<'_, R> {
    /// Returns the name of the form's field.
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// Returns the name that the file has at the client; `None` if the part is no file. It is any
    /// text: never use it as a path.
    pub fn file_name(&self) -> Option<&str> {
        self.head.file_name.as_deref()
    }

    /// Returns the header fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the data as text.
    ///
    /// # Errors
    /// 400 if it is not UTF-8, 413 if it has more than `limit` bytes, and what reading fails with.
    pub fn text(mut self, limit: usize) -> io::Result<String> {
        let mut bytes = Vec::new();
        let most = (limit as u64).saturating_add(1);
        (&mut self).take(most).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            let why = "a form field is too long";
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why).into());
        }
        String::from_utf8(bytes).map_err(|_| Refusal::bad("a form field is not UTF-8").into())
    }
}

impl<R: Read> Read for Part<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.form.read(buffer)
    }
}

impl<R> fmt::Debug for Part<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
