//! Counting requests, for Prometheus.

use super::{Observer, Refused, parts_of};
use crate::handler::{Handler, Middleware};
use crate::request::Request;
use crate::response::Response;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The upper bounds of the durations, in microseconds and as they are written.
const BOUNDS: [(u64, &str); 13] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
];

/// Counts of requests: by route, method and class of the status; their durations; how many there
/// are now.
///
/// The label is the route, such as `/users/{id}`, not the path, and unknown methods are `other`:
/// clients cannot make series. Requests for which there is no route are one series.
///
/// As [middleware](crate::Server::with), add it last, so that it is around all others and sees what
/// they answer. It counts the requests that the server refuses before a handler sees them, too.
///
/// # Examples
/// ```
/// use pirn_http::{Server, observe::Metrics};
/// let metrics = Metrics::new();
/// let server = Server::new()
///     .get("/users/{id}", || "a user")
///     .get("/metrics", metrics.handler())
///     .with(metrics.clone());
/// let client = server.client();
/// client.get("/users/1");
/// let line = "http_requests_total{route=\"/users/{id}\",method=\"GET\",status=\"2xx\"} 1\n";
/// assert!(client.get("/metrics").text().contains(line));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<All>);

#[derive(Debug, Default)]
struct All {
    in_flight: AtomicI64,
    series: RwLock<BTreeMap<Key, Arc<Series>>>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    /// `None`: no route serves the requests.
    route: Option<Arc<str>>,
    method: &'static str,
}

/// The counts of one route and method. All of them only grow, and each is right by itself.
#[derive(Debug, Default)]
struct Series {
    /// By the first digit of the status.
    by_class: [AtomicU64; 6],
    /// The last: beyond all bounds.
    by_duration: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl Metrics {
    /// Returns counts of no requests.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// Returns a handler that serves the counts in Prometheus' text format.
    pub fn handler(&self) -> impl Fn() -> Response + Send + Sync + 'static {
        let metrics = self.clone();
        move || {
            let text = metrics.text();
            Response::ok()
                .text(text)
                .content_type("text/plain; version=0.0.4; charset=utf-8")
        }
    }

    /// Returns the counts in Prometheus' text format.
    pub fn text(&self) -> String {
        let series = self.0.series.read().unwrap_or_else(PoisonError::into_inner);
        let series = Vec::from_iter(series.iter().map(|(key, series)| (key.labels(), series)));
        let mut text = String::new();
        describe(
            &mut text,
            "http_requests_total",
            "counter",
            "Requests that are over.",
        );
        for (labels, series) in &series {
            for (class, count) in series.by_class.iter().enumerate().skip(1) {
                let count = count.load(Relaxed);
                if count > 0 {
                    line(
                        &mut text,
                        "http_requests_total",
                        &format!("{labels},status=\"{class}xx\""),
                        count,
                    );
                }
            }
        }
        let name = "http_request_duration_seconds";
        describe(
            &mut text,
            name,
            "histogram",
            "Time from the head to the end of the response.",
        );
        for (labels, series) in &series {
            series.histogram(&mut text, name, labels);
        }
        describe(
            &mut text,
            "http_requests_in_flight",
            "gauge",
            "Requests that are served now.",
        );
        let in_flight = self.0.in_flight.load(Relaxed);
        let _ = writeln!(text, "http_requests_in_flight {in_flight}"); // As in `line`.
        text
    }
}

impl Middleware for Metrics {
    fn handle(&self, request: &mut Request, inner: &Handler) -> Response {
        let all = Arc::clone(&self.0);
        all.in_flight.fetch_add(1, Relaxed);
        let method = known(request.method.as_str());
        let observer = Observer::new(move |outcome| {
            let route = outcome.route;
            let key = Key { route, method };
            let class = usize::from(outcome.status.as_u16() / 100);
            all.series(&key).count(class, outcome.duration);
            all.in_flight.fetch_sub(1, Relaxed);
        });
        let response = inner(request);
        observer.watch(request, response)
    }

    fn refused(&self, refused: &Refused<'_>) {
        let (method, _, _) = parts_of(refused.line);
        let method = known(str::from_utf8(method).unwrap_or_default());
        let key = Key {
            route: None,
            method,
        };
        let class = usize::from(refused.status.as_u16() / 100);
        self.0.series(&key).count(class, Duration::ZERO);
    }
}

