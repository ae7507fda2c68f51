//! The request to the thread that a processor runs to give way, and when its time slice began.
//!
//! The monitor asks, by a word that the handler of its signal reads. A request names the
//! processor's count of switches: if the thread has left meanwhile, the request is void.
//!
//! `crates/pirn-model` checks this file: `preempt_request_model.rs`. Each Acquire and each Release,
//! weakened to Relaxed, is found by one of its models.

use crate::primitives::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Why a thread is to give way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// Something urgent waits. The thread goes on soon.
    Urgent,
    /// The slice of the thread is over. The other threads of its kind come first.
    Slice,
}

/// The time slice of a thread that was taken from those that had been put aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resumed {
    /// When the slice began, or would have, had it not been interrupted.
    pub(crate) since: u64,
    /// Whether the thread has used up a slice before, and not waited since.
    pub(crate) computes: bool,
}

/// See the module's documentation.
pub(crate) struct Request {
    /// The request: the count of switches, and above it a number for the reason; 0: none.
    request: AtomicU64,
    /// The time, according to the monitor, at which the slice of the thread that is asked began.
    since: AtomicU64,
    /// The count of switches with which a thread last went on with its slice, with a bit above it
    /// that distinguishes the first from none.
    resumed: AtomicU64,
    /// When that slice began; the lowest bit says whether the thread computes.
    began: AtomicU64,
}

/// Set in `request` and `resumed` above the count of switches.
const URGENT: u64 = 1 << 32;
const SLICE: u64 = 2 << 32;
const RESUMED: u64 = 1 << 32;

impl Request {
    /// Returns the state of a processor that no platform thread holds.
    pub(crate) fn new() -> Request {
        Request {
            request: AtomicU64::new(0),
            since: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            began: AtomicU64::new(0),
        }
    }

    /// Asks the thread that has run since switch `tick`, at the time `since`, to give way. Only the
    /// monitor calls this.
    pub(crate) fn ask(&self, tick: u32, since: u64, reason: Reason) {
        let kind = match reason {
            Reason::Urgent => URGENT,
            Reason::Slice => SLICE,
        };
        self.since.store(since, Relaxed); // Relaxed: published by the next store.
        // Release: pairs with the Acquire in `asked`.
        self.request.store(u64::from(tick) | kind, Release);
    }

    /// Returns why, and since when, the thread that runs since switch `tick` is asked to give way.
    pub(crate) fn asked(&self, tick: u32) -> Option<(Reason, u64)> {
        let request = self.request.load(Acquire); // Acquire: pairs with the Release in `ask`.
        let reason = match request & !u64::from(u32::MAX) {
            URGENT => Reason::Urgent,
            SLICE => Reason::Slice,
            _ => return None,
        };
        // Relaxed: a later request to another thread may have changed it; it is the monitor's guess
        // at a time in either case.
        (request as u32 == tick).then(|| (reason, self.since.load(Relaxed)))
    }

    /// Notes that the thread of switch `tick` goes on with an earlier slice. Only the holder calls
    /// this.
    pub(crate) fn resume(&self, tick: u32, slice: Resumed) {
        let began = slice.since & !1 | u64::from(slice.computes);
        self.began.store(began, Relaxed); // Relaxed: published by the next store.
        // Release: pairs with the Acquire in `resumed`.
        self.resumed.store(u64::from(tick) | RESUMED, Release);
    }

    /// Returns the slice of the thread of switch `tick`, if it goes on with an earlier one.
    pub(crate) fn resumed(&self, tick: u32) -> Option<Resumed> {
        // Acquire: pairs with the Release in `resume`.
        let is_it = self.resumed.load(Acquire) == u64::from(tick) | RESUMED;
        is_it.then(|| {
            let began = self.began.load(Relaxed); // Relaxed: ordered by the load above.
            Resumed {
                since: began & !1,
                computes: began & 1 != 0,
            }
        })
    }
}
