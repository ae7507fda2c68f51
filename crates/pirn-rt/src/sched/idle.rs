//! Idle processors, searching carriers, and waking as few carriers as possible.
//!
//! To wake a sleeping OS thread, a waker makes a system call, and the thread runs tens of
//! microseconds later. So a carrier that runs out of work *searches* for a short while before it
//! sleeps. A waker that makes a thread runnable wakes a sleeper only if no carrier searches: a
//! searcher will find the thread.
//!
//! The danger lies in the moment in which the last searcher gives up. Two orders of events are
//! possible, and neither loses a thread:
//!
//! ```text
//!   producer                               carrier going to sleep
//!   1. put the thread in a queue           a. searching -= 1
//!   2. fence                               b. put the processor on the idle list, count += 1
//!   3. read count and searching            c. fence
//!                                          d. look at all queues once more
//! ```
//!
//! Fences have one order. If 2 comes before c, the carrier finds the thread at d. If c comes before
//! 2, the producer sees a and b at 3, and wakes a sleeper, unless there is another searcher, to
//! which the same applies. A waker counts the sleeper as searching on its behalf (searching 0 -> 1,
//! and a request for the carrier that wakes), so that a burst of producers wakes one carrier. That
//! carrier looks once more, behind a fence of its own, after it has found something as the last
//! searcher, and wakes the next if there is more ([`Idle::stop_searching`]).
//!
//! A request is not lost either. A sleeper that wakes and finds no processor leaves it. Then some
//! carrier took the last processor off the list before, and will put it back later, under the
//! list's lock each time. So that carrier sees the request when it runs out of work, or at d. A
//! carrier that is awake and takes the kick while it looks for events withdraws the request, and
//! does what a searcher does that has found something ([`Idle::decline`]). (The
//! models are too small to fail without the look at requests at d. With any of the fences omitted,
//! one of them fails.)
//!
//! One exception is deliberate: *a few* threads in a running processor's queue. Its carrier will
//! probably run them sooner than a sleeper could, and if they are short (two subtasks that only
//! compute a number) moving them to another core costs ten times their run time. So searchers take
//! from such a short queue only when its processor has stood still for some microseconds. A single
//! thread wakes no sleeper. A second one wakes a sleeper, unless the last one woken has just
//! searched in vain. If the threads wait after all, the monitor notices within milliseconds.
//!
//! `crates/pirn-model` checks this file: `idle_model.rs`.

use crate::arch;
use crate::lock::Lock;
use crate::primitives::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::sys;

/// Queues of at most this many threads are left to their own carrier unless it is stuck.
pub(crate) const FEW: usize = 2;
/// For this long after a search that found nothing, a few threads wake no sleeper.
const IN_VAIN_NS: u64 = 500_000;

/// The processors that no platform thread holds, and the count of carriers that search.
#[repr(align(64))] // Each wake of a thread reads it.
pub struct Idle<P: 'static> {
    /// Length of the list, readable without its lock.
    count: AtomicUsize,
    /// The number of searching carriers, plus one while there is a request.
    searching: AtomicUsize,
    /// A sleeper has been kicked in order to search, and none has taken up the request.
    requested: AtomicBool,
    /// Until this time a few threads wake no sleeper; 0 if the last search found something.
    in_vain_until: AtomicU64,
    list: Lock<Vec<&'static P>>,
}

impl<P> Idle<P> {
    /// Returns a state with no idle processors, and room for this many.
    pub(crate) fn new(processors: usize) -> Idle<P> {
        Idle {
            count: AtomicUsize::new(0),
            searching: AtomicUsize::new(0),
            requested: AtomicBool::new(false),
            in_vain_until: AtomicU64::new(0),
            list: Lock::new(Vec::with_capacity(processors)),
        }
    }

