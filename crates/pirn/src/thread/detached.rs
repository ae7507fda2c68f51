//! The end of a thread, and who takes care of its result.
//!
//! A result that nobody will ask for is dropped by the thread itself, on its own stack, or, when the thread has
//! ended already, by whoever drops the handle: never by the runtime on a carrier, because a destructor is
//! code of the user's that may block.

use crate::blocking::wait::{Outcome, Wait};
use crate::vthread::Core;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// Registered in a join cell in place of a waiter when the handle is gone.
static DETACHED: u64 = 0;

fn marker() -> NonNull<()> {
    NonNull::from(&DETACHED).cast()
}

/// The handle of `core` is gone.
pub(crate) fn detach(core: &Core) {
    core.detached.store(true, Ordering::Relaxed); // Relaxed: only an early hint; `register` decides.
    if core.join.is_done() || !core.join.register(marker()) {
        // It has ended: the result, if `join` has not taken it, is ours.
        // SAFETY: no other handle exists.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Drops the result of the running thread, which is about to end, while its thread-locals are still there,
/// if it is known that nobody will ask for it.
pub(crate) fn drop_result_if_detached(core: &Core) {
    if core.detached.load(Ordering::Relaxed) {
        // SAFETY: no handle exists that could take it.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Publishes the end of a thread, and wakes who waits for it.
pub(crate) fn finish(core: &Core) {
    let scope = core.scope.as_deref();
    if let Some(scope) = scope.filter(|_| core.panicked.get()) {
        scope.count_panic();
    }
    match core.join.finish() {
        None => {}
        // SAFETY: no handle exists that could take it.
        Some(waiter) if waiter == marker() => unsafe {
            (core.vtable().drop_result)(NonNull::from(core));
        },
        Some(waiter) => {
            // SAFETY: the joiner keeps its `Wait` in place until it is claimed.
            let wakeup = unsafe { waiter.cast::<Wait>().as_ref() }.claim(Outcome::Ready);
            if let Some(wakeup) = wakeup {
                wakeup.perform();
            }
        }
    }
    if let Some(scope) = scope {
        scope.leave();
    }
}
