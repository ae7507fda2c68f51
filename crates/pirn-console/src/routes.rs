//! The answer to each path.

use std::io;

use pirn_http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use pirn_http::{Request, Response, Status};
use serde::Serialize;

use crate::request::{Asked, Query};
use crate::{Console, download, page, stream, views};

/// Fields of all responses: the page may load and ask nothing but its own files and answers; no
/// other page may frame it or learn its address, and no cache may keep it.
const ALWAYS: [(HeaderName, &str); 7] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         object-src 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (CACHE_CONTROL, "no-store"),
];

/// Answers a request, if its client may ask.
pub fn answer(console: &Console, request: &mut Request) -> io::Result<Response> {
    request.before_response(|response| {
        for (name, value) in ALWAYS {
            response
                .headers
                .insert(name, HeaderValue::from_static(value));
        }
    });
    let Some(asked) = Asked::of(request) else {
        return Ok(refuse(Status::BAD_REQUEST));
    };
    let path = match console.guard.check(&asked) {
        Ok(path) => path,
        Err(status) => return Ok(refuse(status)),
    };
    let query = Query::of(request);
    match path {
        "events" => stream::serve(console, request),
        "groups" => json(views::groups(console, &query)),
        "threads" => json(views::threads(console, &query)),
        "thread" => json(views::thread(console, &query)),
        "scopes" => json(views::scopes(&console.live, &query)),
        "record" => json(views::record(console, &query)),
        "dump.pirndump" | "dump.json" | "dump.txt" => download::dump(console, path, request),
        "trace.pftrace" => download::trace(console, &query, request),
        _ => Ok(match page::file(path) {
            Some((kind, bytes)) => Response::ok().content_type(kind).body(bytes),
            None => refuse(Status::NOT_FOUND),
        }),
    }
}

/// Refuses a request. The answer says nothing but its status.
fn refuse(status: Status) -> Response {
    let response = Response::new(status).text(format!("{status}\n"));
    match status {
        Status::METHOD_NOT_ALLOWED => response.header(ALLOW, "GET"),
        _ => response,
    }
}

/// Returns a value, or what is wrong: `{"error":"…"}`, which the page shows.
fn json<T: Serialize>(answer: Result<T, String>) -> io::Result<Response> {
    #[derive(Serialize)]
    struct Wrong {
        error: String,
    }
    let body = match answer {
        Ok(value) => serde_json::to_vec(&value),
        Err(error) => serde_json::to_vec(&Wrong { error }),
    };
    Ok(Response::ok().content_type("application/json").body(body?))
}
