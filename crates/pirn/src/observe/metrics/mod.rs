//! What the runtime has counted, and how much there is of everything.
//!
//! [`metrics`] takes a snapshot, [`Metrics`]. Its `Display` form is the text that Prometheus reads,
//! so a server needs one line for its page; the [example][server] is such a server.
//!
//! [server]: https://docs.rs/crate/pirn/latest/source/examples/metrics_server.rs
//!
//! # Examples
//! ```
//! let before = pirn::metrics();
//! pirn::thread::spawn(|| ()).join().unwrap();
//! let after = pirn::metrics();
//! assert!(after.started > before.started);
//! println!("{} threads wait, of {}", after.threads.waiting, after.threads.all());
//! println!("{after}"); // for Prometheus
//! ```

pub(crate) mod answer;
mod collect;
mod json;
mod latency;
mod memory;
mod prometheus;
mod snapshot;

pub use latency::Latency;
pub use memory::Memory;
pub use snapshot::{Carrier, CarrierState, Metrics, Offloaded, Parks, StackSlots, Threads};

pub(crate) use collect::{Depth, collect};

use pirn_rt::runtime;

/// Returns what the runtime has counted since its start, and how much there is of everything now.
///
/// Counters are exact. They are read one after the other while threads go on, so those of one
/// snapshot may differ by what happened meanwhile. Each counter never goes down.
///
/// Nothing is stopped for it. It takes some 0.2 ms, and up to 5 ms if there are many threads, to
/// find out how much memory their stacks use ([`Memory::stacks`]).
///
/// All numbers are 0 before the first virtual thread, and in the child of a `fork`, which has none.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let parked = thread::spawn(thread::park);
/// while pirn::metrics().threads.waiting == 0 {
///     thread::yield_now();
/// }
/// parked.thread().unpark();
/// parked.join().unwrap();
/// assert!(pirn::metrics().parks.all() > 0);
/// ```
pub fn metrics() -> Metrics {
    match runtime::get() {
        Some(runtime) => collect(runtime, Depth::Thorough),
        None => Metrics::default(),
    }
}

#[cfg(test)]
mod tests;
