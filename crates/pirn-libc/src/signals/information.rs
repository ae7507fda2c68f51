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
//!   key   0                                                     free
//!         CLAIMED                                               a thread writes or reads it
//!         thread's id << 8 | sent to the process << 7 | signal  pending for that thread
//! ```
//!
//! A thread claims an entry by its whole key: one of another signal stays where its owner finds it.

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
/// In a key: the signal was sent to the process. A thread that cannot take it gives it back.
const OF_PROCESS: u64 = 1 << 7;

struct Entry {
    key: AtomicU64,
    /// Counts up with each signal: the oldest is delivered first.
    order: AtomicU64,
    info: UnsafeCell<MaybeUninit<siginfo_t>>,
}

// SAFETY: `info` is accessed by the thread that has claimed the entry.
unsafe impl Sync for Entry {}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        key: AtomicU64::new(FREE),
        order: AtomicU64::new(0),
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

/// Returns the key of a signal that was sent to the thread itself.
fn key(thread: &Core, signal: c_int) -> u64 {
    thread.id() << 8 | signal as u64
}

/// Claims an entry that has this key now.
fn claim(entry: &Entry, key: u64) -> bool {
    // Acquire: pairs with the Release of the thread that has written the entry, or given it up.
    let claimed = entry.key.compare_exchange(key, CLAIMED, Acquire, Relaxed);
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
    entry.order.store(ORDER.fetch_add(1, Relaxed), Relaxed); // Relaxed: published below.
    USED.fetch_max(index + 1, Release); // Release: pairs with the Acquire in `used`.
    let key = key(thread, info.si_signo) | if of_process { OF_PROCESS } else { 0 };
    entry.key.store(key, Release); // Release: pairs with the Acquire in `claim`.
    true
}

/// Takes the oldest information of a signal that is pending for the thread.
pub(crate) fn take(thread: &Core, signal: c_int) -> Option<siginfo_t> {
    loop {
        let (entry, key) = oldest(thread, signal)?;
        if claim(entry, key) {
            // SAFETY: claimed, and written before it got its key.
            let info = unsafe { (*entry.info.get()).assume_init() };
            entry.key.store(FREE, Release); // Release: as in `put`.
            return Some(info);
        }
    }
}

/// Gives up all information, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    for entry in used() {
        entry.key.store(FREE, Release); // Release: as in `put`.
    }
}

/// Returns whether there is information of a signal that is pending for the thread.
pub(crate) fn any(thread: &Core, signal: c_int) -> bool {
    oldest(thread, signal).is_some()
}

/// Returns the entries of a thread's pending signals, each with its key.
fn entries_of(thread: &Core) -> impl Iterator<Item = (&'static Entry, u64)> {
    let id = thread.id();
    // Acquire: pairs with the Release in `put`.
    let keys = used().iter().map(|entry| (entry, entry.key.load(Acquire)));
    keys.filter(move |&(_, key)| key >> 8 == id)
}

fn oldest(thread: &Core, signal: c_int) -> Option<(&'static Entry, u64)> {
    let sought = key(thread, signal);
    entries_of(thread)
        .filter(|&(_, key)| key & !OF_PROCESS == sought)
        .min_by_key(|(entry, _)| entry.order.load(Relaxed)) // Relaxed: ordered by the key.
}

/// Takes all information of these signals that was sent to the process, and passes it to `give`.
pub(crate) fn take_of_process(thread: &Core, signals: u64, mut give: impl FnMut(&siginfo_t)) {
    for (entry, key) in entries_of(thread) {
        let signal = (key & (OF_PROCESS - 1)) as c_int;
        if key & OF_PROCESS != 0 && bit(signal) & signals != 0 && claim(entry, key) {
            // SAFETY: as in `take`.
            give(unsafe { (*entry.info.get()).assume_init_ref() });
            entry.key.store(FREE, Release); // Release: as in `put`.
        }
    }
}

/// Gives up all information for a thread that has ended, and passes what was sent to the process
/// to `give`.
pub(crate) fn discard(thread: &Core, give: impl FnMut(&siginfo_t)) {
    take_of_process(thread, u64::MAX, give);
    for (entry, key) in entries_of(thread) {
        if claim(entry, key) {
            entry.key.store(FREE, Release); // Release: as in `put`.
        }
    }
}