impl All {
    fn series(&self, key: &Key) -> Arc<Series> {
        let known = self.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(key) {
            return Arc::clone(series);
        }
        drop(known);
        let mut known = self.series.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(key.clone()).or_default())
    }
}

impl Key {
    fn labels(&self) -> String {
        let route = self.route.as_deref().unwrap_or("none");
        let route = route
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("route=\"{route}\",method=\"{}\"", self.method)
    }
}

impl Series {
    fn count(&self, class: usize, duration: Duration) {
        if let Some(count) = self.by_class.get(class) {
            count.fetch_add(1, Relaxed);
        }
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|&(bound, _)| bound < microseconds);
        self.by_duration[bucket].fetch_add(1, Relaxed);
        self.microseconds.fetch_add(microseconds, Relaxed);
    }

    fn histogram(&self, text: &mut String, name: &str, labels: &str) {
        let mut total = 0;
        let bounds = BOUNDS.iter().map(|&(_, text)| text).chain(["+Inf"]);
        for (count, bound) in self.by_duration.iter().zip(bounds) {
            total += count.load(Relaxed);
            line(
                text,
                &format!("{name}_bucket"),
                &format!("{labels},le=\"{bound}\""),
                total,
            );
        }
        let seconds = Duration::from_micros(self.microseconds.load(Relaxed)).as_secs_f64();
        line(text, &format!("{name}_sum"), labels, seconds);
        line(text, &format!("{name}_count"), labels, total);
    }
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}"); // Writing to a string does not fail.
}

fn describe(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}"); // As in `line`.
}

/// Returns the name of a method that is known.
fn known(method: &str) -> &'static str {
    const NAMES: [&str; 9] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE",
    ];
    NAMES
        .into_iter()
        .find(|name| *name == method)
        .unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Server, Status};
    use http::Method;

    #[test]
    fn requests_are_counted_by_route_method_and_class() {
        let metrics = Metrics::new();
        let seen = metrics.clone();
        let server = Server::new()
            .get("/a/{*rest}", || "")
            .post("/a/{*rest}", || Status::NOT_FOUND)
            .get("/now", move || seen.text())
            .get("/panic", || -> () { panic!("on purpose") })
            .with(metrics.clone());
        let client = server.client();
        client.get("/a/1");
        client.get("/a/2");
        client.post("/a/3", "x");
        client.get("/missing");
        client.get("/panic");
        client.request(Method::from_bytes(b"INVENTED").unwrap(), "/a/1", &[], b"");
        assert!(
            client
                .get("/now")
                .text()
                .contains("\nhttp_requests_in_flight 1\n")
        );
        let text = metrics.text();
        for (labels, count) in [
            ("route=\"/a/{*rest}\",method=\"GET\",status=\"2xx\"", 2),
            ("route=\"/a/{*rest}\",method=\"POST\",status=\"4xx\"", 1),
            ("route=\"/a/{*rest}\",method=\"other\",status=\"4xx\"", 1),
            ("route=\"none\",method=\"GET\",status=\"4xx\"", 1),
            ("route=\"none\",method=\"GET\",status=\"5xx\"", 1),
        ] {
            let line = format!("http_requests_total{{{labels}}} {count}\n");
            assert!(text.contains(&line), "{line} in {text}");
        }
        assert!(text.contains("\nhttp_requests_in_flight 0\n"), "{text}");
    }

    #[test]
    fn durations_are_counted_in_all_buckets_that_they_are_below() {
        let series = Series::default();
        for microseconds in [1, 500, 501, 20_000_000] {
            series.count(2, Duration::from_micros(microseconds));
        }
        let mut text = String::new();
        series.histogram(&mut text, "d", "x=\"y\"");
        for line in [
            "d_bucket{x=\"y\",le=\"0.0005\"} 2\n",
            "d_bucket{x=\"y\",le=\"0.001\"} 3\n",
            "d_bucket{x=\"y\",le=\"10\"} 3\n",
            "d_bucket{x=\"y\",le=\"+Inf\"} 4\n",
            "d_sum{x=\"y\"} 20.001002\n",
            "d_count{x=\"y\"} 4\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
