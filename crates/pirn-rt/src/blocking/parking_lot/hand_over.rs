//! The turn of a thread that has been overtaken for long.
//!
//! The releaser of a lock does not pass it on: it wakes a waiter, which tries again when it runs.
//! The releaser goes on, may have taken the lock again by then, and is nearly always preempted
//! while it holds the lock: so the waiter waits once more. This makes locks fast. But a thread that
//! takes a lock in a loop kept others from it for 5 to 20 s, and for ever if the thread waits or
//! yields while it holds the lock. So the releaser gives way, right after the release, to a waiter
//! that has been [overtaken](crate::vthread::wait_reason::WaitInfo::queue_up) for a millisecond or
//! two. The kernel's scheduler also lets a thread that has slept for long run before its waker.
//!
//! To the parking lot, a thread that waits for one event after the other looks like one that is
//! overtaken. To give way to it gains little, and a waker that tells a thousand others of an event
//! would go to the back of the queue a thousand times. So a waker always gives way if it releases a
//! lock, and only a few times per millisecond and processor if the wake may be an event.

use crate::blocking::parking_lot::LOCK;
use crate::no_suspend::{self, NoSuspend};
use crate::sched::{self, Holder, mount, simulation};
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

/// Makes the running thread give way to the threads that it has just woken because their turn has
/// come. `is_lock`: what [`is_free_lock`] returned before the wakes.
#[cold]
pub fn give_way(is_lock: bool) {
    let section = NoSuspend::new();
    let processor = sched::carrier(&section).and_then(|carrier| carrier.processor());
    if no_suspend::is_on_only_by(&section) && may_give_way(is_lock, processor) {
        drop(section);
        mount::give_way();
    }
}

/// Returns whether the caller, which is about to wake a waiter of this key, releases a lock.
#[cold]
pub(super) fn is_free_lock(key: usize) -> bool {
    match key & 3 {
        // In nearly all kinds of locks. The waiter keeps the word in place.
        0 => sys::fetch_u32(key) == Ok(0),
        kind => kind == LOCK,
    }
}

/// Returns whether the running thread gives way to the threads that it wakes. In a simulation it
/// does only to those that get a lock: how often it did before must not matter.
fn may_give_way(is_lock: bool, processor: Option<Holder<'_>>) -> bool {
    is_lock
        || match processor {
            Some(_) if simulation::is_running() => false,
            Some(processor) => processor.may_give_way(),
            None => may_nap(),
        }
}

/// Returns whether a thread without a processor may give way to a thread that may have waited for
/// an event.
fn may_nap() -> bool {
    static LAST: AtomicU64 = AtomicU64::new(0);
    is_turn(&LAST)
}

/// Returns whether a waker wakes the platform threads that wait for its word before the virtual
/// ones. Otherwise the virtual threads come first, and run before the kernel could switch.
#[cold]
pub(in crate::blocking) fn is_kernels_turn() -> bool {
    static LAST: AtomicU64 = AtomicU64::new(0);
    is_turn(&LAST)
}

/// Calls `wake`, which wakes platform threads that wait for the word and returns their number. If
/// it has woken any and the word is a free lock, gives way to them. Returns the number.
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

/// Returns whether [`NAP_EVERY`] has passed since this last returned `true`.
fn is_turn(last: &AtomicU64) -> bool {
    let now = time::coarse();
    // Relaxed, both: a limit that need not be exact.
    let is_turn = now.wrapping_sub(last.load(Relaxed)) >= NAP_EVERY;
    if is_turn {
        last.store(now, Relaxed);
    }
    is_turn
}
