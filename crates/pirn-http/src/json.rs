//! JSON.

use crate::media_type::MediaType;
use crate::refusal::{Refusal, Unfit};
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// A response in JSON.
///
/// # Examples
/// ```
/// use pirn_http::{IntoResponse, Json};
/// assert_eq!(Json(vec![1, 2]).into_response().body.len(), Some(5));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => {
                let mut response = Response::ok().body(bytes);
                let json = HeaderValue::from_static("application/json");
                response.headers.insert(CONTENT_TYPE, json);
                response
            }
            // A map whose keys are no strings, or an implementation that fails.
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

impl Request {
    /// Returns the value that the body is in JSON.
    ///
    /// # Errors
    /// 415 if `Content-Type` says that the body is something else: a page of another origin can
    /// have a browser send `text/plain`, with the user's cookies, without asking first. 400 if it
    /// is not the value that is expected, and what reading the body fails with.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server, Status};
    /// let sum = |request: &mut Request| request.json().map(|(a, b): (u8, u8)| (a + b).to_string());
    /// let client = Server::new().post("/", sum).client();
    /// assert_eq!(client.post("/", "[1, 2]").text(), "3");
    /// let wrong = client.post("/", "[1]");
    /// assert_eq!(wrong.status, Status::BAD_REQUEST);
    /// assert!(wrong.text().contains("invalid length 1"), "{}", wrong.text());
    /// ```
    pub fn json<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let is_other = self.field(CONTENT_TYPE).is_some_and(|value| {
            let text = str::from_utf8(value).unwrap_or_default();
            !MediaType::parse(text).is_some_and(|media_type| media_type.is_json())
        });
        if is_other {
            let why = "the Content-Type of the body is not JSON";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why).into());
        }
        let bytes = self.bytes()?;
        let what = "invalid JSON body";
        serde_json::from_slice(&bytes).map_err(|error| Unfit::of(what, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use http::Method;

    #[test]
    fn what_says_that_it_is_no_json_is_refused() {
        let client = Server::new()
            .post("/", |request: &mut Request| {
                request.json::<u8>().map(|n| n.to_string())
            })
            .client();
        for (media_type, status) in [
            ("application/json", 200),
            ("Application/JSON; charset=utf-8", 200),
            ("application/problem+json", 200),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("application/jsonp", 415),
            ("+json", 415),
            ("", 415),
        ] {
            let fields = [("content-type", media_type)];
            let answer = client.request(Method::POST, "/", &fields, b"7");
            assert_eq!(answer.status.as_u16(), status, "{media_type}");
        }
        assert_eq!(client.post("/", "7").text(), "7", "without a type");
    }
}
