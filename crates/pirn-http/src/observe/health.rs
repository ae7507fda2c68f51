//! Whether a server is ready, for what sends it requests.

use crate::request::Request;
use crate::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether a server wants requests: the answer to a load balancer's probe.
///
/// It is 200 while it does, and 503 when it does not or is being shut down. To drain a server, set
/// it to `false`, wait until the balancer has noticed, and then shut down. Whether the process is
/// alive is another question: any handler that returns `()` answers that.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Server, Status, observe::Readiness};
/// let readiness = Readiness::new(true);
/// let server = Server::new()
///     .get("/live", || ())
///     .get("/ready", readiness.handler());
/// let client = server.client();
/// assert_eq!(client.get("/ready").status, Status::OK);
/// readiness.set(false);
/// assert_eq!(client.get("/ready").status, Status::SERVICE_UNAVAILABLE);
/// ```
#[derive(Clone, Debug)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Returns a readiness; `false` if the program has something to do first.
    pub fn new(is_ready: bool) -> Readiness {
        Readiness(Arc::new(AtomicBool::new(is_ready)))
    }

    /// Sets whether requests are wanted.
    pub fn set(&self, is_ready: bool) {
        self.0.store(is_ready, Relaxed); // Relaxed: nothing else is told by it.
    }

    /// Returns the handler that answers.
    pub fn handler(&self) -> impl Fn(&mut Request) -> Response + Send + Sync + 'static {
        let is_ready = Arc::clone(&self.0);
        move |request: &mut Request| {
            let mut response = match is_ready.load(Relaxed) && !request.is_stopping() {
                true => "ready\n".into_response(),
                false => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response(),
            };
            let no_store = HeaderValue::from_static("no-store");
            response.headers.insert(CACHE_CONTROL, no_store);
            response
        }
    }
}
