//! The `siginfo_t`s of pending signals, in one table for all threads.
//!
//! Nothing is allocated: senders may be signal handlers. An entry is written by the sender that has
//! claimed it, and read by the thread that it is for. Without a free entry a signal comes without
//! information, as from a kernel that has run out of memory; one that queues is refused (`EAGAIN`).
//!
//! An entry is the signal itself: a thread that takes it delivers the signal, once. The thread's
//! set of pending signals says only where to look.
//!
//! ```text
//!   owner   0                   free
//!           CLAIMED             a thread writes or reads it
//!           a thread's id       pending for that thread
//! ```

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use libc::siginfo_t;
use pirn_rt::vthread::Core;
use pirn_rt::vthread::signals::bit;

const ENTRIES: usize = 1024;
const FREE: u64 = 0;
const CLAIMED: u64 = u64::MAX;

struct Entry {
    owner: AtomicU64,
    /// Counts up with each signal: the oldest is delivered first.
    order: AtomicU64,
    signal: AtomicUsize,
    /// Whether it was sent to the process: a thread that cannot take it gives it back.
    of_process: AtomicBool,
    info: UnsafeCell<MaybeUninit<siginfo_t>>,
}

// SAFETY: `info` is accessed by the thread that has claimed the entry.
unsafe impl Sync for Entry {}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        owner: AtomicU64::new(FREE),
        order: AtomicU64::new(0),
        signal: AtomicUsize::new(0),
        of_process: AtomicBool::new(false),
        info: UnsafeCell::new(MaybeUninit::zeroed()),
    }
}; ENTRIES];

/// The number of entries, from the first, that have ever been used.
static USED: AtomicUsize = AtomicUsize::new(0);
static ORDER: AtomicU64 = AtomicU64::new(0);
/// Whether a signal has ever come without an entry.
static OVERFLOWED: AtomicBool = AtomicBool::new(false);

/// Returns whether signals may be pending without information.
pub(crate) fn has_overflowed() -> bool {
    OVERFLOWED.load(Relaxed) // Relaxed: ordered by the set of pending signals.
}

fn used() -> &'static [Entry] {
    &TABLE[..USED.load(Acquire)] // Acquire: pairs with the Release in `put`.
}

/// Claims an entry that is `from` now.
fn claim(entry: &Entry, from: u64) -> bool {
    // Acquire: pairs with the Release of the thread that has written the entry, or given it up.
    let claimed = entry
        .owner
        .compare_exchange(from, CLAIMED, Acquire, Relaxed);
    claimed.is_ok()
}

/// Keeps the information of a signal until the thread [takes](take) it. Returns whether there was
/// room.
pub(crate) fn put(thread: &Core, info: &siginfo_t, of_process: bool) -> bool {
    let Some((index, entry)) = TABLE.iter().enumerate().find(|(_, e)| claim(e, FREE)) else {
        OVERFLOWED.store(true, Relaxed); // Relaxed: as in `has_overflowed`.
        return false;
    };
    // SAFETY: claimed.
    unsafe { (*entry.info.get()).write(*info) };
    entry.signal.store(info.si_signo as usize, Relaxed); // Relaxed: published below.
    entry.of_process.store(of_process, Relaxed); // Relaxed: published below.
    entry.order.store(ORDER.fetch_add(1, Relaxed), Relaxed); // Relaxed: published below.
    USED.fetch_max(index + 1, Release); // Release: pairs with the Acquire in `used`.
    // Release: pairs with the Acquire in `claim`.
    entry.owner.store(thread.id(), Release);
    true
}

/// Takes the oldest information of a signal that is pending for the thread.
pub(crate) fn take(thread: &Core, signal: c_int) -> Option<siginfo_t> {
    loop {
        let entry = oldest(thread, signal)?;
        if claim(entry, thread.id()) {
            // SAFETY: claimed, and written before it got its owner.
            let info = unsafe { (*entry.info.get()).assume_init() };
            entry.owner.store(FREE, Release); // Release: as in `put`.
            return Some(info);
        }
    }
}

/// Gives up all information, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    for entry in used() {
        entry.owner.store(FREE, Release); // Release: as in `put`.
    }
}

/// Returns whether there is information of a signal that is pending for the thread.
pub(crate) fn any(thread: &Core, signal: c_int) -> bool {
    oldest(thread, signal).is_some()
}

fn oldest(thread: &Core, signal: c_int) -> Option<&'static Entry> {
    let is_it = |entry: &&Entry| {
        // Acquire: pairs with the Release in `put`. Relaxed: ordered by that.
        entry.owner.load(Acquire) == thread.id() && entry.signal.load(Relaxed) == signal as usize
    };
    let order = |entry: &&Entry| entry.order.load(Relaxed); // Relaxed: ordered by the owner.
    used().iter().filter(is_it).min_by_key(order)
}

/// Takes all information of these signals that was sent to the process, and passes it to `give`.
pub(crate) fn take_of_process(thread: &Core, signals: u64, mut give: impl FnMut(&siginfo_t)) {
    for entry in used() {
        if claim(entry, thread.id()) {
            // Relaxed: ordered by the claim.
            let (signal, given) = (entry.signal.load(Relaxed), entry.of_process.load(Relaxed));
            let owner = match given && bit(signal as c_int) & signals != 0 {
                true => {
                    // SAFETY: as in `take`.
                    give(unsafe { (*entry.info.get()).assume_init_ref() });
                    FREE
                }
                false => thread.id(),
            };
            entry.owner.store(owner, Release); // Release: as in `put`.
        }
    }
}

/// Gives up all information for a thread that has ended, and passes what was sent to the process
/// to `give`.
pub(crate) fn discard(thread: &Core, give: impl FnMut(&siginfo_t)) {
    take_of_process(thread, u64::MAX, give);
    for entry in used() {
        if claim(entry, thread.id()) {
            entry.owner.store(FREE, Release); // Release: as in `put`.
        }
    }
}
