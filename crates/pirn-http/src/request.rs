//! Requests.

use crate::error::Error;
use crate::exchange::Exchange;
use crate::fields::{Head, LazyFields};
use crate::limits::watch::Seat;
use crate::outgoing::{Given, Outgoing, Then};
use crate::response::Response;
use crate::split::{BodyReader, Responder, split};
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, Version};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

/// A request, while a handler handles it.
///
/// It has the fields of [`http::request::Parts`]: `method`, `uri`, `version` and `extensions`; the
/// header fields are [`headers`](Self::headers). It is a [`Read`] of its body, which comes while it
/// is read.
///
/// It is the same in HTTP/1.1 and HTTP/2, which [`version`](Self::version) tells apart: `Host` is
/// there also if the client has sent `:authority`, the target is a path, and `Cookie` is one field.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Server};
/// use std::io::Read;
/// let server = Server::new().post("/length", |request: &mut Request| -> std::io::Result<String> {
///     let mut body = String::new();
///     request.read_to_string(&mut body)?;
///     Ok(body.len().to_string())
/// });
/// let answer = server.client().post("/length", "hello");
/// assert_eq!(answer.text(), "5");
/// ```
pub struct Request {
    /// The method.
    pub method: Method,
    /// The target: a path, and the query if there is one. `CONNECT` has a host and port, and
    /// requests to a proxy have all parts.
    pub uri: Uri,
    /// The version of HTTP.
    pub version: Version,
    /// Values that middleware passes on to what is inside.
    pub extensions: Extensions,
    fields: LazyFields,
    pub(crate) exchange: Exchange,
    pub(crate) captured: Captured,
    /// Which of the server's routes serves this. Not its path, whose owners all processors would
    /// count.
    pub(crate) route: Option<usize>,
    pub(crate) outgoing: Outgoing,
}

/// The parts of a path that a route has named.
#[derive(Default, Debug)]
pub(crate) struct Captured(pub(crate) Vec<(String, Option<String>)>);

impl Captured {
    /// Returns a part, or `None` if the route has no such name. It is `Some(None)` if the part is
    /// not UTF-8.
    fn get(&self, name: &str) -> Option<Option<&str>> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_deref())
    }
}

impl Request {
    pub(crate) fn new(head: Head, exchange: Exchange) -> Request {
        let Head {
            method,
            uri,
            version,
            extensions,
            fields,
        } = head;
        Request {
            method,
            uri,
            version,
            extensions,
            fields,
            exchange,
            captured: Captured::default(),
            route: None,
            outgoing: Outgoing::default(),
        }
    }

    pub(crate) fn seat(&self) -> &Seat {
        self.exchange.seat()
    }

    /// Returns whether the client has hung up.
    /// [`Server::half_close`](crate::Server::half_close) says what is taken for that.
    pub fn is_client_gone(&self) -> bool {
        self.seat().is_client_gone()
    }

    /// Returns whether the body has had all the time that
    /// [`Timeouts::upload`](crate::Timeouts::upload) gives it. If it has no more than that, reading
    /// it fails with [`TimedOut`](io::ErrorKind::TimedOut), as it does for a body that comes too
    /// slowly; this tells the two from each other.
    pub fn is_upload_late(&self) -> bool {
        self.seat().is_upload_late()
    }

    /// Returns what is needed once it has been handled: with the fields after the response's body.
    pub(crate) fn end(self) -> (Exchange, Option<Box<HeaderMap>>) {
        (self.exchange, self.outgoing.trailers)
    }

    /// Returns a copy of what comes before the body, in the form that other crates take.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server};
    /// let server = Server::new().get("/", |request: &mut Request| {
    ///     let other = pirn_http::http::Request::from_parts(request.to_parts(), ());
    ///     format!("{} of {:?}", other.uri(), other.headers()["host"])
    /// });
    /// assert_eq!(server.client().get("/").text(), "/ of \"test\"");
    /// ```
    pub fn to_parts(&self) -> Parts {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.method = self.method.clone();
        parts.uri = self.uri.clone();
        parts.version = self.version;
        parts.extensions = self.extensions.clone();
        parts.headers = self.headers().clone();
        parts
    }

