//! Compression of responses.

mod encoder;

use crate::handler::{Handler, Middleware};
use crate::negotiation::{elements, preferred, vary};
use crate::outgoing::{Encoder, Given, Then};
use crate::request::Request;
use crate::response::{Body, Kind, Response, has_no_body};
use http::StatusCode;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderValue,
};
use std::io::{self, Read};

/// A middleware that compresses a response if the client accepts that and the response is of a kind
/// that gets shorter.
///
/// Each of the crate's features `brotli`, `zstd` and `gzip` adds a coding; a client without a
/// preference gets the first of them, in this order. The middleware leaves alone: bodies shorter
/// than 1 KiB, unless their length is not known; types such as images and videos, which are
/// compressed already; responses with a `Content-Encoding`; parts of files; responses whose
/// `Cache-Control` has `no-transform`.
///
/// What a handler flushes reaches the client: bodies that are written over time stay timely.
///
/// A page that has a secret and, beside it, text that comes from the request tells the secret to
/// those who see its compressed length (BREACH). Give such pages `Cache-Control: no-transform`.
///
/// # Examples
/// ```
/// use pirn_http::{Compression, Method, Request, Server};
/// let server = Server::new()
///     .get("/", || "Hello! ".repeat(1000))
///     .with(Compression::new());
/// let fields = [("accept-encoding", "gzip")];
/// let answer = server.client().request(Method::GET, "/", &fields, b"");
/// assert!(answer.body.len() < 1000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Compression {
    minimum: u64,
}

impl Default for Compression {
    fn default() -> Compression {
        Compression { minimum: 1024 }
    }
}

impl Compression {
    /// Returns the middleware's settings.
    pub fn new() -> Compression {
        Compression::default()
    }

    /// Sets how many bytes a body must have; 1,024.
    #[must_use]
    pub fn minimum(self, bytes: u64) -> Compression {
        Compression { minimum: bytes }
    }

    /// Compresses the body of a returned response. For a pushed response, returns the encoder,
    /// which compresses the body while the handler writes it.
    fn change(
        self,
        response: &mut Response,
        given: Given,
        coding: Option<&'static str>,
    ) -> Option<Box<dyn Encoder>> {
        if !gains(response) {
            return None;
        }
        vary(&mut response.headers, &ACCEPT_ENCODING);
        let length = match given {
            Given::Pushed => response.body.announced(),
            Given::Returned => response.body.len(),
        };
        let is_small = length.is_some_and(|length| length < self.minimum.max(1));
        let coding = coding.filter(|_| !is_small)?;
        let mut encoder = encoder::of(coding)?;
        let body = std::mem::take(&mut response.body);
        let pushed = match given {
            Given::Pushed => Some(encoder),
            Given::Returned => {
                response.body = match body.0 {
                    Kind::Bytes(bytes) => {
                        let mut coded = Vec::new();
                        if encoder.encode(&bytes, Then::End, &mut coded).is_err() {
                            response.body = Body::from(bytes);
                            return None;
                        }
                        Body::from(coded)
                    }
                    Kind::Reader {
                        reader,
                        length,
                        waits,
                    } => Body(Kind::Reader {
                        reader: Box::new(Coded::new(reader, length, waits, encoder)),
                        length: None,
                        waits,
                    }),
                    nothing => Body(nothing),
                };
                None
            }
        };
        describe(&mut response.headers, coding);
        pushed
    }
}

impl Middleware for Compression {
    fn handle(&self, request: &mut Request, inner: &Handler) -> Response {
        let accepted = request.fields_named(ACCEPT_ENCODING.as_str());
        let (settings, coding) = (*self, preferred(accepted, encoder::CODINGS));
        let change = move |response: &mut Response, given| settings.change(response, given, coding);
        request.outgoing.change(Box::new(change));
        inner(request)
    }
}

/// Digests of a body as it is sent, or of what it represents, coded: RFC 9530, and older ones.
const DIGESTS: [&str; 4] = ["content-digest", "content-md5", "digest", "repr-digest"];

