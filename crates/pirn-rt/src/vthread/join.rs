//! The end of a thread: announcing it, and dropping a result that is not wanted.
//!
//! If the handle is gone, the thread itself drops its result, on its own stack. If the thread has
//! ended before, the code that drops the handle drops the result. The runtime never drops it on a
//! carrier's own stack: a destructor is the user's code and may block.
//!
//! The owner of the handle may register one [`JoinWaiter`] in the thread's join cell. The waiter
//! determines what the ending thread does:
//!
//! ```text
//!   registered by                     the ending thread            the memory of the waiter
//!   `detach`                          drops the result             is static
//!   `JoinHandle::join`                claims the `Wait` behind it  stays the joiner's stack
//!   a future (`thread/join.rs`)       wakes the task's waker       is a box, now its own
//! ```
//!
//! A waiter on the stack of its joiner cannot be taken back: the ending thread may already have the
//! pointer. So joiners that may give up (futures, joins with a timeout, joins that an interrupt
//! ends) register a boxed one.

use super::record::Core;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// The head of an object that waits for the end of a thread: the first field of each.
#[repr(C)]
pub struct JoinWaiter {
    /// Called by the ending thread, once, with the address that was registered.
    ended: unsafe fn(NonNull<JoinWaiter>, &Core),
}

impl JoinWaiter {
    /// Returns a waiter for which the ending thread calls `ended`.
    #[inline]
    pub const fn new(ended: unsafe fn(NonNull<JoinWaiter>, &Core)) -> JoinWaiter {
        JoinWaiter { ended }
    }
}

/// Registered once the handle is gone.
static DETACHED: JoinWaiter = JoinWaiter::new(|_, core| {
    // SAFETY: no handle exists that could take it.
    unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
});

impl Core {
    /// Returns whether the thread has ended, so that its result is there.
    #[inline]
    pub fn has_ended(&self) -> bool {
        let ended = self.join.is_done();
        if ended {
            self.continuation.order_after();
        }
        ended
    }

    /// Registers `waiter` to be called at the end of this thread. Returns `false` if the thread has
    /// ended already: then the waiter remains the caller's.
    ///
    /// # Safety
    /// The caller has the only handle of the thread, and nothing is registered. After `true`
    /// the waiter stays valid until it has been called or [`unregister`](Self::unregister)
    /// returned `true`.
    #[inline]
    #[must_use = "`false` means that no thread will call the waiter"]
    pub unsafe fn register(&self, waiter: NonNull<JoinWaiter>) -> bool {
        self.join.register(waiter.cast())
    }

    /// Takes the registered waiter back. Returns `false` if the ending thread has the waiter, and
    /// has called it or will call it.
    #[must_use = "`false` means that the waiter is still going to be called"]
    #[inline]
    pub fn unregister(&self, waiter: NonNull<JoinWaiter>) -> bool {
        self.join.unregister(waiter.cast())
    }
}

/// Records that the handle of `core` is gone.
#[inline]
pub fn detach(core: &Core) {
    core.detached.store(true, Ordering::Relaxed); // Relaxed: only an early hint; `register` decides.
    // SAFETY: the handle was the caller's, and the marker is static.
    if core.has_ended() || !unsafe { core.register(NonNull::from(&DETACHED)) } {
        // The thread has ended: the result, if `join` has not taken it, is ours. SAFETY: no other
        // handle exists.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Drops the result of the running thread, which is about to end, while its thread-locals still
/// exist, if it is known that the handle is gone.
#[inline]
pub(crate) fn drop_result_if_detached(core: &Core) {
    if core.detached.load(Ordering::Relaxed) {
        // Relaxed: the storing thread gave up the handle before, and touches nothing after it.
        // SAFETY: no handle exists that could take it.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Publishes that a thread has ended or will never start, and calls the registered waiter.
#[inline]
pub(crate) fn publish(core: &Core) {
    core.continuation.order_before();
    if let Some(waiter) = core.join.finish() {
        let waiter = waiter.cast::<JoinWaiter>();
        // SAFETY: the contract of `register`; `JoinCell::finish` has taken it out of the cell.
        unsafe { (waiter.as_ref().ended)(waiter, core) };
    }
    // SAFETY: the thread has ended, or will never start.
    unsafe { (core.vtable().ended)(NonNull::from(core)) };
}
