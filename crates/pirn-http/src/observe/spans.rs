//! Spans of `tracing`.

use crate::handler::{Handler, Middleware};
use crate::request::Request;
use tracing::field::Empty;

/// Returns a middleware that handles each request in a span of `tracing` of the level `INFO`, named
/// `request`, with the fields `method`, `path`, `version`, and, once they are known, `route` and
/// `status`. The span ends when the body has been sent.
///
/// The [cause](crate::Response::error) of a 500 is an event of the level `ERROR` in the span.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Server, observe::spans};
/// let server = Server::new()
///     .get("/users/{id}", |request: &mut Request| {
///         tracing::info!("in the span of this request");
///         request.param::<String>("id")
///     })
///     .with(spans());
/// assert_eq!(server.client().get("/users/7").text(), "7");
/// ```
pub fn spans() -> impl Middleware {
    |request: &mut Request, inner: &Handler| {
        let span = tracing::info_span!(
            "request",
            method = %request.method,
            path = request.uri.path(),
            version = ?request.version,
            route = Empty,
            status = Empty,
        );
        let mut response = span.in_scope(|| inner(request));
        if let Some(route) = request.route() {
            span.record("route", route);
        }
        let status = request.outgoing.status.unwrap_or(response.status);
        span.record("status", status.as_u16());
        if let Some(error) = response.error() {
            tracing::error!(parent: &span, %error, "the handler failed");
        }
        response.body = response.body.on_end(move |_| drop(span));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Server};
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::format::FmtSpan;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_is_handled_in_its_span() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(move || writer.clone())
            .finish();
        // For the threads of connections as well.
        tracing::subscriber::set_global_default(subscriber).unwrap();
        let client = Server::new()
            .get("/users/{id}", || -> Result<(), Error> {
                tracing::info!("inside");
                pirn::thread::yield_now();
                Err(Error::internal("no such table"))
            })
            .with(spans())
            .client();
        client.get("/users/7");
        let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let lines = Vec::from_iter(lines.lines().filter(|line| line.contains("/users/7")));
        let asked = "request{method=GET path=\"/users/7\" version=HTTP/1.1";
        let answered = format!("{asked} route=\"/users/{{id}}\" status=500}}");
        assert!(
            lines[0].contains(&format!("{asked}}}")) && lines[0].ends_with("inside"),
            "{lines:?}"
        );
        assert!(
            lines[1].contains("ERROR") && lines[1].contains(&answered),
            "{lines:?}"
        );
        assert!(
            lines[1].ends_with("the handler failed error=no such table"),
            "{lines:?}"
        );
        assert!(
            lines[2].contains(&answered) && lines[2].contains("close"),
            "{lines:?}"
        );
    }
}
