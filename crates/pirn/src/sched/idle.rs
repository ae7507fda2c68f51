//! Idle processors, searching carriers, and the art of waking few of them.
//!
//! Waking an OS thread that sleeps costs tens of microseconds until it runs, and a system call on
//! the waker's side. So a carrier that runs out of work *searches* for a short while before it
//! sleeps, and whoever makes a thread runnable wakes a sleeper only if nobody is searching: the
//! searcher will find it.
//!
//! The danger in "nobody needs waking" is the moment in which the last searcher gives up. Two
//! orders of events, and why neither loses a thread:
//!
//! ```text
//!   producer                               carrier going to sleep
//!   1. put the thread in a queue           a. searching -= 1
//!   2. fence                               b. put processor on the idle list, count += 1, fence
//!   3. read searching, count               c. look at all queues once more
//! ```
//!
//! If 3 misses b (reads an old count or sees it still searching), then 1 is before c in the single
//! order of SeqCst operations, and the carrier finds the thread at c. If c misses 1, then 3 sees b,
//! and wakes a sleeper. A waker counts the sleeper as searching on its behalf (searching 0 -> 1,
//! and a request for whoever wakes), so that a burst of producers wakes one carrier; that one, when
//! it has found something and was the last to search, wakes the next if there is more
//! ([`stop_searching`]).
//!
//! One exception is deliberate: *a few* threads in a running processor's queue. Its carrier will
//! probably come to them sooner than a sleeper could, and if they are short (two subtasks that only
//! compute a number) to have them taken to another core costs ten times what they do. So searchers
//! take from so short a queue only when its processor has stood still for some microseconds; a
//! single thread wakes nobody; and a second one wakes a sleeper unless the last that was woken has
//! just searched in vain. Should they wait after all, the monitor notices within milliseconds.

use super::driver::driver;
use super::{Processor, injector, processors, settings, spare};
use crate::lock::Lock;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

/// As many threads in a queue are its own carrier's business, unless that is stuck.
pub(crate) const FEW: usize = 2;
/// For how long few threads wake nobody after a search in vain.
const IN_VAIN_NS: u64 = 500_000;

static LIST: Lock<Vec<&'static Processor>> = Lock::new(Vec::new());
/// Length of the list, readable without its lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Carriers that search, and one more while [`REQUESTED`].
static SEARCHING: AtomicUsize = AtomicUsize::new(0);
/// A sleeper has been kicked in order to search, and none has taken up the request.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Until when few threads wake nobody; 0 if the last search was a success.
static IN_VAIN_UNTIL: AtomicU64 = AtomicU64::new(0);

/// How many processors nobody holds.
pub(crate) fn count() -> usize {
    COUNT.load(Ordering::SeqCst)
}

/// Whether nobody holds a processor.
pub(crate) fn all() -> bool {
    count() == settings().parallelism && spare::count() == 0
}

/// Takes an idle processor.
pub(crate) fn acquire() -> Option<&'static Processor> {
    let mut list = LIST.lock();
    let processor = list.pop()?;
    COUNT.fetch_sub(1, Ordering::SeqCst);
    drop(list);
    // SAFETY: off the list, so the caller's.
    unsafe { processor.held_here() };
    Some(processor)
}

/// Puts a processor on the idle list. Returns whether there is work after all (step c above).
pub(crate) fn release(processor: &'static Processor) -> bool {
    {
        let mut list = LIST.lock();
        processor.holder.store(0, Ordering::Relaxed); // Relaxed: a hint.
        list.push(processor); // The capacity was reserved at start.
        COUNT.fetch_add(1, Ordering::SeqCst);
    }
    fence(Ordering::SeqCst);
    work_in_sight()
}

/// Puts a processor back that was borrowed; the caller is not going to look for work.
pub(crate) fn give_back(processor: &'static Processor) {
    if release(processor) {
        if is_requested() {
            driver().kick(); // The request may have woken a carrier that found no processor.
        } else {
            notify();
        }
    }
}

/// Reserves room for all processors.
pub(crate) fn prepare(processors: usize) {
    LIST.lock().reserve(processors);
}

/// Whether there is a thread that a searching carrier would take.
pub(crate) fn work_in_sight() -> bool {
    is_requested() || injector::len() > 0 || processors().iter().any(|p| p.queue.len() > FEW)
}

/// Called after a thread has been put where an idle carrier could find it: wakes one if needed.
#[inline]
pub(crate) fn notify() {
    crate::arch::full_fence(); // step 2
    if COUNT.load(Ordering::SeqCst) > 0 && SEARCHING.load(Ordering::SeqCst) == 0 {
        wake_one();
    }
}

/// As [`notify`], for a thread that makes a queue as long as that its own carrier may need help, or
/// may not.
#[inline]
pub(crate) fn notify_of_few() {
    let until = IN_VAIN_UNTIL.load(Ordering::Relaxed); // Relaxed: a hint.
    if until == 0 || sys::now() >= until {
        notify();
    }
}

#[cold]
fn wake_one() {
    if SEARCHING
        .compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
    {
        REQUESTED.store(true, Ordering::SeqCst);
        driver().kick();
    }
}

/// Takes up a request to search. For a carrier that has just woken, whatever woke it.
pub(crate) fn take_request() -> bool {
    REQUESTED.load(Ordering::SeqCst) && REQUESTED.swap(false, Ordering::SeqCst)
}

/// Whether a request to search is still to be taken up.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// Asks to search. Refused when enough carriers do already.
pub(crate) fn start_searching() -> bool {
    if 2 * SEARCHING.load(Ordering::SeqCst) >= settings().parallelism {
        return false;
    }
    SEARCHING.fetch_add(1, Ordering::SeqCst);
    true
}

/// A searching carrier has found a thread, or gives up.
pub(crate) fn stop_searching(found: bool) {
    let until = if found { 0 } else { sys::now() + IN_VAIN_NS };
    // Relaxed: a hint. Looked at first, because all who make threads runnable read it.
    if !(found && IN_VAIN_UNTIL.load(Ordering::Relaxed) == 0) {
        IN_VAIN_UNTIL.store(until, Ordering::Relaxed);
    }
    let last = SEARCHING.fetch_sub(1, Ordering::SeqCst) == 1;
    if found && last && work_in_sight() {
        notify();
    }
}
