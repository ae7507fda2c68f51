//! One file as a response.

use super::conditions::Validators;
use super::open;
use super::ranges::{self, Wanted};
use crate::request::Request;
use crate::response::{Body, IntoResponse, Response};
use crate::stream::at_most;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderValue, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second that a date in a header field can have.
const LAST_SECOND: u64 = 253_402_300_799;

/// What need not be escaped in the name of a file: RFC 8187, `attr-char`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// A file that is served: its type by its name, conditional requests, ranges.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Response, Server, files::File};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("report.txt");
/// # std::fs::write(&path, "all is well")?;
/// let server = Server::new().get("/report", move |request: &mut Request| -> std::io::Result<_> {
///     Ok(File::open(&path)?.response_to(request))
/// });
/// let client = server.client();
/// let answer = client.get("/report");
/// assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
/// assert_eq!(answer.text(), "all is well");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct File {
    file: Arc<std::fs::File>,
    length: u64,
    validators: Validators,
    media_type: HeaderValue,
    coding: Option<&'static str>,
    disposition: Option<HeaderValue>,
}

impl File {
    /// Opens a file. The end of its name decides its media type.
    ///
    /// # Errors
    /// If it cannot be opened, or is no regular file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        let file = open::file(path)?;
        let name = path.file_name().unwrap_or_default();
        File::new(file, name.as_encoded_bytes(), None)?.ok_or_else(|| {
            let why = format!("{}: this is no regular file", path.display());
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })
    }

    /// Returns a file that is served under this name; `None` if it is not a regular file.
    pub(super) fn new(
        file: std::fs::File,
        name: &[u8],
        coding: Option<&'static str>,
    ) -> io::Result<Option<File>> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let since_epoch = metadata
            .modified()
            .ok()
            .and_then(|modified| modified.duration_since(UNIX_EPOCH).ok())
            .filter(|time| time.as_secs() <= LAST_SECOND);
        let time = since_epoch.unwrap_or_default();
        let length = metadata.len();
        let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
        // A program that replaces a file can set the time of its last change, but neither its inode
        // nor when that was done.
        let inode = metadata.ino();
        let done = (metadata.ctime() as u64) << 30 | metadata.ctime_nsec() as u64;
        let suffix = coding
            .map(|coding| format!("-{coding}"))
            .unwrap_or_default();
        // Weak: a file may change twice without a change of its length and times.
        let etag = format!("W/\"{seconds:x}.{nanos:x}-{length:x}-{inode:x}.{done:x}{suffix}\"");
        let modified = since_epoch.map(|_| UNIX_EPOCH + Duration::from_secs(seconds));
        Ok(Some(File {
            file: Arc::new(file),
            length,
            validators: Validators { etag, modified },
            media_type: media_type(name),
            coding,
            disposition: None,
        }))
    }

    /// Sets the media type.
    ///
    /// # Panics
    /// If it has bytes that no header field may have.
    #[must_use]
    pub fn content_type(self, media_type: &'static str) -> File {
        let media_type = HeaderValue::from_static(media_type);
        File { media_type, ..self }
    }

    /// Has browsers save the file under this name, in place of showing it.
    #[must_use]
    pub fn download_as(self, name: &str) -> File {
        let plain = name.chars().map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' | ' ' => c,
            _ => '_',
        });
        let plain = String::from_iter(plain);
        let escaped = utf8_percent_encode(name, ESCAPED);
        // For clients old and new: RFC 6266, appendix D.
        let value = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{escaped}");
        File {
            disposition: HeaderValue::try_from(value).ok(),
            ..self
        }
    }

    /// Returns whether this was changed no earlier than another file, in whole seconds.
    pub(super) fn is_as_new_as(&self, other: &File) -> bool {
        self.validators.modified >= other.validators.modified
    }

    /// Returns the number of bytes.
    #[expect(
        clippy::len_without_is_empty,
        reason = "whether it is empty makes no difference"
    )]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns the response to a request: the file, a part of it, or that the client has it.
    ///
    /// `ETag` is made from the times of the last change (`mtime` and `ctime`), the length and the
    /// inode. It is weak: two changes of a file within one tick of the kernel's clock look like
    /// one. So a download is resumed by the date.
    ///
    /// A file that becomes shorter while it is sent ends the connection.
    pub fn response_to(self, request: &Request) -> Response {
        let headers = request.headers();
        if let Some(status) = self.validators.refuse(&request.method, headers) {
            let mut response = Response::new(status);
            if status == StatusCode::NOT_MODIFIED {
                self.describe(&mut response);
                response.headers.remove(CONTENT_TYPE);
                response.headers.remove(CONTENT_ENCODING);
            }
            return response;
        }
        let has_range = request.method == Method::GET
            && headers.contains_key(RANGE)
            && self.validators.allow_range(headers, SystemTime::now());
        let wanted = match has_range {
            true => ranges::wanted(request.header(RANGE), self.length),
            false => Wanted::Whole,
        };
        match wanted {
            Wanted::Whole => self.whole(),
            Wanted::Nothing => self.nothing(),
            Wanted::Parts(parts) => match &parts[..] {
                [part] => self.one(part.clone()),
                parts => self.several(parts),
            },
        }
    }

    /// Sets the fields that all responses about this file have.
    fn describe(&self, response: &mut Response) {
        let headers = &mut response.headers;
        headers.insert(CONTENT_TYPE, self.media_type.clone());
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        // No guessing: a text that users have uploaded must not run as a script.
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Ok(etag) = HeaderValue::try_from(&self.validators.etag) {
            headers.insert(ETAG, etag);
        }
        // A time in the future must not be sent: RFC 9110, section 8.8.2.1.
        let modified = self
            .validators
            .modified
            .filter(|&time| time <= SystemTime::now());
        if let Some(modified) = modified
            && let Ok(value) = HeaderValue::try_from(httpdate::fmt_http_date(modified))
        {
            headers.insert(LAST_MODIFIED, value);
        }
        if let Some(coding) = self.coding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        if let Some(disposition) = &self.disposition {
            headers.insert(CONTENT_DISPOSITION, disposition.clone());
        }
    }

    fn section(&self, range: Range<u64>) -> Section {
        let file = Arc::clone(&self.file);
        Section { file, range }
    }

    fn whole(&self) -> Response {
        let body = Body::of_files(self.section(0..self.length), self.length);
        let mut response = Response::ok().body(body);
        self.describe(&mut response);
        response
    }

    fn nothing(&self) -> Response {
        StatusCode::RANGE_NOT_SATISFIABLE
            .into_response()
            .header(CONTENT_RANGE, format!("bytes */{}", self.length))
            .header(ACCEPT_RANGES, "bytes")
    }

    fn content_range(&self, part: &Range<u64>) -> String {
        format!("bytes {}-{}/{}", part.start, part.end - 1, self.length)
    }

    fn one(&self, part: Range<u64>) -> Response {
        let mut response = Response::new(StatusCode::PARTIAL_CONTENT);
        self.describe(&mut response);
        let response = response.header(CONTENT_RANGE, self.content_range(&part));
        let length = part.end - part.start;
        response.body(Body::of_files(self.section(part), length))
    }

    /// Returns several parts: RFC 9110, section 14.6.
    fn several(&self, parts: &[Range<u64>]) -> Response {
        let boundary = boundary();
        let mut length = 0;
        let mut body: Box<dyn Read + Send> = Box::new(io::empty());
        let media_type = self
            .media_type
            .to_str()
            .unwrap_or("application/octet-stream");
        for part in parts {
            let mut head = String::new();
            // Writing to a string does not fail.
            let _ = write!(
                head,
                "\r\n--{boundary}\r\ncontent-type: {media_type}\r\ncontent-range: {}\r\n\r\n",
                self.content_range(part)
            );
            length += head.len() as u64 + (part.end - part.start);
            let data = self.section(part.clone());
            body = Box::new(body.chain(io::Cursor::new(head)).chain(data));
        }
        let end = format!("\r\n--{boundary}--\r\n");
        length += end.len() as u64;
        let body = body.chain(io::Cursor::new(end));
        let mut response = Response::new(StatusCode::PARTIAL_CONTENT);
        self.describe(&mut response);
        response
            .header(
                CONTENT_TYPE,
                format!("multipart/byteranges; boundary={boundary}"),
            )
            .body(Body::of_files(body, length))
    }
}

/// Returns text that is in the file with a negligible probability only.
fn boundary() -> String {
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", random(), random())
}

/// Returns the media type of a name.
fn media_type(name: &[u8]) -> HeaderValue {
    let end = name
        .iter()
        .rposition(|&byte| byte == b'.')
        .map(|dot| &name[dot + 1..]);
    let extension = end
        .and_then(|end| str::from_utf8(end).ok())
        .unwrap_or_default();
    if extension.eq_ignore_ascii_case("ts") {
        return HeaderValue::from_static("video/mp2t"); // The registered one, as servers have it.
    }
    let Some(guess) = mime_guess::from_ext(extension).first() else {
        return HeaderValue::from_static("application/octet-stream");
    };
    let is_text = guess.type_() == "text" || guess.subtype() == "javascript";
    let text = match is_text && guess.get_param("charset").is_none() {
        true => format!("{guess}; charset=utf-8"),
        false => guess.to_string(),
    };
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// A part of a file, which is read from there on.
#[derive(Debug)]
struct Section {
    file: Arc<std::fs::File>,
    range: Range<u64>,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = at_most(buffer, self.range.end - self.range.start);
        let count = self.file.read_at(room, self.range.start)?;
        self.range.start += count as u64;
        Ok(count)
    }
}
