//! Why a request is refused before a handler sees it.

use http::StatusCode;

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
