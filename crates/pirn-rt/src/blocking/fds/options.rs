//! Options of sockets that change how the program's calls wait.

use super::{
    Entry, KNOWN, LOW_WATER, POLLABLE, REGISTERED, SHARED, TIMEOUTS, UNEVEN, entry, existing,
    numbers, set_up,
};
use crate::sys;
use crate::time::Deadline;
use core::sync::atomic::{AtomicBool, Ordering};

/// Notes that `SO_RCVTIMEO` or `SO_SNDTIMEO` was set.
pub fn timeouts_set(fd: i32) {
    if let Some(entry) = existing(fd) {
        entry.flags.fetch_or(TIMEOUTS, Ordering::Relaxed); // Relaxed: as in `set_flags`.
    }
}

/// Notes that a short read may soon leave something behind: a protocol on top of TCP, such as TLS,
/// reads record by record.
pub fn uneven(fd: i32) {
    if let Some(entry) = existing(fd) {
        entry.flags.fetch_or(UNEVEN, Ordering::Relaxed); // Relaxed: as in `set_flags`.
    }
}

/// Notes that `SO_RCVLOWAT` was set: reads may wait for more than one byte, and fewer than that
/// come without an event. Other numbers may mean the same socket. Without an entry, all that are
/// made from then on begin with the note.
pub fn low_water_set(fd: i32) {
    let note = |entry: &Entry| {
        // Relaxed: as in `set_flags`.
        entry.flags.fetch_or(LOW_WATER | UNEVEN, Ordering::Relaxed);
    };
    if existing(fd).is_none() {
        LOW_WATER_BEFORE.store(true, Ordering::Relaxed); // Relaxed: as in `set_flags`.
    }
    if let Some(entry) = existing(fd) {
        note(entry);
        if !entry.is_known_and_alone() {
            let others = numbers(0, u32::MAX).filter_map(existing);
            others.filter(|it| !it.is_known_and_alone()).for_each(note);
        }
    }
}

/// `SO_RCVLOWAT` was set where there was no entry to note it: before the first thread, say.
static LOW_WATER_BEFORE: AtomicBool = AtomicBool::new(false);

/// Returns the flags with which the entry of a descriptor begins whose creation was not seen.
pub(super) fn of_unseen() -> u32 {
    // Relaxed: as in `set_flags`.
    let before = LOW_WATER_BEFORE.load(Ordering::Relaxed);
    if before { LOW_WATER | UNEVEN } else { 0 }
}

/// Notes that a listener has accepted a connection, which has its options.
pub fn accepted(listener: i32, fd: i32) {
    // Relaxed: as in `set_flags`.
    let options = existing(listener).map_or_else(of_unseen, |it| it.flags.load(Ordering::Relaxed));
    set_up(fd, KNOWN | POLLABLE | options & (UNEVEN | LOW_WATER));
}

/// Returns whether receives may wait for more than one byte, by `SO_RCVLOWAT`.
pub fn may_have_low_water(fd: i32) -> bool {
    existing(fd).is_some_and(Entry::has_low_water)
}

impl Entry {
    /// Returns whether reads may wait for more than one byte, by `SO_RCVLOWAT`.
    #[inline]
    pub(in crate::blocking) fn has_low_water(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & LOW_WATER != 0 // Relaxed: as in `set_flags`.
    }

    /// Returns the time at which an operation that begins now times out, by the socket option
    /// `option`: `SO_RCVTIMEO` or `SO_SNDTIMEO`.
    pub fn deadline(&self, fd: i32, option: i32) -> Deadline {
        Deadline::after_timeout(self.timeout(fd, option))
    }

    fn timeout(&self, fd: i32, option: i32) -> Option<u64> {
        let flags = self.flags.load(Ordering::Relaxed); // Relaxed: as in `set_flags`.
        if flags & (KNOWN | SHARED | REGISTERED | TIMEOUTS) == (KNOWN | REGISTERED) {
            return None;
        }
        let nanos = timeout_option(fd, option)?;
        // The first wait also asks for the other option, on behalf of later waits: a call that
        // nobody saw may have set it.
        let other = match option {
            libc::SO_RCVTIMEO => libc::SO_SNDTIMEO,
            _ => libc::SO_RCVTIMEO,
        };
        if nanos > 0 || flags & REGISTERED == 0 && timeout_option(fd, other) != Some(0) {
            timeouts_set(fd);
        }
        (nanos > 0).then_some(nanos)
    }
}

/// Does the same as [`Entry::deadline`] for any number.
pub fn deadline(fd: i32, option: i32) -> Deadline {
    entry(fd).map_or(Deadline::NEVER, |entry| entry.deadline(fd, option))
}

/// Returns a socket's timeout in nanoseconds; `None` if it is not a socket.
fn timeout_option(fd: i32, option: i32) -> Option<u64> {
    // SAFETY: the kernel gives a `timeval` for timeouts.
    let value: libc::timeval = unsafe { sys::socket_option(fd, option) }.ok()?;
    Some(value.tv_sec as u64 * 1_000_000_000 + value.tv_usec as u64 * 1000)
}
