//! The end of a thread, and who takes care of its result.
//!
//! A result that nobody will ask for is dropped by the thread itself, on its own stack, or, when
//! the thread has ended already, by whoever drops the handle: never by the runtime on a carrier,
//! because a destructor is code of the user's that may block.
//!
//! What is registered in a thread's join cell, one at a time and only by whoever has the handle:
//!
//! ```text
//!   pointer to        low bit   by                        so the ending thread
//!   `DETACHED`        0         detach                    drops the result
//!   a `Wait`          0         `JoinHandle::join`        claims it and wakes its thread; it stays the joiner's
//!   a boxed `Waker`   1         register, for a future    owns it now, and wakes it
//! ```
//!
//! A `Wait` lies on the stack of the joiner, who must therefore not give up: the ending thread may
//! have the pointer. Those who may (futures, and joins with a timeout or that an interrupt ends)
//! register a waker, which has memory of its own. Waking it is, again, code of the user's that may
//! block.

use crate::blocking::wait::{Outcome, Wait};
use crate::sys;
use crate::vthread::Core;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use core::task::Waker;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Registered in a join cell in place of a waiter when the handle is gone.
static DETACHED: u64 = 0;

fn marker() -> NonNull<()> {
    NonNull::from(&DETACHED).cast()
}

/// Tells a waker from the others: all of them are aligned.
const WAKER: usize = 1;

/// A waker in a join cell: a tagged `Box<Waker>`, the ending thread's unless it is taken back.
pub(crate) struct Registered(NonNull<()>);

// SAFETY: wakers are Send.
unsafe impl Send for Registered {}
// SAFETY: `&Registered` gives access to nothing.
unsafe impl Sync for Registered {}

impl Registered {
    fn new(waker: Box<Waker>) -> Registered {
        let pointer = NonNull::from(Box::leak(waker)).cast::<()>();
        Registered(pointer.map_addr(|address| address | WAKER))
    }

    /// The waker again.
    ///
    /// # Safety
    /// The caller has taken the pointer out of the join cell, or could not put it in.
    unsafe fn into_waker(self) -> Box<Waker> {
        let untagged = self.0.as_ptr().map_addr(|address| address & !WAKER);
        // SAFETY: from `new`, and the caller's contract: nobody else has it.
        unsafe { Box::from_raw(untagged.cast()) }
    }
}

/// Has the end of `core` wake `waker`. Gives it back if the thread has ended.
///
/// For whoever has the handle; nothing else may be registered.
pub(crate) fn register(core: &Core, waker: Box<Waker>) -> Result<Registered, Box<Waker>> {
    let registered = Registered::new(waker);
    if core.join.register(registered.0) {
        Ok(registered)
    } else {
        // SAFETY: it could not be put in.
        Err(unsafe { registered.into_waker() })
    }
}

/// Takes the waker back, unless the ending thread has it: then it has been woken or is going to be.
pub(crate) fn unregister(core: &Core, registered: Registered) -> Option<Box<Waker>> {
    let taken = core.join.unregister(registered.0);
    // SAFETY: it has just been taken out.
    taken.then(|| unsafe { registered.into_waker() })
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

/// Drops the result of the running thread, which is about to end, while its thread-locals are still
/// there, if it is known that nobody will ask for it.
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
        Some(waiter) if waiter.addr().get() & WAKER != 0 => {
            // SAFETY: `JoinCell::finish` has taken it out of the cell.
            wake(*unsafe { Registered(waiter).into_waker() });
        }
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
    // SAFETY: the end of the thread, or of its chance to begin.
    unsafe { (core.vtable().ended)(NonNull::from(core)) };
}

fn wake(waker: Waker) {
    if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
        sys::fatal(&[
            "a waker panicked, and with it the end of a virtual thread that a task awaits is lost",
        ]);
    }
}
