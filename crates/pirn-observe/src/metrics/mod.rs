//! What the runtime has counted, and how much there is of everything.
//!
//! [`metrics`] takes a snapshot, [`Metrics`].

mod collect;
mod export;
mod latency;
mod memory;
mod snapshot;

pub use latency::Latency;
pub use memory::Memory;
pub use snapshot::{Carrier, CarrierState, Metrics, Offloaded, Parks, StackSlots, Threads};

#[doc(hidden)]
pub use collect::{Depth, collect};
#[doc(hidden)]
pub use export::Line;

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
pub fn metrics() -> Metrics {
    match runtime::get() {
        Some(runtime) => collect(runtime, Depth::Thorough),
        None => Metrics::default(),
    }
}
