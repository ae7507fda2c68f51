//! What a handler fails with.

use crate::response::{IntoResponse, Response};
use http::StatusCode;
use std::error::Error as StdError;
use std::fmt;

/// What a handler fails with: an answer for the client, and, mostly of a 500, a cause for the
/// operator.
///
/// `?` makes it of whatever is [`IntoResponse`]: a [`Status`](crate::Status), an
/// [`io::Error`](std::io::Error), what `Request::json` and
/// [`Request::param`](crate::Request::param) fail with, a [`Redirect`](crate::Redirect), and types
/// of your own. Any other error is [internal](Self::internal).
///
/// Clients that accept JSON get the text as `application/problem+json` (RFC 9457), others as plain
/// text, if the feature `json` is on.
///
/// # Examples
/// ```
/// use pirn_http::{Error, Request, Server, Status};
/// fn half(request: &mut Request) -> Result<String, Error> {
///     let number: u64 = request.param("number")?;
///     if number % 2 == 1 {
///         return Err(Error::new(Status::CONFLICT, format!("{number} is odd")));
///     }
///     Ok((number / 2).to_string())
/// }
/// let client = Server::new().get("/half/{number}", half).client();
/// assert_eq!(client.get("/half/6").text(), "3");
/// assert_eq!(client.get("/half/7").text(), "7 is odd");
/// assert_eq!(client.get("/half/x").status, Status::BAD_REQUEST);
/// ```
pub struct Error(Box<Response>);

impl Error {
    /// Returns an answer with this status and a text for the client.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Error {
        Error(Box::new(Response::failure(status, detail.into())))
    }

    /// Returns a 500 that does not tell the client its cause. Middleware finds that by
    /// [`Response::error`]; [`AccessLog`](crate::observe::AccessLog) writes it in its format
    /// [`Json`](crate::observe::LogFormat::Json).
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Error, Handler, Request, Server};
    /// let server = Server::new()
    ///     .get("/", || -> Result<String, Error> {
    ///         let number: u8 = "many".parse().map_err(Error::internal)?;
    ///         Ok(number.to_string())
    ///     })
    ///     .with(|request: &mut Request, inner: &Handler| {
    ///         let response = inner(request);
    ///         if let Some(error) = response.error() {
    ///             eprintln!("{} {}: {error}", request.method, request.uri);
    ///             assert_eq!(error.to_string(), "invalid digit found in string");
    ///         }
    ///         response
    ///     });
    /// assert_eq!(server.client().get("/").text(), "Internal Server Error");
    /// ```
    pub fn internal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error(Box::new(Response::internal(cause.into())))
    }

    /// Returns the status of the answer.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }
}

impl<T: IntoResponse> From<T> for Error {
    fn from(answer: T) -> Error {
        Error(Box::new(answer.into_response()))
    }
}

// `Error` itself is not `IntoResponse`: the conversion above would be one to itself.
impl<R: IntoResponse> IntoResponse for Result<R, Error> {
    fn into_response(self) -> Response {
        self.map_or_else(Response::from, R::into_response)
    }
}

impl From<Error> for Response {
    fn from(error: Error) -> Response {
        *error.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.error() {
            Some(cause) => write!(f, "{}: {cause}", self.0.status),
            None => self.0.status.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Error").field(&self.0).finish()
    }
}
