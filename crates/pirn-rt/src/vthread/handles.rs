//! The four handles of a virtual thread: the right to run it, the right to wake it, the thread
//! itself, and counted references.

use super::mount::give_way;
use super::record::Core;
use super::recorded;
use crate::mark::{self, Raised};
use crate::recorder;
use crate::sched::{self, Holder};
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};

/// The right, and the duty, to run a virtual thread until it parks. One exists for each thread that
/// may run and does not run yet.
///
/// It is made together with the thread, and by the winner of the thread's
/// [handshake](super::state::Handshake); queues, timers and schedulers pass it on; mounting
/// consumes it. While it exists the thread is alive and off its stack, and only the owner of the
/// right touches its record.
#[must_use = "a thread that nobody runs never goes on"]
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
/// It is made by the winner of the claim: the caller that has decided the thread's
/// [wait](super::wait_word), or has found it parked in its [permit](super::state::ParkPermit).
/// Lists of wakes pass it on; waking consumes it. While it exists, the thread is parked or on its
/// way there, and so alive.
///
/// The [mark](crate::mark) is up from before the claim until the thread has been woken. Otherwise
/// the owner of the right could be made to run a signal's handler in between, which may park, or
/// never come back: the claimed thread neither runs nor waits meanwhile, so that no signal, and no
/// other waker, gets at it.
#[must_use = "the thread has been claimed: nobody else will wake it"]
pub struct Claimed(NonNull<Core>, #[allow(dead_code)] Raised);

impl Claimed {
    /// Makes the only right to wake `thread`. The mark has been raised before the claim.
    ///
    /// # Safety
    /// The thread is parked or on its way there, and the caller has just claimed this episode: it
    /// has decided the wait, or the permit has given it the duty to wake the thread.
    #[inline(always)]
    pub unsafe fn new(thread: NonNull<Core>, mark: Raised) -> Claimed {
        Claimed(thread, mark)
    }

    /// Returns whether the thread has been overtaken for so long that it gets its turn now.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        // SAFETY: as in `wake`.
        unsafe { self.0.as_ref() }.awaits.is_due()
    }

    /// Wakes the thread, which goes on a run queue as soon as it is off its stack.
    #[inline]
    pub fn wake(self) {
        // SAFETY: it waits for this very wake, by the contract of `new`, so it is alive.
        let core = unsafe { self.0.as_ref() };
        if recorder::is_on() {
            recorded::woken(core);
        }
        core.continuation.order_before();
        if core.handshake.wake() {
            // SAFETY: the handshake gave us the duty to enqueue it.
            sched::make_runnable(unsafe { Ready::new(self.0) });
        }
    }

    /// Wakes the thread, and lets it run in place of the running one, which goes to the back of its
    /// queue; a platform thread naps. Only wakes it if the running thread must not be preempted
    /// just now, or if `may`, which gets the processor, returns false.
    #[cold]
    pub(crate) fn wake_in_place(self, may: impl FnOnce(Option<Holder<'_>>) -> bool) {
        if !mark::is_up_only_by(&self.1) {
            return self.wake();
        }
        let processor = super::carrier(&self.1).and_then(|carrier| carrier.processor());
        // SAFETY: as in `wake`.
        let core = unsafe { self.0.as_ref() };
        if !may(processor) {
            core.awaits.begin_anew();
            return self.wake();
        }
        core.awaits.hand_over();
        let processor = processor.filter(|processor| core.is_queued_in(processor.runtime()));
        match processor.zip(super::current()) {
            Some((processor, running)) => {
                if recorder::is_on() {
                    recorded::woken(core);
                }
                core.continuation.order_before();
                if core.handshake.wake() {
                    // SAFETY: the handshake gave us the right to run it.
                    sched::run_in_place(processor, running, unsafe { Ready::new(self.0) });
                }
            }
            // This is a platform thread, or one of the two has a scheduler of the program's.
            None => {
                self.wake();
                give_way();
            }
        }
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

/// A counted reference to a virtual thread.
pub struct ThreadRef(NonNull<Core>);

// SAFETY: `Core` is Sync, and the last reference may be dropped anywhere.
unsafe impl Send for ThreadRef {}
// SAFETY: as above.
unsafe impl Sync for ThreadRef {}

impl ThreadRef {
    /// Takes over one of the references of a new core.
    ///
    /// # Safety
    /// The caller owns that reference.
    #[inline]
    pub(super) unsafe fn from_new(core: NonNull<Core>) -> ThreadRef {
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
            unsafe { self.vtable().free(self.0) };
        }
    }
}
