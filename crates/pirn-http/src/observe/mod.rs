//! What operators want to know of a server: who asked for what, how often, how long it took, and
//! whether it is ready.

mod access_log;
mod health;
mod metrics;
mod request_id;
#[cfg(feature = "tracing")]
mod spans;

pub use crate::refusal::Refused;
pub use access_log::{AccessLog, LogFormat};
pub use health::Readiness;
pub use metrics::Metrics;
pub use request_id::request_ids;
#[cfg(feature = "tracing")]
pub use spans::spans;

use crate::request::Request;
use crate::response::Response;
use http::{Method, StatusCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a request ended.
#[derive(Debug)]
struct Outcome {
    /// The route that has served it; `None`: no route did, or the handler panicked.
    route: Option<Arc<str>>,
    status: StatusCode,
    /// The cause of a 500.
    error: Option<String>,
    /// The length of the body as the server sent it.
    bytes: u64,
    duration: Duration,
}

/// Returns the method, the target and the version of a first line, which may have less, or more.
fn parts_of(line: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let end = line
        .iter()
        .position(|&byte| byte == b' ')
        .unwrap_or(line.len());
    let (method, rest) = line.split_at(end);
    let version = rest.windows(6).rposition(|part| part == b" HTTP/");
    let (target, version) = rest.split_at(version.unwrap_or(rest.len()));
    (method, target.trim_ascii(), version.trim_ascii())
}

/// Calls a function once, when a request is over. If the handler panics, that is when this is
/// dropped: the client gets a 500, or no end of the body.
struct Observer<F: FnOnce(Outcome)> {
    began: Instant,
    over: Option<F>,
}

impl<F: FnOnce(Outcome) + Send + 'static> Observer<F> {
    fn new(over: F) -> Observer<F> {
        Observer {
            began: Instant::now(),
            over: Some(over),
        }
    }

    /// Observes what a handler has returned: until the body has been sent.
    fn watch(mut self, request: &Request, mut response: Response) -> Response {
        let (began, is_head) = (self.began, request.method == Method::HEAD);
        let route = request.shared_route().cloned();
        let Some(over) = self.over.take() else {
            return response;
        };
        let error = response.error().map(ToString::to_string);
        if let Some(status) = request.outgoing.status {
            over(Outcome {
                route,
                status,
                error,
                bytes: if is_head { 0 } else { request.outgoing.written },
                duration: began.elapsed(),
            });
            return response;
        }
        let status = response.status;
        let end = move |bytes| {
            over(Outcome {
                route,
                status,
                error,
                bytes: if is_head { 0 } else { bytes },
                duration: began.elapsed(),
            });
        };
        response.body = response.body.on_end(end);
        response
    }
}

impl<F: FnOnce(Outcome)> Drop for Observer<F> {
    fn drop(&mut self) {
        if let Some(over) = self.over.take() {
            over(Outcome {
                route: None,
                status: StatusCode::INTERNAL_SERVER_ERROR,
                error: None,
                bytes: 0,
                duration: self.began.elapsed(),
            });
        }
    }
}
