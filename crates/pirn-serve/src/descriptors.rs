//! How the descriptors that the process may have are shared out.
//!
//! ```text
//!   RESERVE       the process itself: listeners, epoll sets, a file of names that is read
//!   connections   clients; half of the rest, unless the operator says how many
//!   requests      what requests open, one each: a file, or a connection to the other server
//! ```
//!
//! A client of HTTP/2 has up to a hundred requests at once. So a request holds a permit while it
//! may have something open, and waits for one before. A connection that the proxy keeps needs none:
//! the next request takes it before it makes another, so there are never more than permits.
//!
//! Rejected: `EMFILE` as the sign that there are too many. Then nothing is left for the listeners,
//! and a server that is well seems to be unreachable.

use std::io::{self, Write};
use std::sync::Once;
use std::time::Duration;

use pirn::thread::{Permit, Semaphore};
use pirn_http::header::RETRY_AFTER;
use pirn_http::{Handler, Request, Response, Status};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The process has 12 when it starts. A request for a folder has two more for a moment.
const RESERVE: usize = 24;

/// How long a request waits for a permit.
const PATIENCE: Duration = Duration::from_secs(10);

static REQUESTS: Semaphore = Semaphore::new(0);

/// Raises the limit of open files as far as an unprivileged process may.
pub(super) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    // Failure: the limit stays, and the server counts with it.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Shares the descriptors out. Returns how many clients may be connected, if the operator wants
/// `most`.
pub(super) fn share_out(most: Option<u32>) -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let (connections, requests) = shares(limit.unwrap_or(usize::MAX), most);
    REQUESTS.add_permits(requests);
    connections
}

/// Returns how many connections and requests there may be.
fn shares(limit: usize, most: Option<u32>) -> (usize, usize) {
    let left = limit.saturating_sub(RESERVE);
    let most = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let connections = most.map_or(left / 2, |most| most.min(left / 4 * 3)).max(1);
    (connections, left.saturating_sub(connections).max(1))
}

/// Waits until a request may open something. `None`: that took too long; the client is told so by
/// [`refusal`].
pub(super) fn wait() -> Option<Permit<'static>> {
    REQUESTS.acquire_timeout(PATIENCE)
}

/// The response to a request for which there was no permit. The first one is told of on standard
/// error.
pub(super) fn refusal() -> Response {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        // If standard error is gone, nothing can be done.
        let _ = writeln!(
            io::stderr(),
            "pirn-serve: too few open files are allowed (ulimit -n): some requests get 503. \
             This is said once."
        );
    });
    Response::new(Status::SERVICE_UNAVAILABLE)
        .header(RETRY_AFTER, "1")
        .text("the server has too many requests")
}

/// Serves a request whose response may read from a file.
pub(super) fn with_file(request: &mut Request, inner: &Handler) -> Response {
    let Some(permit) = wait() else {
        return refusal();
    };
    let mut response = inner(request);
    response.body = response.body.on_end(move |_| drop(permit));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_left_for_the_process_and_for_requests_whatever_the_operator_wants() {
        for (limit, most, expected) in [
            (1024, None, (500, 500)),
            (1024, Some(100), (100, 900)),
            (1024, Some(1_000_000), (750, 250)),
            (64, None, (20, 20)),
            (16, None, (1, 1)),
            (0, Some(5), (1, 1)),
        ] {
            assert_eq!(shares(limit, most), expected, "{limit}, {most:?}");
        }
        let (connections, requests) = shares(usize::MAX, None);
        assert!(connections > 1 << 60 && requests > 1 << 60);
    }
}
