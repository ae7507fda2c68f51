//! Wakes in the [parking lot](super::parking_lot) that signal handlers have asked for.
//!
//! A handler may have interrupted code that holds a lock of the lot, so it takes none. It marks the
//! bucket, and kicks the poller. The next carrier that looks for events wakes all that wait in the
//! bucket. That is more than the handler asked for, but each waiter expects to be woken without a
//! cause, and checks again what it waits for.
//!
//! No model checks this. Each post makes a kick of its own, after its mark and [`ANY`], so nobody
//! sleeps, or omits a kick, because of what it has read here. A mark is published by one exchange,
//! and [`deliver`] takes that back before it takes the marks: a mark that it misses has an [`ANY`]
//! and a kick still to come.

use super::parking_lot::{self, BUCKETS};
use crate::runtime;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A bit per bucket.
static MARKED: [AtomicU64; BUCKETS / 64] = [const { AtomicU64::new(0) }; BUCKETS / 64];
/// Whether a bucket may be marked.
static ANY: AtomicBool = AtomicBool::new(false);

/// Has all that wait in a bucket woken soon. Async-signal-safe.
#[cold]
pub(super) fn post(bucket: usize) {
    let Some(runtime) = runtime::get() else {
        return; // The child of a fork: the threads are in the parent process.
    };
    // Release: pairs with the Acquire of the swap below: a woken thread sees what the handler did.
    MARKED[bucket / 64].fetch_or(1 << (bucket % 64), Ordering::Release);
    // Release: pairs with the Acquire in `deliver`, which then sees the mark. A swap, so that a
    // `deliver` that sees this post sees the marks of those before it too.
    ANY.swap(true, Ordering::Release);
    runtime.poller.kick();
}

/// Forgets what was posted in the parent process.
pub(super) fn after_fork() {
    ANY.store(false, Ordering::Relaxed); // Relaxed, both: there is no runtime yet.
    for marks in &MARKED {
        marks.store(0, Ordering::Relaxed);
    }
}

/// Performs the wakes that have been posted.
#[inline]
pub(super) fn deliver() {
    // Relaxed: the kick comes after the store, so the carrier that it wakes sees it.
    if ANY.load(Ordering::Relaxed) && ANY.swap(false, Ordering::Acquire) {
        deliver_all();
    }
}

#[cold]
fn deliver_all() {
    for (index, marks) in MARKED.iter().enumerate() {
        let mut marks = marks.swap(0, Ordering::Acquire); // Acquire: see `post`.
        while marks != 0 {
            parking_lot::wake_all(index * 64 + marks.trailing_zeros() as usize);
            marks &= marks - 1;
        }
    }
}
