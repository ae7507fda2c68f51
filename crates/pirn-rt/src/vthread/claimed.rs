//! The right to wake a virtual thread.

use super::mount::give_way;
use super::{Core, Ready, recorded};
use crate::mark::{self, Raised};
use crate::recorder;
use crate::sched::{self, Processor};
use core::ptr::NonNull;

/// The right, and the duty, to wake a virtual thread. One exists for each of the thread's parks.
///
/// It is made by the winner of the claim: the caller that has decided the thread's
/// [wait](super::wait_word), or has found it parked in its [permit](super::permit). Lists of wakes
/// pass it on; waking consumes it. While it exists, the thread is parked or on its way there, and
/// so alive.
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
    pub(crate) fn wake_in_place(self, may: impl FnOnce(Option<&Processor>) -> bool) {
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
