//! Cross-origin requests: which other sites' pages may read responses.

use crate::handler::{Handler, Middleware};
use crate::negotiation::vary;
use crate::request::Request;
use crate::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName,
    HeaderValue, ORIGIN,
};
use http::{Method, StatusCode};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What pages of other origins may do: the CORS protocol of the Fetch standard, as a middleware.
///
/// It answers preflight requests itself. It tells browsers what they may show to pages; it does not
/// keep requests from handlers.
///
/// # Examples
/// ```
/// use pirn_http::{Cors, Method, Request, Server, header};
/// let cors = Cors::origins(["https://app.example"])
///     .methods([Method::GET, Method::PUT])
///     .headers([header::CONTENT_TYPE]);
/// let server = Server::new().get("/", || "data").with(cors);
/// let fields = [("origin", "https://app.example")];
/// let answer = server.client().request(Method::GET, "/", &fields, b"");
/// assert_eq!(answer.headers["access-control-allow-origin"], "https://app.example");
/// ```
#[derive(Clone, Debug)]
pub struct Cors {
    /// `None`: any.
    origins: Option<Vec<String>>,
    methods: Vec<Method>,
    headers: Vec<HeaderName>,
    exposed: Vec<HeaderName>,
    credentials: bool,
    max_age: Option<Duration>,
    /// Made of the others for the first request.
    fields: OnceLock<Arc<Fields>>,
}

impl Cors {
    /// Allows the pages of all origins to make simple requests, without credentials.
    pub fn any_origin() -> Cors {
        Cors {
            origins: None,
            methods: vec![Method::GET, Method::HEAD, Method::POST],
            headers: Vec::new(),
            exposed: Vec::new(),
            credentials: false,
            max_age: None,
            fields: OnceLock::new(),
        }
    }

    /// Allows the pages of these origins to make simple requests, without credentials. An origin
    /// is what browsers send: `https://app.example`, with a port if it is not the usual one.
    pub fn origins<O: Into<String>>(origins: impl IntoIterator<Item = O>) -> Cors {
        Cors {
            origins: Some(Vec::from_iter(origins.into_iter().map(O::into))),
            ..Cors::any_origin()
        }
    }

    /// Sets which methods are allowed; `GET`, `HEAD` and `POST`.
    #[must_use]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Cors {
        let methods = Vec::from_iter(methods);
        Cors { methods, ..self }
    }

    /// Sets which header fields of requests are allowed, beside those that always are.
    #[must_use]
    pub fn headers(self, headers: impl IntoIterator<Item = HeaderName>) -> Cors {
        let headers = Vec::from_iter(headers);
        Cors { headers, ..self }
    }

    /// Sets which header fields of responses pages may read, beside those that they always may.
    #[must_use]
    pub fn expose(self, headers: impl IntoIterator<Item = HeaderName>) -> Cors {
        let exposed = Vec::from_iter(headers);
        Cors { exposed, ..self }
    }

    /// Allows requests with cookies and the like.
    ///
    /// # Panics
    /// If all origins are allowed: any page could then act in the name of its visitors.
    #[must_use]
    pub fn credentials(self) -> Cors {
        assert!(self.origins.is_some(), "credentials need a list of origins");
        Cors {
            credentials: true,
            ..self
        }
    }

    /// Sets how long browsers may remember the answer to a preflight request.
    #[must_use]
    pub fn max_age(self, age: Duration) -> Cors {
        Cors {
            max_age: Some(age),
            ..self
        }
    }

    /// Returns the value for `Access-Control-Allow-Origin`.
    fn allowed(&self, origin: Option<&[u8]>) -> Option<HeaderValue> {
        match &self.origins {
            None => Some(HeaderValue::from_static("*")),
            Some(origins) => {
                let origin = origin?;
                let known = origins.iter().find(|known| known.as_bytes() == origin)?;
                HeaderValue::try_from(known).ok()
            }
        }
    }

    fn preflight(&self, allowed: Option<HeaderValue>, fields: &Fields) -> Response {
        let mut response = Response::new(StatusCode::NO_CONTENT);
        let headers = &mut response.headers;
        vary(headers, &ORIGIN);
        vary(headers, &ACCESS_CONTROL_REQUEST_METHOD);
        vary(headers, &ACCESS_CONTROL_REQUEST_HEADERS);
        if let Some(origin) = allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.extend(fields.of_all.clone());
            headers.extend(fields.of_preflight.clone());
            headers.remove(ACCESS_CONTROL_EXPOSE_HEADERS);
        }
        response
    }
}

