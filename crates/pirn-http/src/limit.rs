//! Limits on requests, as middleware.

use crate::handler::{Handler, Middleware};
use crate::poison::locked;
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Returns a middleware that serves up to `limit` requests at the same time. Others are answered at
/// once by 503, with `Retry-After: 1`.
///
/// A request counts until its handler returns or, if the response's body is a reader, until the
/// body has been sent.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Server, Status, limit_concurrency};
/// let server = Server::new().get("/", || "in").with(limit_concurrency(0));
/// assert_eq!(server.client().get("/").status, Status::SERVICE_UNAVAILABLE);
/// ```
pub fn limit_concurrency(limit: usize) -> impl Middleware {
    let present = Arc::new(AtomicUsize::new(0));
    move |request: &mut Request, inner: &Handler| {
        // Made before the count is looked at: its drop takes back what is added here.
        let place = Place(Arc::clone(&present));
        // Relaxed: no other data.
        if present.fetch_add(1, Relaxed) >= limit {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, 1);
        }
        let mut response = inner(request);
        response.body = response.body.on_end(move |_| drop(place));
        response
    }
}

/// A request that counts.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Returns a middleware that serves `per_second` requests per second on average, and up to `burst`
/// at once. Others are answered at once by 429, with `Retry-After`.
///
/// All clients share the limit.
///
/// # Panics
/// If `per_second` or `burst` is zero.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Server, Status, limit_rate};
/// let server = Server::new().get("/", || "in").with(limit_rate(1, 2));
/// let client = server.client();
/// assert_eq!(client.get("/").status, Status::OK);
/// assert_eq!(client.get("/").status, Status::OK);
/// // Now one of them per second.
/// ```
pub fn limit_rate(per_second: u32, burst: u32) -> impl Middleware {
    assert!(per_second > 0 && burst > 0, "the rate or the burst is zero");
    let bucket = Mutex::new(Bucket::new(per_second, burst, Instant::now()));
    move |request: &mut Request, inner: &Handler| {
        let taken = locked(&bucket).take(Instant::now());
        match taken {
            Ok(()) => inner(request),
            Err(wait) => refuse(StatusCode::TOO_MANY_REQUESTS, wait.as_secs() + 1),
        }
    }
}

fn refuse(status: StatusCode, seconds: u64) -> Response {
    let mut response = status.into_response();
    response
        .headers
        .insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// What requests are taken from: the time at which it will be full again says how full it is.
#[derive(Debug)]
struct Bucket {
    interval: Duration,
    /// How long it takes to fill.
    capacity: Duration,
    full_at: Instant,
}

impl Bucket {
    fn new(per_second: u32, burst: u32, now: Instant) -> Bucket {
        let interval = Duration::from_secs(1) / per_second;
        Bucket {
            interval,
            capacity: interval * burst,
            full_at: now,
        }
    }

    /// Takes one request.
    ///
    /// # Errors
    /// If the bucket is empty: how long to wait.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.max(now) + self.interval;
        let used = full_at - now;
        if used > self.capacity {
            return Err(used - self.capacity);
        }
        self.full_at = full_at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use std::sync::mpsc;

    #[test]
    fn as_many_as_allowed_are_served_at_the_same_time() {
        let (go, wait) = mpsc::channel::<()>();
        let (come, here) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let server = Server::new()
            .get("/wait", move || {
                come.send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
            })
            .get("/", || "in")
            .get("/panic", || -> () { panic!("on purpose") })
            .with(limit_concurrency(1));
        let client = Arc::new(server.client());
        let first = Arc::clone(&client);
        let first = pirn::thread::spawn(move || first.get("/wait").status);
        here.recv().unwrap();
        let refused = client.get("/");
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers["retry-after"], "1");
        go.send(()).unwrap();
        assert_eq!(first.join().unwrap(), StatusCode::OK);
        assert_eq!(client.get("/").status, StatusCode::OK);
        assert_eq!(
            client.get("/panic").status,
            StatusCode::INTERNAL_SERVER_ERROR
        );
        assert_eq!(
            client.get("/").status,
            StatusCode::OK,
            "a panic gives its place back"
        );
    }

    #[test]
    fn a_bucket_allows_a_burst_and_then_the_rate() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut bucket = Bucket::new(10, 3, start);
        let taken = [0, 0, 0, 0, 99, 100, 100, 1000, 1000, 1000, 1000]
            .map(|millis| bucket.take(after(millis)).is_ok());
        let expected = [
            true, true, true, false, false, true, false, true, true, true, false,
        ];
        assert_eq!(taken, expected);
        assert_eq!(bucket.take(after(1000)), Err(Duration::from_millis(100)));
    }
}
