//! What signal handlers want done and cannot do themselves: the monitor does it for them.
//!
//! A handler leaves a bit and wakes the monitor if that [dozes](super::doze). The bit is left by a
//! read-modify-write, as [`Doze::stir`](super::doze::Doze::stir) asks of its callers; the monitor
//! looks for bits after it has said that it sleeps. So one of the two sees the other.

use crate::observe::door;
use crate::runtime;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Somebody outside of the process wants to look inside.
pub(crate) const LET_IN: u32 = 1;
/// The dump is to be written to standard error.
pub(crate) const DUMP: u32 = 2;

/// The errands that nobody has begun yet.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// Has the monitor do an errand. For signal handlers: no lock, no memory, no thread-locals.
///
/// Before the runtime has started nobody does it.
pub(crate) fn want(errand: u32) {
    // Relaxed: ordered by the fence in `stir`; nothing else is passed on.
    WANTED.fetch_or(errand, Relaxed);
    if let Some(runtime) = runtime::get() {
        runtime.doze.stir();
    }
}

/// Forgets errands of the parent, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    WANTED.store(0, Relaxed); // Relaxed: there is no monitor yet.
}

/// Returns whether there is anything to do.
pub(super) fn any() -> bool {
    WANTED.load(Relaxed) != 0 // Relaxed: a hint, or ordered by the fence in `doze`.
}

/// Does what there is to do. Called by the monitor.
pub(super) fn run() {
    if any() {
        door::run_errands(WANTED.swap(0, Relaxed)); // Relaxed: as in `want`.
    }
}