/// Says that a body is coded.
fn describe(headers: &mut HeaderMap, coding: &'static str) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    headers.remove(ACCEPT_RANGES); // Ranges count the bytes of the uncoded body.
    for digest in DIGESTS {
        headers.remove(digest); // Digests are made from the uncoded body.
    }
    // A strong tag stands for the bytes of the uncoded body.
    if let Some(tag) = headers.get(ETAG)
        && !tag.as_bytes().starts_with(b"W/")
    {
        let weak = [b"W/", tag.as_bytes()].concat();
        match HeaderValue::from_maybe_shared(bytes::Bytes::from(weak)) {
            Ok(weak) => headers.insert(ETAG, weak),
            Err(_) => headers.remove(ETAG),
        };
    }
}

/// Returns whether a response is of a kind that gets shorter.
fn gains(response: &Response) -> bool {
    let headers = &response.headers;
    let may_not = elements(headers, &CACHE_CONTROL)
        .any(|directive| directive.eq_ignore_ascii_case(b"no-transform"));
    let status = response.status;
    !has_no_body(status)
        && status != StatusCode::PARTIAL_CONTENT
        && !may_not
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && headers
            .get(CONTENT_TYPE)
            .is_some_and(|value| is_compressible(value.as_bytes()))
}

fn is_compressible(media_type: &[u8]) -> bool {
    let end = media_type
        .iter()
        .position(|&byte| byte == b';')
        .unwrap_or(media_type.len());
    let name = media_type[..end].trim_ascii().to_ascii_lowercase();
    let known: [&[u8]; 11] = [
        b"application/javascript",
        b"application/json",
        b"application/manifest+json",
        b"application/vnd.ms-fontobject",
        b"application/wasm",
        b"application/x-javascript",
        b"application/x-ndjson",
        b"application/xml",
        b"font/otf",
        b"font/ttf",
        b"image/bmp",
    ];
    name.starts_with(b"text/")
        || name.ends_with(b"+json")
        || name.ends_with(b"+xml")
        || known.contains(&&*name)
}

/// A reader's bytes, coded.
struct Coded {
    reader: Box<dyn Read + Send>,
    /// How many bytes are to come, if that is known.
    left: Option<u64>,
    /// Reading may wait for another party: what has been read is coded to its last byte before.
    waits: bool,
    /// `None`: the end has been coded.
    encoder: Option<Box<dyn Encoder>>,
    piece: Vec<u8>,
    coded: Vec<u8>,
    /// How many bytes of `coded` have been read.
    read: usize,
}

impl Coded {
    fn new(
        reader: Box<dyn Read + Send>,
        left: Option<u64>,
        waits: bool,
        encoder: Box<dyn Encoder>,
    ) -> Coded {
        Coded {
            reader,
            left,
            waits,
            encoder: Some(encoder),
            piece: vec![0; 16 * 1024],
            coded: Vec::new(),
            read: 0,
        }
    }
}

impl Read for Coded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.coded.len() {
            let Some(encoder) = &mut self.encoder else {
                return Ok(0);
            };
            self.read = 0;
            self.coded.clear();
            match self.reader.read(&mut self.piece)? {
                // What is cut must not look complete: the connection ends without an end of it.
                0 if self.left.is_some_and(|left| left > 0) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                0 => {
                    encoder.encode(&[], Then::End, &mut self.coded)?;
                    self.encoder = None;
                }
                count => {
                    self.left = self.left.map(|left| left.saturating_sub(count as u64));
                    let then = match self.waits {
                        true => Then::Flush,
                        false => Then::More,
                    };
                    encoder.encode(&self.piece[..count], then, &mut self.coded)?;
                }
            }
        }
        let count = buffer.len().min(self.coded.len() - self.read);
        buffer[..count].copy_from_slice(&self.coded[self.read..][..count]);
        self.read += count;
        Ok(count)
    }
}
