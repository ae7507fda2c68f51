//! JSON.

use crate::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

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