impl Middleware for Cors {
    fn handle(&self, request: &mut Request, inner: &Handler) -> Response {
        let fields = self.fields.get_or_init(|| Arc::new(Fields::new(self)));
        let origin = request.field(ORIGIN);
        let allowed = self.allowed(origin);
        let is_preflight = request.method == Method::OPTIONS
            && origin.is_some()
            && request.field(ACCESS_CONTROL_REQUEST_METHOD).is_some();
        if is_preflight {
            return self.preflight(allowed, fields);
        }
        let by_origin = self.origins.is_some();
        let fields = Arc::clone(fields);
        request.before_response(move |response| {
            if by_origin {
                vary(&mut response.headers, &ORIGIN);
            }
            if let Some(origin) = allowed {
                response.headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                response.headers.extend(fields.of_all.clone());
            }
        });
        inner(request)
    }
}

/// The header fields that are the same for all requests.
#[derive(Debug)]
struct Fields {
    of_all: HeaderMap,
    of_preflight: HeaderMap,
}

impl Fields {
    fn new(cors: &Cors) -> Fields {
        let mut of_all = HeaderMap::new();
        let mut of_preflight = HeaderMap::new();
        if cors.credentials {
            let yes = HeaderValue::from_static("true");
            of_all.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        }
        insert_list(&mut of_all, ACCESS_CONTROL_EXPOSE_HEADERS, &cors.exposed);
        insert_list(
            &mut of_preflight,
            ACCESS_CONTROL_ALLOW_METHODS,
            &cors.methods,
        );
        insert_list(
            &mut of_preflight,
            ACCESS_CONTROL_ALLOW_HEADERS,
            &cors.headers,
        );
        if let Some(age) = cors.max_age {
            of_preflight.insert(ACCESS_CONTROL_MAX_AGE, age.as_secs().into());
        }
        Fields {
            of_all,
            of_preflight,
        }
    }
}

/// Sets a field to a list of tokens, unless that is empty.
fn insert_list(headers: &mut HeaderMap, name: HeaderName, tokens: &[impl AsRef<str>]) {
    let list = Vec::from_iter(tokens.iter().map(AsRef::as_ref)).join(", ");
    if let (false, Ok(value)) = (list.is_empty(), HeaderValue::try_from(list)) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Server, Status};
    use http::header::{CONTENT_TYPE, ETAG};
    use std::io::{self, Write};

    const APP: &str = "https://app.example";

    fn client(cors: Cors) -> Client {
        Server::new()
            .get("/", || "data")
            .get("/pushed", |request: &mut Request| -> io::Result<()> {
                request.respond(Response::ok())?.write_all(b"data")
            })
            .with(cors)
            .client()
    }

    fn strict() -> Cors {
        Cors::origins([APP])
            .methods([Method::GET, Method::PUT])
            .headers([CONTENT_TYPE])
            .expose([ETAG])
            .credentials()
            .max_age(Duration::from_secs(60))
    }

    #[test]
    fn a_preflight_request_is_answered_before_any_handler() {
        let client = client(strict());
        let ask = |origin| {
            let fields = [("origin", origin), ("access-control-request-method", "PUT")];
            client.request(Method::OPTIONS, "/", &fields, b"")
        };
        let answer = ask(APP);
        assert_eq!(answer.status, Status::NO_CONTENT);
        for (name, value) in [
            ("access-control-allow-origin", APP),
            ("access-control-allow-methods", "GET, PUT"),
            ("access-control-allow-headers", "content-type"),
            ("access-control-allow-credentials", "true"),
            ("access-control-max-age", "60"),
        ] {
            assert_eq!(answer.headers[name], value, "{name}");
        }
        let stranger = ask("https://evil.example");
        assert!(!stranger.headers.contains_key("access-control-allow-origin"));
        assert!(
            !stranger
                .headers
                .contains_key("access-control-allow-methods")
        );
        assert_eq!(stranger.headers.get_all("vary").iter().count(), 3);
    }

    #[test]
    fn other_requests_reach_the_handler_whoever_asks() {
        let client = client(strict());
        for path in ["/", "/pushed", "/missing"] {
            let answer = client.request(Method::GET, path, &[("origin", APP)], b"");
            assert_eq!(answer.headers["access-control-allow-origin"], APP, "{path}");
            assert_eq!(answer.headers["access-control-expose-headers"], "etag");
            assert_eq!(answer.headers["vary"], "origin");
        }
        let fields = [("origin", "https://app.example.evil")];
        let answer = client.request(Method::GET, "/", &fields, b"");
        assert_eq!(answer.text(), "data");
        assert_eq!(answer.headers["vary"], "origin");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
        // OPTIONS alone is no preflight request.
        assert_eq!(
            client
                .request(Method::OPTIONS, "/", &[("origin", APP)], b"")
                .status,
            405
        );
    }

    #[test]
    fn all_origins_are_allowed_by_a_star() {
        let answer = client(Cors::any_origin()).get("/");
        assert_eq!(answer.headers["access-control-allow-origin"], "*");
        assert!(!answer.headers.contains_key("vary"));
    }

    #[test]
    #[should_panic(expected = "a list of origins")]
    fn credentials_for_everyone_are_refused() {
        let _ = Cors::any_origin().credentials();
    }
}
