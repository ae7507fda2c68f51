//! `O_NONBLOCK`: the program's setting, and Pirn's temporary one.
//!
//! The kernel is asked before a wait, because the program may have changed the flag by a system
//! call that nobody sees. A server waits thousands of times per second per connection, and the
//! question costs 230 ns; so the answer "it blocks" counts for the rest of a *period* of 67 ms. A
//! change through libc ends that at once. The [review](super::review) of awaited descriptors
//! notices an unseen change within the period, a second later.
//!
//! `connect` has no flag for "do not wait", so Pirn *lends* the socket `O_NONBLOCK` for the
//! duration of one system call. Meanwhile the program may change the flag itself. Its last setting
//! holds in the end, and is what it is shown.

use super::fds::{self, Entry, LENT};
use crate::sys::{self, SysResult, call};
use crate::time;
use core::sync::atomic::Ordering;

fn set(fd: i32, flags: i32) -> SysResult {
    // SAFETY: no pointers.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETFL, flags) }
}

/// Returns whether the program has made a descriptor non-blocking.
pub(crate) fn is_nonblocking(fd: i32) -> bool {
    sys::status_flags(fd).is_ok_and(|flags| visible(fd, flags) & libc::O_NONBLOCK != 0)
}

/// The answer to whether a wait for a descriptor may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The program wants the descriptor to block, as the kernel has just said.
    Wanted,
    /// The kernel has said so earlier in this period.
    Assumed,
    /// The program has made it non-blocking.
    Refused,
}

/// Returns the number of the current period of 2^26 ns; never 0.
fn period() -> u32 {
    (time::clock(libc::CLOCK_MONOTONIC_COARSE) >> 26) as u32 | 1 << 31
}

/// Returns whether a wait for a descriptor may begin.
pub(crate) fn may_wait(entry: &Entry, fd: i32) -> Waiting {
    let period = period();
    // Relaxed, here and below: the number orders nothing else.
    if entry.blocks_in.load(Ordering::Relaxed) == period {
        return Waiting::Assumed;
    }
    if is_nonblocking(fd) {
        return Waiting::Refused;
    }
    if entry.is_known_and_alone() {
        entry.blocks_in.store(period, Ordering::Relaxed);
    }
    Waiting::Wanted
}

/// Returns the status flags as the program has set them; `flags` are the kernel's.
pub(crate) fn visible(fd: i32, flags: i32) -> i32 {
    // Relaxed: concurrent changes of the flags have no order.
    let lent = |entry: &Entry| entry.flags.load(Ordering::Relaxed) & LENT != 0;
    match flags & libc::O_NONBLOCK != 0 && fds::existing(fd).is_some_and(lent) {
        true => flags & !libc::O_NONBLOCK,
        false => flags,
    }
}

/// Runs a system call of the program that sets or clears `O_NONBLOCK`: `change(on)`.
pub(crate) fn change(fd: i32, on: bool, change: impl Fn(bool) -> SysResult) -> SysResult {
    let Some(entry) = fds::existing(fd) else {
        return change(on);
    };
    let _turn = entry.take_turn();
    // Relaxed: as in `may_wait`. Also after the change, because a wait may have asked before it.
    let forget = Forget(entry);
    forget.now();
    // Relaxed, here and below: under the lock.
    if entry.flags.load(Ordering::Relaxed) & LENT == 0 {
        return change(on);
    }
    // The flag stays set while it is lent; the end of the loan sets the program's value.
    let result = change(true);
    if on && result.is_ok() {
        entry.flags.fetch_and(!LENT, Ordering::Relaxed);
    }
    result
}

/// Makes the next wait ask the kernel again: when told to, and when dropped.
struct Forget<'a>(&'a Entry);

impl Forget<'_> {
    fn now(&self) {
        self.0.blocks_in.store(0, Ordering::Relaxed); // Relaxed: as in `may_wait`.
    }
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.now();
    }
}

/// Runs `f`, a system call, with the descriptor non-blocking.
pub(crate) fn lend(entry: &Entry, fd: i32, f: impl FnOnce() -> SysResult) -> SysResult {
    {
        let _turn = entry.take_turn();
        let flags = sys::status_flags(fd)?;
        if flags & libc::O_NONBLOCK == 0 {
            set(fd, flags | libc::O_NONBLOCK)?;
            entry.flags.fetch_or(LENT, Ordering::Relaxed); // Relaxed: under the lock.
        }
    }
    let result = f();
    let _turn = entry.take_turn();
    // Relaxed: under the lock. If it is not lent any more, the program has set the flag meanwhile.
    if entry.flags.fetch_and(!LENT, Ordering::Relaxed) & LENT != 0
        && let Ok(flags) = sys::status_flags(fd)
    {
        let _ = set(fd, flags & !libc::O_NONBLOCK);
    }
    result
}