    /// Returns a part of the path that the route has named, with percent signs decoded.
    ///
    /// # Errors
    /// 400 if it is not a value of this type, or not UTF-8.
    ///
    /// # Panics
    /// If the route has no such name.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Error, Request, Server};
    /// let server = Server::new().get("/users/{id}", |request: &mut Request| -> Result<_, Error> {
    ///     Ok(format!("user {}", request.param::<u64>("id")?))
    /// });
    /// let client = server.client();
    /// assert_eq!(client.get("/users/7").text(), "user 7");
    /// let why = "the path parameter id, \"x\": invalid digit found in string";
    /// assert_eq!(client.get("/users/x").text(), why);
    /// ```
    #[track_caller]
    pub fn param<T: FromStr<Err: fmt::Display>>(&self, name: &str) -> Result<T, Error> {
        let bad = |why: String| {
            let why = format!("the path parameter {name}{why}");
            Error::new(StatusCode::BAD_REQUEST, why)
        };
        let Some(text) = self.captured.get(name) else {
            let route = self.route().unwrap_or("that has not been found yet");
            panic!("the route {route} has no parameter {name}");
        };
        let text = text.ok_or_else(|| bad(" is not UTF-8".into()))?;
        text.parse()
            .map_err(|error| bad(format!(", {text:?}: {error}")))
    }

    /// Returns the path of the route that serves this request, such as `/users/{id}`. `None`: no
    /// route serves it, or, in middleware, the server has not looked for the route yet.
    pub fn route(&self) -> Option<&str> {
        self.shared_route().map(|path| &**path)
    }

    pub(crate) fn shared_route(&self) -> Option<&Arc<str>> {
        self.route
            .map(|route| &self.exchange.shared().routes[route])
    }

    /// Returns whether the server has been told to shut down. A handler that sends without end
    /// returns then.
    pub fn is_stopping(&self) -> bool {
        self.exchange.shared().is_stopping()
    }

