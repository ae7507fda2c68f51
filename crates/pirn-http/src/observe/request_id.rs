//! Ids of requests, by which the lines of several logs are brought together.

use crate::handler::{Handler, Middleware};
use crate::request::Request;
use http::header::{HeaderName, HeaderValue};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The name of the field.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Returns a middleware that gives each request an id: the `X-Request-Id` of the client, or a
/// proxy, if that has 1 to 128 letters, digits and `-_.:/+=`, and a new one otherwise. The handler
/// finds it in the request's header, the client in the response's.
///
/// Add it after [`AccessLog`](super::AccessLog), that is, around it, for the log to have the ids. A
/// `traceparent` (W3C Trace Context) reaches handlers as all header fields do, and is not changed.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Server, observe::request_ids};
/// let server = Server::new()
///     .get("/", |request: &mut Request| request.header("x-request-id").map(str::to_owned))
///     .with(request_ids());
/// let answer = server.client().get("/");
/// assert_eq!(answer.headers["x-request-id"], *answer.text());
/// ```
pub fn request_ids() -> impl Middleware {
    let keys = [RandomState::new(), RandomState::new()];
    let count = AtomicU64::new(0);
    move |request: &mut Request, inner: &Handler| {
        let given = request
            .headers()
            .get(X_REQUEST_ID)
            .filter(|id| is_id(id.as_bytes()));
        let id = given.cloned().unwrap_or_else(|| {
            // Relaxed: all that matters is that the numbers are different.
            let number = count.fetch_add(1, Relaxed);
            let [one, other] = keys.each_ref().map(|key| key.hash_one(number));
            let text = format!("{one:016x}{other:016x}");
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("none"))
        });
        request.headers_mut().insert(X_REQUEST_ID, id.clone());
        request.before_response(move |response| {
            response.headers.insert(X_REQUEST_ID, id);
        });
        inner(request)
    }
}

fn is_id(bytes: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    (1..=128).contains(&bytes.len()) && bytes.iter().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use http::Method;

    #[test]
    fn a_good_id_is_kept_and_another_is_replaced() {
        let client = Server::new().get("/", || "").with(request_ids()).client();
        let id = |given: &str| {
            let fields = [("x-request-id", given)];
            let answer = client.request(Method::GET, "/", &fields, b"");
            answer.headers["x-request-id"].to_str().unwrap().to_owned()
        };
        assert_eq!(id("a-1_b.c:d/e+f="), "a-1_b.c:d/e+f=");
        for bad in ["", "a b", "a\"b", "<script>", &"a".repeat(129)] {
            assert_eq!(id(bad).len(), 32, "{bad}");
        }
        assert_ne!(
            client.get("/").headers["x-request-id"],
            client.get("/").headers["x-request-id"]
        );
        assert!(client.get("/missing").headers.contains_key("x-request-id"));
    }
}
