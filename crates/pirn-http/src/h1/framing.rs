//! Where the body of a request ends: RFC 9112, section 6, with no leniency.
//!
//! Two programs that disagree about where a request ends can be made to see different requests in
//! the same bytes (request smuggling). So all that another program might read differently is
//! refused, and the connection is closed:
//!
//! | input | answer |
//! |---|---|
//! | `Content-Length` and `Transfer-Encoding` | 400 |
//! | lengths that differ; signs, spaces inside, hexadecimal digits, overflow | 400 |
//! | `Transfer-Encoding` in HTTP/1.0, twice, or not exactly `chunked` | 400 |
//! | a coding that exists and is not implemented, before `chunked` | 501 |

use crate::admission::decimal;
use crate::refusal::Refusal;
use http::{StatusCode, Version};

/// How the end of a body is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// After so many bytes; zero: there is no body.
    Length(u64),
    /// With the chunk of no bytes.
    Chunked,
}

/// The codings that are registered and not implemented (IANA, HTTP Transfer Coding Registry).
const OTHER_CODINGS: [&[u8]; 6] = [
    b"gzip",
    b"x-gzip",
    b"deflate",
    b"compress",
    b"x-compress",
    b"identity",
];

impl Framing {
    /// Returns the framing that these values of `Content-Length` and `Transfer-Encoding` say.
    pub(crate) fn of<'h>(
        lengths: impl Iterator<Item = &'h [u8]>,
        mut codings: impl Iterator<Item = &'h [u8]>,
        version: Version,
    ) -> Result<Framing, Refusal> {
        let length = length(lengths)?;
        let Some(coding) = codings.next() else {
            return Ok(Framing::Length(length.unwrap_or(0)));
        };
        if length.is_some() {
            return Err(Refusal::bad("both Content-Length and Transfer-Encoding"));
        }
        if codings.next().is_some() {
            return Err(Refusal::bad("more than one Transfer-Encoding"));
        }
        if version < Version::HTTP_11 {
            return Err(Refusal::bad("Transfer-Encoding in HTTP/1.0"));
        }
        match coding {
            coding if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            coding if is_other_coding(coding) => {
                let why = "unsupported Transfer-Encoding";
                Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, why))
            }
            _ => Err(Refusal::bad("the last Transfer-Encoding must be chunked")),
        }
    }
}

/// Returns whether this is a known coding, alone or before `chunked`.
fn is_other_coding(value: &[u8]) -> bool {
    let first = value.split(|&byte| byte == b',').next().unwrap_or_default();
    let rest = value[first.len()..]
        .strip_prefix(b",")
        .map(<[u8]>::trim_ascii);
    OTHER_CODINGS
        .iter()
        .any(|other| first.trim_ascii().eq_ignore_ascii_case(other))
        && rest.is_none_or(|rest| rest.eq_ignore_ascii_case(b"chunked"))
}

/// Returns the length that these values say. Equal ones in several fields are one.
fn length<'h>(values: impl Iterator<Item = &'h [u8]>) -> Result<Option<u64>, Refusal> {
    let mut length = None;
    for value in values {
        let this = decimal(value).ok_or(Refusal::bad("Content-Length is not a number"))?;
        if length.replace(this).is_some_and(|other| other != this) {
            return Err(Refusal::bad("different values of Content-Length"));
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
