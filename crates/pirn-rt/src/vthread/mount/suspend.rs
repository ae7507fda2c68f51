//! Leaving a virtual thread, for another one or for the carrier's own stack.

use super::{After, current};
use crate::mark::Raised;
use crate::recorder;
use crate::sched::Processor;
use crate::sys;
use crate::vthread::{Current, Ready, recorded};

/// Leaves the running virtual thread. Returns when it has been mounted again.
///
/// The carrier goes on with the next thread of its processor's queue, directly, or else returns
/// to its own stack; always so after a preemption, because others than the next may be urgent.
#[inline(always)]
pub fn suspend(core: Current, after: After) {
    leave(core, after, |processor| match after {
        After::Preempt => None,
        // SAFETY: this OS thread holds the processor.
        _ => unsafe { processor.next_to_hand_over() },
    });
}

/// Leaves the running virtual thread, which goes to the back of its queue, for `next`.
///
/// The running carrier must hold a processor.
#[cold]
pub fn yield_to(core: Current, next: Ready) {
    leave(core, After::Yield, |processor| {
        // SAFETY: this OS thread holds the processor.
        unsafe { processor.count() };
        Some(next)
    });
}

/// About as long as an OS thread takes to wake up.
pub const NAP_NS: u64 = 100_000;

/// Lets threads run that the running one has woken: it goes to the back of its queue. A platform
/// thread naps.
#[cold]
pub fn give_way() {
    match current() {
        Some(running) => suspend(running, After::Yield),
        None => sys::nap(NAP_NS),
    }
}

/// Leaves the running virtual thread for the one that `next` returns, if its carrier holds a
/// processor, or else for the carrier's own stack.
#[inline(always)]
fn leave(core: Current, after: After, next: impl FnOnce(&'static Processor) -> Option<Ready>) {
    let _mark = Raised::new();
    // SAFETY: mounted, so the carrier is alive and this OS thread's.
    let carrier = unsafe { &*core.carrier.get() };
    let processor = carrier.processor();
    if matches!(after, After::Park) {
        let kind = core.awaits.what().index();
        match processor {
            Some(processor) => processor.counters().park(kind),
            None => carrier.runtime().outside.park_shared(kind),
        }
    }
    let next = processor.and_then(next);
    if recorder::is_watched() {
        recorded::left(carrier, &core, after, next.as_ref().map(Ready::core));
    }
    carrier.left.set(Some((core.as_ptr(), after)));
    let last = matches!(after, After::Exit);
    // SAFETY: `core` is the running continuation; the other one is suspended and ours to run.
    unsafe {
        match next {
            Some(next) => {
                let next = carrier.take_over(next);
                core.continuation.switch(&next.as_ref().continuation, last);
            }
            None => core.continuation.switch(&carrier.native, last),
        }
    }
    // Mounted again, perhaps by another carrier. SAFETY: set by `take_over` before the switch to
    // us.
    unsafe { &*core.carrier.get() }.finish_switch();
}

/// Parks the running virtual thread until the `wake` of its handshake, which must come exactly
/// once, and may have come already.
#[inline(always)]
pub fn park(core: Current) {
    if !core.handshake.woken_early() {
        suspend(core, After::Park);
        core.handshake.resumed();
    }
}
