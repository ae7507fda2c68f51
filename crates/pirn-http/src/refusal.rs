//! Why a request is refused before a handler sees it.

use http::StatusCode;
use std::net::SocketAddr;

/// The answer to a malformed request, or to one that the server does not serve. The server closes
/// the connection after it: it does not know where the next request would begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The reason, for the access log and the body of the answer. It tells the client nothing that
    /// the client has not sent.
    pub(crate) why: &'static str,
}

impl Refusal {
    pub(crate) const fn bad(why: &'static str) -> Refusal {
        Refusal {
            status: StatusCode::BAD_REQUEST,
            why,
        }
    }

    pub(crate) const fn new(status: StatusCode, why: &'static str) -> Refusal {
        Refusal { status, why }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for Refusal {}

/// A request that the server has refused before a handler could see it: see
/// [`Middleware::refused`](crate::Middleware::refused).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Refused<'r> {
    /// The client's address; `None` on a Unix socket and in tests.
    pub peer: Option<SocketAddr>,
    /// The first line that the client has sent, which may be malformed.
    pub line: &'r [u8],
    /// The status of the answer.
    pub status: StatusCode,
    /// The text of the answer.
    pub reason: &'static str,
}

/// What a client has sent is not the value that a handler expects: 400.
#[derive(Debug)]
pub(crate) struct Unfit {
    /// What was expected, and where.
    pub(crate) what: &'static str,
    /// What the parser says.
    pub(crate) why: String,
}

impl Unfit {
    /// Returns the error of a parser.
    #[cfg(any(feature = "form", feature = "json"))]
    pub(crate) fn of(what: &'static str, error: &impl std::fmt::Display) -> std::io::Error {
        let why = error.to_string();
        std::io::Error::new(std::io::ErrorKind::InvalidData, Unfit { what, why })
    }
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl std::error::Error for Unfit {}

impl From<Refusal> for std::io::Error {
    fn from(refusal: Refusal) -> std::io::Error {
        let kind = match refusal.status {
            StatusCode::REQUEST_TIMEOUT => std::io::ErrorKind::TimedOut,
            _ => std::io::ErrorKind::InvalidData,
        };
        std::io::Error::new(kind, refusal)
    }
}
