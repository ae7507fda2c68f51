//! Responses, and what can be returned in their place.

use crate::h1::refusal::Refusal;
use crate::h1::upgrade::{Upgrade, Upgraded};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, UPGRADE};
use std::fmt;
use std::io::{self, Read};

// Checked when they are compiled.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// The body of a response that a handler returns.
///
/// # Examples
/// ```
/// use pirn_http::Body;
/// assert_eq!(Body::from("hello").len(), Some(5));
/// assert_eq!(Body::from_reader(std::io::empty()).len(), None);
/// ```
#[derive(Default)]
pub struct Body(pub(crate) Kind);

#[derive(Default)]
pub(crate) enum Kind {
    #[default]
    Empty,
    Bytes(Bytes),
    Reader {
        reader: Box<dyn Read + Send>,
        length: Option<u64>,
    },
    /// There is no body: the connection changes its protocol.
    Upgrade(Upgrade),
}

impl Body {
    /// Returns a body that is read while it is sent. Its length is not known: HTTP/1.1 sends it in
    /// chunks.
    pub fn from_reader(reader: impl Read + Send + 'static) -> Body {
        Body(Kind::Reader {
            reader: Box::new(reader),
            length: None,
        })
    }

    /// Returns a body that is read while it is sent, and has `length` bytes. If the reader has
    /// fewer, the connection is closed, or the stream of HTTP/2 reset, so that the client sees that
    /// something is missing.
    pub fn from_sized_reader(reader: impl Read + Send + 'static, length: u64) -> Body {
        Body(Kind::Reader {
            reader: Box::new(reader.take(length)),
            length: Some(length),
        })
    }

    /// Returns the number of bytes, if that is known.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a body of unknown length is neither"
    )]
    pub fn len(&self) -> Option<u64> {
        match &self.0 {
            Kind::Empty | Kind::Upgrade(_) => Some(0),
            Kind::Bytes(bytes) => Some(bytes.len() as u64),
            Kind::Reader { length, .. } => *length,
        }
    }
}

impl Body {
    /// Has a function called when the body has been sent, or will not be: with the number of its
    /// bytes that were. For a body in memory that is now.
    pub(crate) fn on_end(self, end: impl FnOnce(u64) + Send + 'static) -> Body {
        match self.0 {
            Kind::Reader { reader, length } => {
                let watched = Watched {
                    reader,
                    count: 0,
                    end: Some(Box::new(end)),
                };
                let reader = Box::new(watched);
                Body(Kind::Reader { reader, length })
            }
            kind => {
                let body = Body(kind);
                end(body.len().unwrap_or_default());
                body
            }
        }
    }
}

/// A reader that says when it is done with.
struct Watched {
    reader: Box<dyn Read + Send>,
    count: u64,
    end: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end(self.count);
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Body {
        let bytes = bytes.into();
        match bytes.is_empty() {
            true => Body::default(),
            false => Body(Kind::Bytes(bytes)),
        }
    }
}

/// A response: status, header fields, body.
///
/// # Examples
/// ```
/// use pirn_http::{Response, Status};
/// let response = Response::new(Status::NOT_FOUND).text("no such user");
/// assert_eq!(response.status, Status::NOT_FOUND);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The header fields. `Connection`, `Content-Length` and `Transfer-Encoding` are the server's;
    /// they are left out here.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
}

impl Response {
    /// Returns a response without fields and body.
    pub fn new(status: StatusCode) -> Response {
        Response {
            status,
            headers: HeaderMap::new(),
            body: Body::default(),
        }
    }

    /// Returns `200 OK`.
    pub fn ok() -> Response {
        Response::new(StatusCode::OK)
    }

    /// Returns `303 See Other`, which has the client get another resource.
    ///
    /// # Panics
    /// If the location has bytes that no header field may have, such as line ends.
    pub fn see_other(location: &str) -> Response {
        Response::new(StatusCode::SEE_OTHER).header(LOCATION, location)
    }

    /// Returns `101 Switching Protocols`: once it has been sent, `handler` gets the connection, on
    /// the same thread. The request should have asked for this protocol, by `Upgrade`. While some
    /// of its body has not been read, the answer is 400: that is not the other protocol's.
    ///
    /// In HTTP/2 the handler gets a stream, if the client has asked by `CONNECT` and `:protocol`
    /// (RFC 8441); the request has the fields of HTTP/1.1 nevertheless. If not, the answer is 501.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server};
    /// use std::io::{Read, Write};
    /// let server = Server::new().get("/shout", |_: &mut Request| {
    ///     Response::upgrade("shout", |mut connection| {
    ///         let mut word = [0; 5];
    ///         if connection.read_exact(&mut word).is_ok() {
    ///             let _ = connection.write_all(&word.map(|byte| byte.to_ascii_uppercase()));
    ///         }
    ///     })
    /// });
    /// let answer = server.client().send(
    ///     b"GET /shout HTTP/1.1\r\nhost: a\r\nupgrade: shout\r\nconnection: upgrade\r\n\r\nhello",
    /// );
    /// assert!(answer.ends_with(b"\r\n\r\nHELLO"));
    /// ```
    pub fn upgrade(
        protocol: &'static str,
        handler: impl FnOnce(Upgraded) + Send + 'static,
    ) -> Response {
        let mut response = Response::new(StatusCode::SWITCHING_PROTOCOLS);
        let protocol = HeaderValue::from_static(protocol);
        response.headers.insert(UPGRADE, protocol);
        response.body = Body(Kind::Upgrade(Box::new(handler)));
        response
    }

