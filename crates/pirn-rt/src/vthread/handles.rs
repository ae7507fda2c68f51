//! The four handles of a virtual thread: the right to run it, the right to wake it, the thread
//! itself, and counted references.

use super::record::Core;
use crate::no_suspend::{self, NoSuspend};
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::sync::atomic::{Ordering, fence};

/// The right, and the duty, to run a virtual thread until it parks. One exists for each thread that
/// may run and does not run yet.
///
/// The right is made together with the thread, and later by the winner of the thread's
/// [handshake](super::state::Handshake); queues, timers and schedulers pass it on; mounting
/// consumes it. While it exists the thread is alive and off its stack, and only the owner of the
/// right touches its record.
#[must_use = "a thread that no carrier runs never goes on"]
pub struct Ready(NonNull<Core>);

// SAFETY: a virtual thread can be mounted on any platform thread.
unsafe impl Send for Ready {}

impl Ready {
    /// Makes the only right to run `thread`.
    ///
    /// # Safety
    /// The thread is alive, and its handshake or its creation has just given the caller the duty to
    /// run it; or `thread` came from [`into_raw`](Self::into_raw) and is used for the last time.
    #[inline(always)]
    pub(crate) unsafe fn new(thread: NonNull<Core>) -> Ready {
        Ready(thread)
    }

    /// Returns the thread, for a queue that keeps the right as a plain pointer.
    #[inline(always)]
    pub fn into_raw(self) -> NonNull<Core> {
        self.0
    }

    /// Returns the thread's record.
    #[inline(always)]
    pub fn core(&self) -> &Core {
        // SAFETY: alive, since it has yet to run, by the contract of `new`.
        unsafe { self.0.as_ref() }
    }
}

/// Accepts threads that may run, in place of the runtime's own queues.
pub trait Dispatch: Send + Sync {
    /// Accepts the right, and with it the duty, to run a thread.
    fn dispatch(&self, thread: Ready);
}

/// The right, and the duty, to wake a virtual thread. One exists for each of the thread's parks.
///
/// The winner of the claim makes it: the caller that has decided the thread's
/// [wait](super::wait_word), or has found it parked in its [permit](super::state::ParkPermit).
/// Lists of wakes pass it on; waking consumes it. While it exists, the thread is parked or on its
/// way there, and so alive.
///
/// The caller is in a [section](crate::no_suspend) from before the claim until the thread has been
/// woken. Otherwise the owner of the right might run a signal handler in between, which may park or
/// never return. Meanwhile the claimed thread would neither run nor wait, and neither a signal nor
/// another waker could reach it.
#[must_use = "the thread has been claimed: no other thread will wake it"]
pub struct Claimed(NonNull<Core>, NoSuspend);

impl Claimed {
    /// Makes the only right to wake `thread`. The section has begun before the claim.
    ///
    /// # Safety
    /// The thread is parked or on its way there, and the caller has just claimed this episode: it
    /// has decided the wait, or the permit has given it the duty to wake the thread.
    #[inline(always)]
    pub unsafe fn new(thread: NonNull<Core>, section: NoSuspend) -> Claimed {
        Claimed(thread, section)
    }

    /// Returns whether the thread has been overtaken for so long that it gets its turn now.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        self.core().wait_info.is_due()
    }

    /// Returns the thread's record.
    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        // SAFETY: it waits for this very wake, by the contract of `new`, so it is alive.
        unsafe { self.0.as_ref() }
    }

    /// Gives the right up: the thread's record, and the section.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> (NonNull<Core>, NoSuspend) {
        (self.0, self.1)
    }

    /// Returns the section.
    #[inline(always)]
    pub(crate) fn section(&self) -> &NoSuspend {
        &self.1
    }
}

/// A reference to the running virtual thread, for use on that very thread.
///
/// A thread's record outlives its last instruction, so the reference is good for as long as there
/// is code on the thread that could use it. It is neither `Send` nor `Sync`.
#[derive(Clone, Copy)]
pub struct Current(NonNull<Core>);