    /// Returns the pairs of the query, decoded.
    pub fn query(&self) -> impl Iterator<Item = (String, String)> + '_ {
        form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes()).into_owned()
    }

    /// Returns the first value of this name in the query, decoded.
    pub fn query_value(&self, name: &str) -> Option<String> {
        self.query()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// Returns the header fields. In HTTP/1.1 the map is made when it is first asked for, which
    /// takes nearly as long as all else of a small request; [`header`](Self::header) does without
    /// it.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server, header};
    /// let server = Server::new().get("/", |request: &mut Request| {
    ///     request.headers().get_all(header::ACCEPT).iter().count().to_string()
    /// });
    /// assert_eq!(server.client().get("/").text(), "0");
    /// ```
    pub fn headers(&self) -> &HeaderMap {
        self.fields.get()
    }

    /// Returns the header fields, for middleware to change.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.fields.get_mut()
    }

    /// Returns the first header field of this name, if it is visible ASCII.
    pub fn header(&self, name: impl AsRef<str>) -> Option<&str> {
        let value = self.field(name)?;
        let is_visible = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
        let value = Some(value).filter(|value| value.iter().all(is_visible));
        std::str::from_utf8(value?).ok()
    }

    /// Returns the value of the first header field of this name.
    pub(crate) fn field(&self, name: impl AsRef<str>) -> Option<&[u8]> {
        self.fields.first(name.as_ref())
    }

    /// Returns the values of all header fields of this name.
    #[cfg(any(feature = "files", feature = "json"))]
    pub(crate) fn fields_named<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f [u8]> {
        self.fields.all(name)
    }

    #[cfg(test)]
    pub(crate) fn has_map(&self) -> bool {
        self.fields.has_map()
    }

    /// Returns the client's address; `None` on a Unix socket and in tests.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.exchange.peer()
    }

    /// Returns whether the client speaks TLS.
    pub fn is_secure(&self) -> bool {
        self.exchange.is_secure()
    }

    /// Returns the name that the client has asked for in its TLS handshake.
    #[cfg(feature = "tls")]
    pub fn server_name(&self) -> Option<String> {
        self.exchange.server_name()
    }

    /// Returns the client's certificate, which has been verified: see
    /// [`TlsBuilder::require_client_certificates`](crate::TlsBuilder::require_client_certificates).
    #[cfg(feature = "tls")]
    pub fn client_certificate(&self) -> Option<rustls::pki_types::CertificateDer<'static>> {
        self.exchange.client_certificate()
    }

    /// Returns how many bytes the body may have.
    #[cfg(feature = "websocket")]
    pub(crate) fn body_limit(&self) -> u64 {
        self.exchange.shared().limits.body
    }

    /// Allows the body to have so many bytes from here on, in place of the server's
    /// [limit](crate::Limits::body).
    pub fn allow_body(&mut self, bytes: u64) {
        self.exchange.allow_body(bytes);
    }

    /// Returns how many bytes of the body are to come, if that is known: if the client has
    /// announced a length, or there is no body.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server};
    /// let left = |request: &mut Request| format!("{:?}", request.body_left());
    /// let server = Server::new().post("/", left);
    /// assert_eq!(server.client().post("/", "hello").text(), "Some(5)");
    /// ```
    pub fn body_left(&self) -> Option<u64> {
        self.exchange.body_left()
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// If it cannot be read, or is too large.
    pub fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the fields after the body, once that has been read to its end. In HTTP/1.1 only a
    /// body in chunks may have them.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.exchange.trailers()
    }

    /// Returns the fields that are sent after the body of the response, to add to them. Framing
    /// fields such as `Content-Length` are left out.
    ///
    /// In HTTP/1.1 they are sent after a body whose length is not known beforehand, and are left
    /// out otherwise. Many clients of HTTP/1.1 ignore them.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{HeaderValue, Request, Response, Server};
    /// use std::io::Write;
    /// let server = Server::new().get("/", |request: &mut Request| -> std::io::Result<()> {
    ///     request.respond(Response::ok())?.write_all(b"abc")?;
    ///     let trailers = request.response_trailers_mut();
    ///     trailers.insert("x-length", HeaderValue::from(3));
    ///     Ok(())
    /// });
    /// let all = server.client().send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    /// assert!(all.ends_with(b"abc\r\n0\r\nx-length: 3\r\n\r\n"));
    /// ```
    pub fn response_trailers_mut(&mut self) -> &mut HeaderMap {
        self.outgoing.trailers.get_or_insert_default()
    }

    /// Sends the status and the fields of a response now. Its body is what is then written, until
    /// the handler returns. If that returns an error, or panics, the connection is closed without
    /// an end of the body, or the stream of HTTP/2 is reset, so that the client sees that something
    /// is missing.
    ///
    /// A response with a [body](Response::body) of known length announces that length. The body
    /// itself is not sent.
    ///
    /// # Errors
    /// If there has been a response, or this one is informational, or is a 500 with a cause
    /// ([`Response::error`]), which the error has then.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server};
    /// use std::io::Write;
    /// let server = Server::new().get("/count", |request: &mut Request| -> std::io::Result<()> {
    ///     let mut body = request.respond(Response::ok().content_type("text/plain"))?;
    ///     for number in 0..3 {
    ///         write!(body, "{number} ")?;
    ///     }
    ///     Ok(())
    /// });
    /// assert_eq!(server.client().get("/count").text(), "0 1 2 ");
    /// ```
    pub fn respond(&mut self, response: Response) -> io::Result<ResponseWriter<'_>> {
        let exchange = &mut self.exchange;
        self.outgoing
            .begin(response, |response| exchange.begin_answer(response))?;
        Ok(ResponseWriter { request: self })
    }

    /// Splits the request into its body and the way of its response, for two threads: so a handler
    /// reads and writes at once, however much the client sends before it reads. (One thread that
    /// does both in turn waits for ever, if the client waits as well.)
    ///
    /// # Errors
    /// If the client has asked to be told that it may [send the body][100], and is gone.
    ///
    /// [100]: https://www.rfc-editor.org/rfc/rfc9110#name-expect
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server};
    /// use std::io::{self, Read, Write};
    /// use std::sync::mpsc;
    /// let server = Server::new().post("/shout", |request: &mut Request| -> io::Result<()> {
    ///     let (mut body, responder) = request.split()?;
    ///     let (send, words) = mpsc::sync_channel::<Vec<u8>>(1);
    ///     pirn::thread::scope(|scope| {
    ///         let answer = scope.spawn(move || -> io::Result<()> {
    ///             let mut answer = responder.respond(Response::ok())?;
    ///             for word in words {
    ///                 answer.write_all(&word.to_ascii_uppercase())?;
    ///                 answer.flush()?;
    ///             }
    ///             answer.end()
    ///         });
    ///         let mut piece = [0; 1024];
    ///         loop {
    ///             match body.read(&mut piece)? {
    ///                 0 => break,
    ///                 count => drop(send.send(piece[..count].to_vec())),
    ///             }
    ///         }
    ///         drop(send);
    ///         answer.join().expect("no panic")
    ///     })
    /// });
    /// assert_eq!(server.client().post("/shout", "hello").text(), "HELLO");
    /// ```
    pub fn split(&mut self) -> io::Result<(BodyReader<'_>, Responder<'_>)> {
        split(&mut self.exchange, &mut self.outgoing)
    }

    /// Has a function change the response before it is sent, however the handler gives it: by
    /// returning it or by [`respond`](Self::respond). So middleware adds header fields. Functions
    /// that are added later are called first.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Handler, Request, Server, header};
    /// let server = Server::new()
    ///     .get("/", || "in")
    ///     .with(|request: &mut Request, inner: &Handler| {
    ///         request.before_response(|response| {
    ///             let value = header::HeaderValue::from_static("nosniff");
    ///             response.headers.insert(header::X_CONTENT_TYPE_OPTIONS, value);
    ///         });
    ///         inner(request)
    ///     });
    /// assert_eq!(server.client().get("/").headers["x-content-type-options"], "nosniff");
    /// ```
    pub fn before_response(&mut self, change: impl FnOnce(&mut Response) + Send + 'static) {
        self.outgoing.change(Box::new(move |response, given| {
            // What middleware does to a body that is not there would confuse the framing.
            let body = match given {
                Given::Pushed => Some(std::mem::take(&mut response.body)),
                Given::Returned => None,
            };
            change(response);
            if let Some(body) = body {
                response.body = body;
            }
            None
        }));
    }

    /// Gives the text of an error the form that the client accepts.
    pub(crate) fn negotiate(&self, response: &mut Response) {
        #[cfg(feature = "json")]
        crate::problem::negotiate(&self.fields, response);
        #[cfg(not(feature = "json"))]
        let _ = response;
    }

    /// Completes what a handler has returned, which is all that is around it.
    pub(crate) fn complete(&mut self, response: &mut Response) {
        if !self.has_responded() {
            self.outgoing.apply(response, Given::Returned);
        } else if self.outgoing.encoder.is_some()
            && !response.has_failed()
            && self.encode(&[], Then::End).is_err()
        {
            // The end is missing: the client must not take the body for complete.
            *response = Response::new(StatusCode::INTERNAL_SERVER_ERROR);
        }
    }

    fn encode(&mut self, bytes: &[u8], then: Then) -> io::Result<()> {
        let exchange = &mut self.exchange;
        self.outgoing
            .encode(bytes, then, |coded| exchange.write(coded))
    }

    /// Writes bytes of the body that [`respond`](Self::respond) has begun.
    pub(crate) fn write_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outgoing.is_kept = true;
        self.encode(bytes, Then::More)
    }

    /// Sends what has been written.
    pub(crate) fn flush_body(&mut self) -> io::Result<()> {
        self.outgoing.is_kept = false;
        if self.outgoing.encoder.is_some() {
            self.encode(&[], Then::Flush)?;
        }
        self.exchange.flush()
    }

    /// Returns whether a response has been begun.
    pub fn has_responded(&self) -> bool {
        self.exchange.has_answered()
    }
}

impl Read for Request {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The client may wait for it before it sends more.
        if self.outgoing.is_kept && self.body_left() != Some(0) {
            self.flush_body()?;
        }
        self.exchange.read(buffer)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("uri", &self.uri)
            .field("version", &self.version)
            .field("headers", &self.fields)
            .finish_non_exhaustive()
    }
}

/// The body of a response that is being sent: see [`Request::respond`].
///
/// What is written is collected; [`flush`](Write::flush) sends it. Reading reads the request's
/// body, after a flush, so that a handler may stream in both directions at once.
pub struct ResponseWriter<'r> {
    request: &'r mut Request,
}

impl Write for ResponseWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.request.write_body(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.request.flush_body()
    }
}

impl Read for ResponseWriter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.request.read(buffer)
    }
}

impl fmt::Debug for ResponseWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseWriter").finish_non_exhaustive()
    }
}
