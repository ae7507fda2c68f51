//! The head of a request: RFC 9112, sections 2 to 5, with no leniency.
//!
//! `httparse` parses it. What httparse lets pass and another program might read differently is
//! refused before or after: a lone CR or LF, two `Host` fields, an absolute target of another host.

use super::framing::Framing;
use crate::admission;
use crate::fields::{self, LazyFields};
use crate::limits::HeadLimits;
use crate::negotiation::elements_of;
use crate::refusal::Refusal;
use bytes::Bytes;
use http::{Extensions, Method, StatusCode, Uri, Version};
use std::mem::MaybeUninit;

/// How many header fields are parsed on the stack. More are parsed on the heap.
const FEW: usize = 16;

/// A head, and what it says about the connection.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) request: fields::Head,
    pub(crate) framing: Framing,
    /// The connection may be used for another request.
    pub(crate) keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
}

/// Where the search for the end of a head goes on.
#[derive(Default)]
pub(crate) struct Search {
    scanned: usize,
}

impl Search {
    /// Looks for the end of the head in `bytes`, which begin as they did last time. Returns its
    /// length, or `None` if it is not complete.
    ///
    /// # Errors
    /// If there is a line that does not end with CR LF, or the head is longer than `limit`.
    pub(crate) fn end(&mut self, bytes: &[u8], limit: usize) -> Result<Option<usize>, Refusal> {
        let within = &bytes[..bytes.len().min(limit)];
        let mut at = self.scanned;
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &within[at..]) {
            at += found;
            match &within[at..] {
                [b'\r', b'\n', b'\r', b'\n', ..] => {
                    self.scanned = 0;
                    return Ok(Some(at + 4));
                }
                [b'\r', b'\n', b'\r'] | [b'\r', b'\n'] | [b'\r'] => break,
                [b'\r', b'\n', ..] => at += 2,
                _ => return Err(Refusal::bad("a line does not end with CRLF")),
            }
        }
        if within[at..].first() != Some(&b'\r') {
            at = within.len();
        }
        self.scanned = at;
        match bytes.len() >= limit {
            true => Err(too_large(within)),
            false => Ok(None),
        }
    }
}

/// Returns the refusal of a head that is too large. If the first line alone is, the refusal says
/// so.
fn too_large(bytes: &[u8]) -> Refusal {
    match memchr::memchr(b'\n', bytes) {
        Some(_) => Refusal::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request headers are larger than the server's limit",
        ),
        None => Refusal::new(
            StatusCode::URI_TOO_LONG,
            "the request target is longer than the server's limit",
        ),
    }
}

/// Parses a head, which is complete.
///
/// # Errors
/// If this server does not serve the request; the head is returned, too.
pub(crate) fn parse(bytes: Bytes, limits: &HeadLimits) -> Result<Head, (Refusal, Bytes)> {
    let mut few = [const { MaybeUninit::uninit() }; FEW];
    let on_stack = &mut few[..limits.fields.min(FEW)];
    let head = match parse_within(&bytes, on_stack) {
        Err(Failure::TooMany) if limits.fields > FEW => {
            let mut many = Vec::new();
            many.resize_with(limits.fields, MaybeUninit::uninit);
            parse_within(&bytes, &mut many)
        }
        result => result,
    };
    let refusal = match head {
        Ok(mut head) => {
            return match head.request.fields.set_head(bytes) {
                Ok(()) => Ok(head),
                Err(_) => Err((too_many("too many header fields"), Bytes::new())),
            };
        }
        Err(Failure::TooMany) => too_many(admission::TOO_MANY),
        Err(Failure::Refused(refusal)) => refusal,
    };
    Err((refusal, bytes))
}

fn too_many(why: &'static str) -> Refusal {
    Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why)
}

enum Failure {
    /// There are more fields than there is room.
    TooMany,
    Refused(Refusal),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

fn parse_within<'b>(
    bytes: &'b Bytes,
    room: &mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<Head, Failure> {
    let mut raw = httparse::Request::new(&mut []);
    match raw.parse_with_uninit_headers(bytes, room) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Ok(_) => return Err(Refusal::bad("the headers ended too early").into()),
        Err(httparse::Error::TooManyHeaders) => return Err(Failure::TooMany),
        Err(error) => return Err(refuse(error, bytes).into()),
    }
    let version = match raw.version {
        Some(1) => Version::HTTP_11,
        _ => Version::HTTP_10,
    };
    let noted = Noted::of(raw.headers)?;
    let method = Method::from_bytes(raw.method.unwrap_or_default().as_bytes())
        .map_err(|_| Refusal::bad("invalid method"))?;
    let uri = target(raw.path.unwrap_or_default(), &method, bytes)?;
    if noted.hosts == 0 && version != Version::HTTP_10 {
        return Err(Refusal::bad("the Host header is missing").into());
    }
    admission::check_host(noted.host, noted.hosts, uri.authority())?;
    let framing = noted.framing(version)?;
    let keep_alive = noted.keeps_alive(version);
    let expects_continue = noted.expects_continue(version)?;
    let request = fields::Head {
        method,
        uri,
        version,
        extensions: Extensions::new(),
        fields: LazyFields::counted(raw.headers.len()), // `parse` adds the bytes.
    };
    Ok(Head {
        request,
        framing,
        keep_alive,
        expects_continue,
    })
}

