//! `O_NONBLOCK`: the program's setting, and Pirn's temporary one.
//!
//! The kernel is asked before a wait, because the program may have changed the flag by an unseen
//! system call. A server waits up to thousands of times per second per connection, and the question
//! costs 230 ns; so the answer "it blocks" counts for the rest of a *period* of 1.07 s. A change
//! through libc ends that at once. The [review](super::review) of awaited descriptors notices an
//! unseen change within the period, a second later. (A shorter period would not help much: a
//! program that hands a descriptor on to non-blocking code does so right after a wait.)
//!
//! `connect` has no flag for "do not wait", so Pirn *lends* the socket `O_NONBLOCK` for the
//! duration of one system call. Meanwhile the program may change the flag itself. The program's
//! last setting holds in the end, and the program is always shown its own setting.

use crate::blocking::fds::{self, Entry, LENT};
use crate::sched::{preempt, simulation};
use crate::sys::{self, Errno, SysResult, call};
use crate::time;
use core::sync::atomic::Ordering;

fn set(fd: i32, flags: i32) -> SysResult {
    // SAFETY: no pointers.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETFL, flags) }
}

/// Returns whether the program has made a descriptor non-blocking.
pub fn is_nonblocking(fd: i32) -> bool {
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

/// Marks the number of a period. A word without it counts how often an answer was forgotten.
const PERIOD: u32 = 1 << 31;

/// Returns the number of the current period of 2^30 ns.
fn period() -> u32 {
    (time::clock(libc::CLOCK_MONOTONIC_COARSE) >> 30) as u32 | PERIOD
}

/// Returns whether a wait for a descriptor may begin. Fails if the kernel does not tell: a program
/// that expects `EAGAIN` would wait.
pub(crate) fn may_wait(entry: &Entry, fd: i32) -> Result<Waiting, Errno> {
    let period = period();
    // Acquire: pairs with the Release in `forget`: the flags that the kernel tells are not older.
    let last = entry.blocks_in.load(Ordering::Acquire);
    // In a simulation seconds pass at once, and only calls that are seen change the flag.
    if last == period || last & PERIOD != 0 && simulation::is_running() {
        return Ok(Waiting::Assumed);
    }
    if visible(fd, sys::status_flags(fd)?) & libc::O_NONBLOCK != 0 {
        return Ok(Waiting::Refused);
    }
    if entry.is_known_and_alone() {
        // Fails if the flag has changed since the load: then the answer may be out of date.
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed); // Relaxed: tells of no write.
        let _ = entry.blocks_in.compare_exchange(last, period, set, failed);
    }
    Ok(Waiting::Wanted)
}

/// Makes the next wait for a descriptor ask the kernel again. Called after a change.
pub(super) fn forget(entry: &Entry) {
    let next = |word: u32| Some(word.wrapping_add(1) & !PERIOD);
    let (set, failed) = (Ordering::Release, Ordering::Relaxed); // Release: see `may_wait`.
    let _ = entry.blocks_in.fetch_update(set, failed, next);
}

/// Returns the status flags as the program has set them; `flags` are the kernel's.
pub fn visible(fd: i32, flags: i32) -> i32 {
    // Relaxed: concurrent changes of the flags have no order.
    let lent = |entry: &Entry| entry.flags.load(Ordering::Relaxed) & LENT != 0;
    match flags & libc::O_NONBLOCK != 0 && fds::existing(fd).is_some_and(lent) {
        true => flags & !libc::O_NONBLOCK,
        false => flags,
    }
}

/// Runs a system call of the program that sets or clears `O_NONBLOCK`: `change(on)`.
pub fn change(fd: i32, on: bool, change: impl Fn(bool) -> SysResult) -> SysResult {
    let Some(entry) = fds::existing(fd) else {
        return change(on);
    };
    let _serial = entry.serialise();
    // Relaxed, here and below: under the lock.
    let lent = entry.flags.load(Ordering::Relaxed) & LENT != 0;
    // The flag stays set while it is lent; the end of the loan sets the program's value.
    let result = change(on || lent);
    if lent && on && result.is_ok() {
        entry.flags.fetch_and(!LENT, Ordering::Relaxed);
    }
    forget(entry);
    result
}

/// Runs `f`, a system call, with the descriptor non-blocking.
pub fn lend(entry: &Entry, fd: i32, f: impl FnOnce() -> SysResult) -> SysResult {
    {
        let _serial = entry.serialise();
        let flags = sys::status_flags(fd)?;
        if flags & libc::O_NONBLOCK == 0 {
            set(fd, flags | libc::O_NONBLOCK)?;
            entry.flags.fetch_or(LENT, Ordering::Relaxed); // Relaxed: under the lock.
        }
    }
    // A handler that ran meanwhile could leave it so by a jump.
    let result = preempt::without(f);
    let _serial = entry.serialise();
    // Relaxed, both: under the lock. If it is not lent any more, the program has set the flag
    // meanwhile. If the kernel does not take it back, it stays lent: the program's calls wait.
    let lent = entry.flags.load(Ordering::Relaxed) & LENT != 0;
    let back = |flags| set(fd, flags & !libc::O_NONBLOCK);
    if lent && sys::status_flags(fd).and_then(back).is_ok() {
        entry.flags.fetch_and(!LENT, Ordering::Relaxed);
    }
    result
}