    /// Returns the number of processors that no platform thread holds.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Relaxed) // Relaxed: a caller that must not miss a change has a fence before it.
    }

    /// Takes an idle processor.
    pub(crate) fn acquire(&self) -> Option<&'static P> {
        let mut list = self.list.lock();
        let processor = list.pop()?;
        self.count.fetch_sub(1, Relaxed); // Relaxed: a waker that misses this kicks in vain.
        Some(processor)
    }

    /// Calls `f` with each idle processor, which no carrier can take meanwhile.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn for_each(&self, f: impl FnMut(&'static P)) {
        self.list.lock().iter().copied().for_each(f);
    }

    /// Puts a processor on the idle list. Returns whether there is work after all: step d.
    /// `in_queues` tells whether there is a thread that a searching carrier would take.
    pub(crate) fn release(&self, processor: &'static P, in_queues: impl FnOnce() -> bool) -> bool {
        {
            let mut list = self.list.lock();
            list.push(processor); // Within the capacity: there are no more processors.
            self.count.fetch_add(1, Relaxed); // Relaxed: ordered by the fence.
            arch::fence_after_atomic(); // Step c, also for `searching`, which is read like `count`.
        }
        self.work_in_sight(in_queues)
    }

    /// Returns whether a carrier that is about to sleep should search again.
    pub(crate) fn work_in_sight(&self, in_queues: impl FnOnce() -> bool) -> bool {
        self.is_requested() || in_queues()
    }

    /// Wakes a carrier if needed, after a thread has been put where an idle carrier could find it.
    #[inline]
    pub(crate) fn notify(&self, kick: impl FnOnce()) {
        arch::full_fence(); // Step 2.
        // Relaxed: ordered by the fence.
        if self.count.load(Relaxed) > 0 && self.searching.load(Relaxed) == 0 {
            self.wake_one(kick);
        }
    }

    /// Wakes a carrier if needed, as [`notify`](Self::notify) does, after a queue has got its
    /// second of [`FEW`] threads: the carrier of that queue may need no help.
    #[inline]
    pub(crate) fn notify_of_few(&self, kick: impl FnOnce()) {
        // Relaxed: by a stale time one wake is too many, or omitted; both are allowed.
        let until = self.in_vain_until.load(Relaxed);
        if until == 0 || sys::now() >= until {
            self.notify(kick);
        }
    }

    #[cold]
    fn wake_one(&self, kick: impl FnOnce()) {
        // Relaxed: one of several wakers wins; the kick orders what the winner has done before.
        if self
            .searching
            .compare_exchange(0, 1, Relaxed, Relaxed)
            .is_ok()
        {
            self.requested.store(true, Relaxed); // Relaxed: the kick is a system call.
            kick();
        }
    }

    /// Takes up a request to search, for a carrier that has just woken for whatever reason.
    pub(crate) fn take_request(&self) -> bool {
        // Relaxed: the carrier that was kicked sees it; the proof covers the others.
        self.is_requested() && self.requested.swap(false, Relaxed)
    }

    /// Withdraws a request, for a carrier that is awake and has taken the kick. The sleeper that it
    /// was meant for may not notice, and the kick would have to be passed on again and again. So
    /// this carrier acts like a searcher that finds something, and wakes another if there is more.
    pub(crate) fn decline(&self, in_queues: impl FnOnce() -> bool, kick: impl FnOnce()) {
        if self.take_request() {
            self.found(in_queues, kick);
        }
    }

    /// Returns whether a request to search is still to be taken up.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Relaxed) // Relaxed: as in `take_request`.
    }

    /// Lets the calling carrier search. Refuses when half of the processors' carriers already do.
    pub(crate) fn start_searching(&self, processors: usize) -> bool {
        // Relaxed: a bound that need not be exact.
        if 2 * self.searching.load(Relaxed) >= processors {
            return false;
        }
        self.searching.fetch_add(1, Relaxed); // Relaxed: producers rely on what we do at the end.
        true
    }

    /// Ends a search: it has found a thread, or the carrier gives up and will
    /// [`release`](Self::release) its processor.
    pub(crate) fn stop_searching(
        &self,
        found: bool,
        in_queues: impl FnOnce() -> bool,
        kick: impl FnOnce(),
    ) {
        let until = if found { 0 } else { sys::now() + IN_VAIN_NS };
        // Relaxed: see `notify_of_few`. Read first, because every waker reads it.
        if !(found && self.in_vain_until.load(Relaxed) == 0) {
            self.in_vain_until.store(until, Relaxed);
        }
        if found {
            self.found(in_queues, kick);
        } else {
            self.searching.fetch_sub(1, Relaxed); // Relaxed: ordered by the fence.
            // A spare carrier looks for work after this, and releases no processor.
            arch::fence_after_atomic();
        }
    }

    /// Ends a search that has found a thread. The last searcher looks whether there is more.
    fn found(&self, in_queues: impl FnOnce() -> bool, kick: impl FnOnce()) {
        // Relaxed: ordered by the fence.
        if self.searching.fetch_sub(1, Relaxed) == 1 {
            // Producers that relied on this search see that it is over, or this carrier sees their
            // threads.
            arch::fence_after_atomic();
            if self.work_in_sight(in_queues) {
                self.notify(kick);
            }
        }
    }
}
