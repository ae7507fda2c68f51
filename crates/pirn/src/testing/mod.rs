//! Runtimes and threads for unit tests, and the tests of the crates below that need threads which
//! park in `std`'s locks and channels.

mod claimed;
#[cfg(feature = "dump")]
mod debug_table;
#[cfg(feature = "dump")]
mod dump_memory;
#[cfg(feature = "dump")]
mod metrics;
mod runtimes;
#[cfg(feature = "dump")]
mod waits;

use crate::thread::join::RawHandle;
use pirn_rt::runtime::Runtime;
use pirn_rt::runtime::testing::ready;
pub use pirn_rt::runtime::testing::{few, make_with};
use pirn_rt::sched;

/// Spawns a thread of a runtime.
#[track_caller]
pub fn spawn<T: Send>(
    runtime: &'static Runtime,
    f: impl FnOnce() -> T + Send + 'static,
) -> RawHandle<T> {
    let (thread, ready) = ready(runtime, f);
    sched::start(ready);
    RawHandle::new(thread)
}