fn refuse(error: httparse::Error, bytes: &[u8]) -> Refusal {
    match error {
        httparse::Error::Version if has_version(bytes) => Refusal::new(
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            "the version is neither HTTP/1.0 nor HTTP/1.1",
        ),
        httparse::Error::HeaderName => Refusal::bad("invalid header name"),
        httparse::Error::HeaderValue => Refusal::bad("control characters in a header value"),
        _ => Refusal::bad("malformed request"),
    }
}

/// Returns whether the first line has a method, a target, and a version, whichever that is.
fn has_version(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut parts = line.split(|&byte| byte == b' ').skip(2);
    let version = parts.next().and_then(|part| part.strip_prefix(b"HTTP/"));
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    matches!(version, Some([major, b'.', minor]) if is_digit(major) && is_digit(minor))
        && parts.next().is_none()
}

/// The fields of a head, and which of them say something about the connection. Most heads have only
/// `Host`.
struct Noted<'h> {
    all: &'h [httparse::Header<'h>],
    /// The first `Host`.
    host: Option<&'h [u8]>,
    hosts: usize,
    /// There is `Content-Length` or `Transfer-Encoding`.
    has_framing: bool,
    has_connection: bool,
    has_expect: bool,
}

impl<'h> Noted<'h> {
    /// Looks at all fields, once. httparse has checked them, but for the length of names.
    fn of(all: &'h [httparse::Header<'h>]) -> Result<Noted<'h>, Refusal> {
        let mut noted = Noted {
            all,
            host: None,
            hosts: 0,
            has_framing: false,
            has_connection: false,
            has_expect: false,
        };
        for field in all {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            match field.name.len() {
                4 if is("host") => {
                    noted.host = noted.host.or(Some(field.value.trim_ascii()));
                    noted.hosts += 1;
                }
                6 => noted.has_expect |= is("expect"),
                10 => noted.has_connection |= is("connection"),
                14 => noted.has_framing |= is("content-length"),
                17 => noted.has_framing |= is("transfer-encoding"),
                length if length > fields::LONGEST_NAME => {
                    return Err(Refusal::bad("a header name is too long"));
                }
                _ => {}
            }
        }
        Ok(noted)
    }

    /// Returns the values of the fields of a name.
    fn values(&self, name: &'static str) -> impl Iterator<Item = &'h [u8]> {
        let fields = self.all.iter();
        fields
            .filter(move |field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value.trim_ascii())
    }

    fn framing(&self, version: Version) -> Result<Framing, Refusal> {
        if !self.has_framing {
            return Ok(Framing::Length(0));
        }
        let lengths = self.values("content-length");
        Framing::of(lengths, self.values("transfer-encoding"), version)
    }

    fn keeps_alive(&self, version: Version) -> bool {
        let (mut keeps, mut closes) = (version != Version::HTTP_10, false);
        if !self.has_connection {
            return keeps;
        }
        for option in self.values("connection").flat_map(elements_of) {
            keeps |= option.eq_ignore_ascii_case(b"keep-alive");
            closes |= option.eq_ignore_ascii_case(b"close");
        }
        keeps && !closes
    }

    fn expects_continue(&self, version: Version) -> Result<bool, Refusal> {
        if !self.has_expect || version == Version::HTTP_10 {
            return Ok(false); // RFC 9110, section 10.1.1
        }
        admission::expects_continue(self.values("expect").next())
    }
}

/// Parses the target in the form that the method takes: RFC 9112, section 3.2.
fn target(text: &str, method: &Method, bytes: &Bytes) -> Result<Uri, Refusal> {
    let bad = Refusal::bad("invalid request target");
    if text == "/" {
        return match *method {
            Method::CONNECT => Err(bad),
            _ => Ok(Uri::default()), // It shares no bytes, so that their one owner need not count.
        };
    }
    let uri = Uri::from_maybe_shared(bytes.slice_ref(text.as_bytes())).map_err(|_| bad)?;
    match admission::is_target(method, &uri, text) {
        true => Ok(uri),
        false => Err(bad),
    }
}

#[cfg(test)]
mod tests;
