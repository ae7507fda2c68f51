//! The turn of a thread that has been overtaken for long.
//!
//! A lock is not passed on: its releaser wakes a waiter, which tries again when it runs. If the
//! releaser goes on, it may have taken the lock again by then, and it is nearly always interrupted
//! where it has it: the waiter waits once more. That is how a lock is fast; but a thread that takes
//! a lock in a loop kept others from it for 5 to 20 s, and for ever if it waits or yields while it
//! has it. So the releaser gives way, right after the release, to a waiter that has been
//! [overtaken](crate::vthread::wait_reason::WaitInfo::queue_up) for a millisecond or two. The
//! kernel does the same when it wakes a thread that has slept for long.
//!
//! To the parking lot, a thread that waits for one event after the other looks like one that is
//! overtaken. One that is woken by an event gains little, and a thread that tells a thousand others
//! would go to the back of the queue a thousand times. So the waker gives way always if it releases
//! a lock, and a few times per millisecond and processor if this may be an event.

use crate::blocking::parking_lot::LOCK;
use crate::no_suspend::{self, NoSuspend};
use crate::sched::{self, Holder, mount};
use crate::sys;
use crate::time::{self, Deadline};
use crate::vthread::wait_reason::{Kind, WaitReason};
use crate::vthread::wait_word::Interruptible;
use crate::vthread::{self, Claimed};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A nap of 0.1 ms that may be for an event is taken once in this many units of coarse time.
const NAP_EVERY: u64 = 8;

/// Wakes a thread whose turn it is, and gives way to it.
#[cold]
pub(super) fn wake(key: usize, thread: Claimed) {
    sched::wake_in_place(thread, |processor| {
        may_give_way(is_free_lock(key), processor)
    });
}

/// Has the running thread, which has woken some whose turn it is, give way to them; `is_lock` as
/// [`is_free_lock`] has said before the wakes.
#[cold]
pub fn give_way(is_lock: bool) {
    let section = NoSuspend::new();
    let processor = sched::carrier(&section).and_then(|carrier| carrier.processor());
    if no_suspend::is_on_only_by(&section) && may_give_way(is_lock, processor) {
        drop(section);
        mount::give_way();
    }
}

/// Returns whether a wake by this key, of a thread that waits still, is the release of a lock.
#[cold]
pub(super) fn is_free_lock(key: usize) -> bool {
    match key & 3 {
        // In nearly all kinds of locks. The waiter keeps the word in place.
        0 => sys::fetch_u32(key) == Ok(0),
        kind => kind == LOCK,
    }
}

/// Returns whether the running thread gives way to those that it wakes.
fn may_give_way(is_lock: bool, processor: Option<Holder<'_>>) -> bool {
    is_lock
        || match processor {
            Some(processor) => processor.may_give_way(),
            None => may_nap(),
        }
}

/// Returns whether a thread without a processor may give way to what may have waited for an event.
fn may_nap() -> bool {
    static LAST: AtomicU64 = AtomicU64::new(0);
    is_turn(&LAST)
}

/// Returns whether a wake is for the platform threads that wait for its word rather than for the
/// virtual ones, which otherwise come first, and run before the kernel could switch.
#[cold]
pub(in crate::blocking) fn is_kernels_turn() -> bool {
    static LAST: AtomicU64 = AtomicU64::new(0);
    is_turn(&LAST)
}

/// Calls `wake`, which wakes platform threads that wait for the word, and gives way to those that
/// it says it has woken, if the word is a free lock's. Returns their number.
#[cold]
pub(in crate::blocking) fn wake_kernels(word: usize, wake: impl FnOnce() -> usize) -> usize {
    let virtually = vthread::current().is_some() && !no_suspend::forbids_preemption();
    let gives_way = virtually && sys::fetch_u32(word) == Ok(0);
    let woken = wake();
    if woken > 0 && gives_way {
        let until = Deadline::after_nanos(mount::NAP_NS);
        crate::blocking::pause_until(
            WaitReason::at(Kind::Futex, word),
            until,
            Interruptible::Never,
        );
    }
    woken
}

/// Returns whether the last time was [`NAP_EVERY`] ago; then it is now.
fn is_turn(last: &AtomicU64) -> bool {
    let now = time::coarse();
    // Relaxed, both: a limit that need not be exact.
    let is_turn = now.wrapping_sub(last.load(Relaxed)) >= NAP_EVERY;
    if is_turn {
        last.store(now, Relaxed);
    }
    is_turn
}
