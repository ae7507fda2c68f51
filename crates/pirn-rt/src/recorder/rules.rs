//! The moments at which the recorder is asked to write down what it has.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// A thread was runnable for longer than the limit before it ran.
pub const LATENCY: u8 = 1;
/// A thread has panicked.
pub const PANIC: u8 = 2;

/// The rules that have fired and have not been taken: bits.
static FIRED: AtomicU8 = AtomicU8::new(0);
/// The rules that somebody waits for: bits.
static WANTED: AtomicU8 = AtomicU8::new(0);
/// The last thread for which a rule has fired.
static THREAD: AtomicU64 = AtomicU64::new(0);
/// How long a thread may be runnable, in ticks of the recorder's clock.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the rules to wait for, and the limit of [`LATENCY`].
pub fn want(rules: u8, limit: u64) {
    WANTED.store(rules, Relaxed); // Relaxed: a hint, like all here.
    LIMIT.store(limit, Relaxed);
}

/// Notes that a thread has waited for its turn this long.
#[inline(always)]
pub(crate) fn latency(thread: u64, ticks: u64) {
    if ticks > LIMIT.load(Relaxed) {
        fire(LATENCY, thread); // Relaxed: as above.
    }
}

/// Notes that a rule has been met.
#[cold]
pub(crate) fn fire(rule: u8, thread: u64) {
    if WANTED.load(Relaxed) & rule != 0 {
        THREAD.store(thread, Relaxed); // Relaxed: for people to read.
        FIRED.fetch_or(rule, Relaxed);
    }
}

/// Takes the rules that have fired, and the last thread for which.
pub fn take() -> Option<(u8, u64)> {
    if FIRED.load(Relaxed) == 0 {
        return None; // Relaxed: as above.
    }
    Some((FIRED.swap(0, Relaxed), THREAD.load(Relaxed)))
}
