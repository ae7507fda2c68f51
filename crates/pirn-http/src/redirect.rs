//! Answers that send the client elsewhere.

use crate::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use percent_encoding::{CONTROLS, utf8_percent_encode};

/// An answer that sends the client to another resource. What no header field may have, such as line
/// ends, and what is not ASCII, is percent-encoded.
///
/// # Examples
/// ```
/// use pirn_http::{Redirect, Server};
/// let server = Server::new().post("/notes", || Redirect::to("/notes/7"));
/// let answer = server.client().post("/notes", "");
/// assert_eq!((answer.status.as_u16(), &answer.headers["location"].as_bytes()[..]), (303, &b"/notes/7"[..]));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    status: StatusCode,
    location: String,
}

impl Redirect {
    fn new(status: StatusCode, location: &str) -> Redirect {
        let location = utf8_percent_encode(location, CONTROLS).to_string();
        Redirect { status, location }
    }

    /// Returns `303 See Other`: the client gets the other resource by `GET`, after a form for
    /// example.
    pub fn to(location: &str) -> Redirect {
        Redirect::new(StatusCode::SEE_OTHER, location)
    }

    /// Returns `307 Temporary Redirect`: the client makes the same request there.
    pub fn temporary(location: &str) -> Redirect {
        Redirect::new(StatusCode::TEMPORARY_REDIRECT, location)
    }

    /// Returns `308 Permanent Redirect`: the client makes the same request there, from now on.
    pub fn permanent(location: &str) -> Redirect {
        Redirect::new(StatusCode::PERMANENT_REDIRECT, location)
    }
}

impl IntoResponse for Redirect {
    fn into_response(self) -> Response {
        Response::new(self.status).header(LOCATION, self.location)
    }
}
