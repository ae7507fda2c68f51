//! The number of threads that wait in a bucket of the [parking lot](super): what a
//! waker may conclude from it without the bucket's lock.
//!
//! ```text
//!   waiter                               waker
//!   1. lock                              a. write the word
//!   2. count itself in, fence            b. is the count 0? then fence, and look again
//!   3. check: read the word              c. lock
//!   4. join the queue, unlock, sleep     d. bound: no more than the count says now
//! ```
//!
//! If the waker finds no one at b, its fence comes before the waiter's, which then reads the new
//! word at 3. Otherwise it locks: a waiter that locks later reads the new word as well, and one
//! that has locked earlier is in the queue.
//!
//! The bound at d must be read under the lock. A bound read at b would leave out a waiter that
//! counts itself in between b and c, and whose check has not seen the word: the waker's write may
//! still be in its processor's store buffer.
//!
//! `crates/pirn-model` checks this file: `lot_model.rs`.

use crate::arch;
use crate::primitives::{AtomicU32, Ordering::Relaxed};

/// Counts the calling thread in, under the lock, before its check.
#[inline]
pub(super) fn join(count: &AtomicU32) {
    count.fetch_add(1, Relaxed); // Relaxed: ordered by the fence.
    arch::fence_after_atomic(); // Step 2.
}

/// Counts waiters out, under the lock.
#[inline]
pub(super) fn leave(count: &AtomicU32, waiters: u32) {
    // Relaxed: a waker that sees the count too high only looks in vain. No other thread changes the
    // count, because the caller has the lock.
    count.store(count.load(Relaxed) - waiters, Relaxed);
}

/// Returns whether threads wait, for a caller that wakes them under the lock. Executes a full fence
/// if the count says that none waits.
#[inline]
pub(super) fn any(count: &AtomicU32) -> bool {
    // Relaxed: see the module's documentation.
    count.load(Relaxed) > 0 || {
        arch::full_fence(); // Step b.
        count.load(Relaxed) > 0
    }
}

/// Returns whether threads wait, for a caller that has just written the word by an atomic
/// read-modify-write, of whatever ordering: libc's unlock is a release, which a later load may
/// pass.
#[inline]
pub(super) fn any_after_unlock(count: &AtomicU32) -> bool {
    arch::fence_after_atomic(); // Step b.
    count.load(Relaxed) > 0 // Relaxed: ordered by the fence.
}

/// Returns the number of threads that a waker of `most` has to wake at most, under the lock. Those
/// that come later need not be woken. Without this bound, woken threads that wait again at once
/// could keep a waker for ever.
pub(super) fn bound(count: &AtomicU32, most: usize) -> usize {
    most.min(count.load(Relaxed) as usize) // Relaxed: it changes under the lock.
}