impl Current {
    /// Makes the reference.
    ///
    /// # Safety
    /// `core` is the running virtual thread.
    #[inline(always)]
    pub(crate) unsafe fn new(core: NonNull<Core>) -> Current {
        Current(core)
    }

    /// Returns the thread's address.
    #[inline(always)]
    pub fn as_ptr(self) -> NonNull<Core> {
        self.0
    }
}

impl Deref for Current {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        // SAFETY: the running thread, by the contract of `new`; it has not ended, since this is
        // never sent to another.
        unsafe { self.0.as_ref() }
    }
}

thread_local! {
    /// The virtual thread that this TLS block belongs to. It is in each virtual thread's own block,
    /// so it never changes between the first and the last instruction of a thread.
    static CURRENT: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Returns the running virtual thread, or `None` on a platform thread.
#[inline(always)]
pub fn current() -> Option<Current> {
    let core = NonNull::new(CURRENT.get().cast_mut())?;
    // SAFETY: noted by this very thread, in its own TLS block.
    Some(unsafe { Current::new(core) })
}

/// Returns the running virtual thread, if it may be parked just now: it is in no section
/// ([`no_suspend`]).
#[inline(always)]
pub fn parkable() -> Option<Current> {
    current().filter(|_| !no_suspend::is_on())
}

/// Records which virtual thread the running TLS block belongs to, as the first action of each.
///
/// # Safety
/// `thread` is null, or the running thread's record, which stays until the thread's end.
#[inline]
pub(crate) unsafe fn set_current(thread: *const Core) {
    CURRENT.set(thread);
}

/// Makes the running virtual thread a platform thread from now on, for all callers of [`current`]:
/// for the child of a `fork`, where there is no carrier to go back to.
#[inline]
pub fn become_platform_thread() {
    // SAFETY: null.
    unsafe { set_current(ptr::null()) };
}

/// A counted reference to a virtual thread.
pub struct ThreadRef(NonNull<Core>);

// SAFETY: `Core` is Sync, and the last reference may be dropped anywhere.
unsafe impl Send for ThreadRef {}
// SAFETY: `Core` is Sync, and the last reference may be dropped anywhere.
unsafe impl Sync for ThreadRef {}

impl ThreadRef {
    /// Takes over one of the references of a new core.
    ///
    /// # Safety
    /// The caller owns that reference.
    #[inline]
    pub(crate) unsafe fn from_new(core: NonNull<Core>) -> ThreadRef {
        ThreadRef(core)
    }

    /// Returns the thread's address, for the queues.
    #[inline]
    pub fn as_ptr(&self) -> NonNull<Core> {
        self.0
    }
}

impl Core {
    /// Returns another reference.
    #[inline]
    pub fn to_ref(&self) -> ThreadRef {
        // Relaxed: the caller has access, so a reference exists and cannot go away meanwhile.
        self.references.fetch_add(1, Ordering::Relaxed);
        ThreadRef(NonNull::from(self))
    }

    /// Releases a reference without a [`ThreadRef`]: the thread's own, at its end.
    ///
    /// # Safety
    /// The caller owns the reference, and no other code releases it.
    #[inline]
    pub unsafe fn release(this: NonNull<Core>) {
        drop(ThreadRef(this));
    }
}

impl Deref for ThreadRef {
    type Target = Core;
    fn deref(&self) -> &Core {
        // SAFETY: counted.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ThreadRef {
    fn clone(&self) -> ThreadRef {
        self.to_ref()
    }
}

impl Drop for ThreadRef {
    #[inline]
    fn drop(&mut self) {
        // Acquire: pairs with the Release of the references that were dropped. If one reference is
        // left, ours, no thread can make another, so a load is enough, and cheaper.
        let last = self.references.load(Ordering::Acquire) == 1;
        // Release, then Acquire by the last one: all uses happen before the memory is freed, as in
        // `Arc`.
        if last || self.references.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: the last reference.
            unsafe { (self.vtable().free)(self.0) };
        }
    }
}
