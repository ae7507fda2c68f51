//! The end of a thread: announcing it, and dropping a result that nobody wants.
//!
//! A result that nobody will ask for is dropped by the thread itself, on its own stack, or, if the
//! thread has ended already, by whoever drops the handle. The runtime never drops it on a carrier:
//! a destructor is the user's code and may block.
//!
//! Whoever has the handle may register one [`JoinWaiter`] in the thread's join cell. It says what
//! the ending thread has to do:
//!
//! ```text
//!   registered by                     the ending thread            the memory of the waiter
//!   `detach`                          drops the result             is static
//!   `JoinHandle::join`                claims the `Wait` behind it  stays the joiner's stack
//!   a future (`thread/join_future`)   wakes the task's waker       is a box, now its own
//! ```
//!
//! A waiter on the stack of its joiner cannot be taken back: the ending thread may already have the
//! pointer. So joiners that may give up (futures, joins with a timeout, joins that hear interrupts)
//! register a boxed one.

use super::record::Core;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// What waits for the end of a thread: the first field of whatever is registered.
#[repr(C)]
pub(crate) struct JoinWaiter {
    /// Called by the ending thread, once, with the address that was registered.
    ended: unsafe fn(NonNull<JoinWaiter>, &Core),
}

impl JoinWaiter {
    /// Makes a waiter for which the ending thread calls `ended`.
    pub(crate) const fn new(ended: unsafe fn(NonNull<JoinWaiter>, &Core)) -> JoinWaiter {
        JoinWaiter { ended }
    }
}

/// Registered when the handle is gone.
static DETACHED: JoinWaiter = JoinWaiter::new(|_, core| {
    // SAFETY: no handle exists that could take it.
    unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
});

impl Core {
    /// Returns whether the thread has ended, so that its result is there.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.join.is_done()
    }

    /// Registers `waiter` to be called at the end of this thread. Returns `false` if it has ended
    /// already: then the waiter stays the caller's.
    ///
    /// # Safety
    /// The caller has the only handle of the thread, and nothing is registered. After `true`
    /// the waiter stays valid until it has been called or [`unregister`](Self::unregister)
    /// returned `true`.
    #[inline]
    #[must_use = "`false` means that nobody will call the waiter"]
    pub(crate) unsafe fn register(&self, waiter: NonNull<JoinWaiter>) -> bool {
        self.join.register(waiter.cast())
    }

    /// Takes the registered waiter back. Returns `false` if the ending thread has it: then it has
    /// been called or will be.
    #[must_use = "`false` means that the waiter is still going to be called"]
    pub(crate) fn unregister(&self, waiter: NonNull<JoinWaiter>) -> bool {
        self.join.unregister(waiter.cast())
    }
}

/// Notes that the handle of `core` is gone.
pub(crate) fn detach(core: &Core) {
    core.detached.store(true, Ordering::Relaxed); // Relaxed: only an early hint; `register` decides.
    // SAFETY: the handle was the caller's, and the marker is static.
    if core.has_ended() || !unsafe { core.register(NonNull::from(&DETACHED)) } {
        // It has ended: the result, if `join` has not taken it, is ours.
        // SAFETY: no other handle exists.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Drops the result of the running thread, which is about to end, while its thread-locals are still
/// there, if it is known that nobody will ask for it.
pub(super) fn drop_result_if_detached(core: &Core) {
    if core.detached.load(Ordering::Relaxed) {
        // Relaxed: the store's thread gave up the handle before, and touches nothing after it.
        // SAFETY: no handle exists that could take it.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Publishes the end of a thread, or that it will never begin, and wakes whoever waits for it.
pub(crate) fn publish(core: &Core) {
    if let Some(waiter) = core.join.finish() {
        let waiter = waiter.cast::<JoinWaiter>();
        // SAFETY: the contract of `register`; `JoinCell::finish` has taken it out of the cell.
        unsafe { (waiter.as_ref().ended)(waiter, core) };
    }
    // SAFETY: the end of the thread, or of its chance to begin.
    unsafe { (core.vtable().ended)(NonNull::from(core)) };
}
