//! What `bench-load users` and `bench-load open` print: one line of JSON.

use serde::{Deserialize, Serialize};

/// The outcome of a load. `ok + errors == requests`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Requests asked for (`users`), or counted in the measured time (`open`).
    pub requests: u64,
    /// Requests answered as expected.
    pub ok: u64,
    /// Requests that failed, or were never sent because an earlier one of their user failed.
    pub errors: u64,
    /// What was wrong with the first request that failed.
    pub first_error: Option<String>,
    /// The latencies of the `ok` requests; none if there are no such requests.
    #[serde(flatten)]
    pub latency: Latency,
    /// The most connections that were open at once.
    pub peak_connections: u64,
    /// From the first arrival (`users`), or the end of the ramp (`open`), until the last request
    /// was done.
    pub wall_s: f64,
    /// `ok` requests in a second of `wall_s` (`users`), or of the measured time in which they
    /// began (`open`).
    pub per_second: f64,
    /// How late the latest arrival was: large if the client itself could not keep up.
    pub late_ms: f64,
    /// Processor time the client took, in user and in kernel mode.
    pub cpu_s: f64,
    /// The server's share, if its process was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Share>,
}

/// What a server did and took during a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Requests that it answered.
    pub answered: u64,
    /// Processor time that it took, in user and in kernel mode.
    pub cpu_s: f64,
}

/// How long answers took, exact to three digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The mean.
    pub mean_ms: Option<f64>,
    /// The median.
    pub p50_ms: Option<f64>,
    /// What nine of ten did not exceed.
    pub p90_ms: Option<f64>,
    /// What 99 of 100 did not exceed.
    pub p99_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
}