    /// Sets a header field in place of those that have this name.
    ///
    /// # Panics
    /// If the value has bytes that no header field may have, such as line ends. Use
    /// [`headers`](Self::headers) for values that come from elsewhere.
    #[must_use]
    pub fn header<V>(mut self, name: HeaderName, value: V) -> Response
    where
        V: TryInto<HeaderValue, Error: fmt::Debug>,
    {
        let value = value.try_into();
        self.headers
            .insert(name, value.expect("the value of a header field"));
        self
    }

    /// Sets `Content-Type`.
    ///
    /// # Panics
    /// As [`header`](Self::header).
    #[must_use]
    pub fn content_type(self, value: &'static str) -> Response {
        self.header(CONTENT_TYPE, value)
    }

    /// Sets the body, and nothing else.
    #[must_use]
    pub fn body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into();
        self
    }

    /// Sets the body to text, and says that it is that.
    #[must_use]
    pub fn text(self, text: impl Into<Bytes>) -> Response {
        self.typed(TEXT, text)
    }

    /// Sets the body to a page of HTML, and says that it is that.
    #[must_use]
    pub fn html(self, page: impl Into<Bytes>) -> Response {
        self.typed(HTML, page)
    }

    fn typed(mut self, media_type: HeaderValue, bytes: impl Into<Bytes>) -> Response {
        self.headers.insert(CONTENT_TYPE, media_type);
        self.body = bytes.into().into();
        self
    }
}

/// Returns whether responses with this status have no body: RFC 9112, section 6.3.
pub(crate) fn has_no_body(status: StatusCode) -> bool {
    status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}

/// Returns the answer in place of that of a handler that took too long.
pub(crate) fn too_late() -> Response {
    Response::new(StatusCode::SERVICE_UNAVAILABLE).text("the server took too long")
}

/// What a handler may return.
///
/// | type | response |
/// |---|---|
/// | `()` | 200 without a body; nothing, if the handler has [responded](crate::Request::respond) |
/// | text, bytes | 200 with that body |
/// | [`Status`](crate::Status) | that status, with its name as the body if it is an error |
/// | `(Status, R)` | as `R`, with another status |
/// | `Option<R>` | as `R`, or 404 |
/// | `Result<R, E>` | as `R`, or as `E` |
/// | [`io::Error`] | 500, or what the client has done wrong; see below |
/// | [`Json`](crate::Json), [`Response`] | as they say |
///
/// An [`io::Error`] from reading the request's body is answered with what is wrong with that: 400,
/// or 413 if it is too large. All others are 500, and the client is not told their text.
///
/// # Examples
/// ```
/// use pirn_http::{IntoResponse, Status};
/// let found: Option<&str> = None;
/// assert_eq!(found.into_response().status, Status::NOT_FOUND);
/// ```
pub trait IntoResponse {
    /// Converts this.
    fn into_response(self) -> Response;
}

impl IntoResponse for Response {
    fn into_response(self) -> Response {
        self
    }
}

impl IntoResponse for () {
    fn into_response(self) -> Response {
        Response::ok()
    }
}

impl IntoResponse for StatusCode {
    fn into_response(self) -> Response {
        let response = Response::new(self);
        match self.canonical_reason() {
            Some(reason) if self.is_client_error() || self.is_server_error() => {
                response.text(reason)
            }
            _ => response,
        }
    }
}

impl IntoResponse for &'static str {
    fn into_response(self) -> Response {
        Response::ok().text(self)
    }
}

impl IntoResponse for String {
    fn into_response(self) -> Response {
        Response::ok().text(self)
    }
}

impl IntoResponse for Vec<u8> {
    fn into_response(self) -> Response {
        Response::ok().typed(BINARY, self)
    }
}

impl IntoResponse for Bytes {
    fn into_response(self) -> Response {
        Response::ok().typed(BINARY, self)
    }
}

impl IntoResponse for Body {
    fn into_response(self) -> Response {
        Response::ok().body(self)
    }
}

impl<R: IntoResponse> IntoResponse for (StatusCode, R) {
    fn into_response(self) -> Response {
        Response {
            status: self.0,
            ..self.1.into_response()
        }
    }
}

impl<R: IntoResponse> IntoResponse for Option<R> {
    fn into_response(self) -> Response {
        self.map_or_else(|| StatusCode::NOT_FOUND.into_response(), R::into_response)
    }
}

impl<R: IntoResponse, E: IntoResponse> IntoResponse for Result<R, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(response) => response.into_response(),
            Err(error) => error.into_response(),
        }
    }
}

impl IntoResponse for io::Error {
    fn into_response(self) -> Response {
        let refusal = self
            .get_ref()
            .and_then(|error| error.downcast_ref::<Refusal>());
        match refusal {
            Some(refusal) => Response::new(refusal.status).text(refusal.why),
            None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}
