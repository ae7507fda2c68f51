//! Responses, and what can be returned in their place.

use crate::refusal::{Refusal, Unfit};
use crate::upgrade::{Upgrade, Upgraded};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use std::error::Error as StdError;
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
        /// Reading may wait for another party, which reading a file does not: what has been read is
        /// sent before the next read.
        waits: bool,
    },
    /// There is no body: the connection changes its protocol.
    Upgrade(Upgrade),
}

impl Body {
    /// Returns a body that is read while it is sent. Its length is not known: HTTP/1.1 sends it in
    /// chunks. What a read returns is sent before the next read, which may wait for more.
    pub fn from_reader(reader: impl Read + Send + 'static) -> Body {
        Body(Kind::Reader {
            reader: Box::new(reader),
            length: None,
            waits: true,
        })
    }

    /// Returns a body that is read while it is sent, and has `length` bytes. If the reader has
    /// fewer, the connection is closed, or the stream of HTTP/2 reset, so that the client sees that
    /// something is missing.
    pub fn from_sized_reader(reader: impl Read + Send + 'static, length: u64) -> Body {
        Body(Kind::Reader {
            reader: Box::new(reader.take(length)),
            length: Some(length),
            waits: true,
        })
    }

    /// Returns a body of `length` bytes that are in files: reading them waits for no other party.
    #[cfg(feature = "files")]
    pub(crate) fn of_files(reader: impl Read + Send + 'static, length: u64) -> Body {
        Body(Kind::Reader {
            reader: Box::new(reader.take(length)),
            length: Some(length),
            waits: false,
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
    /// Returns the length that the head of a pushed response announces. With an empty body it
    /// announces no length: the handler is about to write the body.
    pub(crate) fn announced(&self) -> Option<u64> {
        match &self.0 {
            Kind::Empty | Kind::Upgrade(_) => None,
            Kind::Bytes(_) | Kind::Reader { .. } => self.len(),
        }
    }

    /// Has a function called when the body has been sent, or will not be, with the number of bytes
    /// that were sent. For a body in memory, and for an empty one, that is now.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Body, Response, Server};
    /// use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    /// static SENT: AtomicU64 = AtomicU64::new(0);
    /// let server = Server::new().get("/", || {
    ///     let body = Body::from_reader(&b"hello"[..]);
    ///     Response::ok().body(body.on_end(|bytes| SENT.store(bytes, SeqCst)))
    /// });
    /// assert_eq!(server.client().get("/").text(), "hello");
    /// assert_eq!(SENT.load(SeqCst), 5);
    /// ```
    #[must_use]
    pub fn on_end(self, end: impl FnOnce(u64) + Send + 'static) -> Body {
        match self.0 {
            Kind::Reader {
                reader,
                length,
                waits,
            } => {
                let watched = Watched {
                    reader,
                    count: 0,
                    end: Some(Box::new(end)),
                };
                Body(Kind::Reader {
                    reader: Box::new(watched),
                    length,
                    waits,
                })
            }
            kind => {
                let body = Body(kind);
                end(body.len().unwrap_or_default());
                body
            }
        }
    }
}

/// A reader that calls `end` when it is dropped.
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
    /// The header fields. Only the server sets `Connection`, `Content-Length` and
    /// `Transfer-Encoding`: it leaves out what a handler has set here.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
    /// The body is the text of an error, which clients may get in another form.
    pub(crate) is_problem: bool,
    /// What the operator should know.
    pub(crate) cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Response {
    /// Returns a response without fields and body.
    pub fn new(status: StatusCode) -> Response {
        Response {
            status,
            headers: HeaderMap::new(),
            body: Body::default(),
            is_problem: false,
            cause: None,
        }
    }

    /// Returns a response with the text of an error.
    pub(crate) fn failure(status: StatusCode, text: impl Into<Bytes>) -> Response {
        let mut response = Response::new(status).text(text);
        response.is_problem = true;
        response
    }

    /// Returns a 500, whose cause the client is not told.
    pub(crate) fn internal(cause: Box<dyn StdError + Send + Sync>) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.cause = Some(cause);
        response
    }

    /// Returns the cause of a 500: the [`io::Error`] that the handler has returned, the cause that
    /// it has given to [`Error::internal`](crate::Error::internal), or why a [header
    /// field](Self::header) is invalid. It is for logs; clients are not told.
    pub fn error(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// Returns `200 OK`.
    pub fn ok() -> Response {
        Response::new(StatusCode::OK)
    }

    /// Returns `101 Switching Protocols`: once it has been sent, `handler` gets the connection, on
    /// the same thread. The request should have asked for this protocol, by `Upgrade`. While some
    /// of its body has not been read, the answer is 400: the rest of the body does not belong to
    /// the other protocol.
    ///
    /// In HTTP/2 the handler gets a stream, if the client has asked by `CONNECT` and `:protocol`
    /// (RFC 8441); the request has the fields of HTTP/1.1 nevertheless. If not, the answer is 501.
    ///
    /// # Panics
    /// If the name of the protocol has bytes that no header field may have.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server};
    /// use std::io::{Read, Write};
    /// let server = Server::new().get("/shout", || {
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

    /// Sets a header field in place of those that have this name. If no header field may have such
    /// a name, or the value has bytes that none may have, such as line ends, the response becomes a
    /// 500 without a body, and its [`error`](Self::error) says why: a client may have sent them.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Response, Status, header};
    /// let response = Response::ok().header(header::SERVER, "a").header("x-id", "7");
    /// assert_eq!(response.headers["x-id"], "7");
    /// assert_eq!(Response::ok().header("x-id", "7\r\n").status, Status::INTERNAL_SERVER_ERROR);
    /// ```
    #[must_use]
    pub fn header<N, V>(mut self, name: N, value: V) -> Response
    where
        N: TryInto<HeaderName, Error: fmt::Debug>,
        V: TryInto<HeaderValue>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => drop(self.headers.insert(name, value)),
            (Ok(name), Err(_)) => self.spoil(format!("{name}: no header field has such a value")),
            (Err(why), _) => self.spoil(format!("no header field has such a name: {why:?}")),
        }
        self
    }

    /// Makes this a 500 without a body, because what it was given fits in no response.
    pub(crate) fn spoil(&mut self, why: String) {
        self.status = StatusCode::INTERNAL_SERVER_ERROR;
        self.body = Body::default();
        self.cause.get_or_insert(why.into());
    }

    /// Sets `Content-Type`.
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

    /// Sets the body to text, and `Content-Type` to say so.
    #[must_use]
    pub fn text(self, text: impl Into<Bytes>) -> Response {
        self.typed(TEXT, text)
    }

    /// Sets the body to a page of HTML, and `Content-Type` to say so.
    #[must_use]
    pub fn html(self, page: impl Into<Bytes>) -> Response {
        self.typed(HTML, page)
    }

    /// Returns 500 in place of an informational response: the client would wait for a final
    /// response, and take the response to its next request for that.
    pub(crate) fn or_failed(self) -> Response {
        match (&self.body.0, self.status.is_informational()) {
            (Kind::Upgrade(_), _) | (_, false) => self,
            _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }

    /// Returns whether the handler has failed: then a body that it has begun has no end.
    pub(crate) fn has_failed(&self) -> bool {
        self.status.is_client_error() || self.status.is_server_error()
    }

    fn typed(mut self, media_type: HeaderValue, bytes: impl Into<Bytes>) -> Response {
        self.headers.insert(CONTENT_TYPE, media_type);
        self.body = bytes.into().into();
        self
    }
}

/// Returns whether responses with this status have no body: RFC 9110, section 6.4.1.
pub(crate) fn has_no_body(status: StatusCode) -> bool {
    const WITHOUT: [StatusCode; 3] = [
        StatusCode::NO_CONTENT,
        StatusCode::RESET_CONTENT,
        StatusCode::NOT_MODIFIED,
    ];
    status.is_informational() || WITHOUT.contains(&status)
}

/// Returns the answer to a request whose handler took too long.
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
/// | `Json`, [`Response`] | as they say |
///
/// An [`io::Error`] from reading the request's body is answered with what is wrong with that: 400,
/// or 413 if it is too large. All others are 500, and the client is not told their text.
///
/// A handler that fails in several ways returns [`Error`](crate::Error), which `?` makes of all of
/// these.
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
                Response::failure(self, reason)
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
        let inner = self.get_ref();
        if let Some(refusal) = inner.and_then(|error| error.downcast_ref::<Refusal>()) {
            return Response::failure(refusal.status, refusal.why);
        }
        match inner.and_then(|error| error.downcast_ref::<Unfit>()) {
            Some(unfit) => Response::failure(StatusCode::BAD_REQUEST, unfit.to_string()),
            None => Response::internal(self.into()),
        }
    }
}
