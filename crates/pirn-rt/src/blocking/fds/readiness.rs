//! Waiting for a descriptor to become readable or writable: the [`protocol`](super::protocol), and
//! the loop of an operation that parks its virtual thread instead of blocking the carrier.

use crate::blocking::fds::status_flags::{self, Waiting};
use crate::blocking::fds::{self, Entry};
use crate::blocking::wait::{Outcome, Wait};
use crate::mark::Held;
use crate::sys::{Errno, SysResult};
use crate::time::Deadline;
use crate::vthread::awaited::{Awaited, Kind};
use crate::vthread::summons::{self, Ran};
use crate::vthread::wait_word::Hearing;
use core::cell::Cell;
use core::ops::Range;

pub(crate) use super::protocol::{Event, Readiness};
pub use crate::blocking::fds::waiters::{FdWaiter, Interest};

/// Reports an event that the poller has seen of a descriptor.
pub(crate) fn report(fd: i32, generation: u32, event: Event) {
    if let Some(entry) = fds::entry(fd) {
        entry.readiness.report(generation, event);
    }
}

/// Performs an operation as if it blocked: tries it, and while that returns `EAGAIN` parks the
/// running virtual thread until the descriptor is ready.
///
/// `attempt` must not block the carrier. `deadline` is called only before a wait. The result is
/// `EAGAIN` when the deadline has passed, as with `SO_RCVTIMEO`, and when the program has made the
/// descriptor non-blocking. It is `ECANCELED` when the thread is interrupted, which ends the wait,
/// and `EINTR` after a signal's handler without `SA_RESTART`.
#[inline]
pub fn blocking(
    fd: i32,
    interest: Interest,
    deadline: impl FnOnce(&Entry) -> Deadline,
    attempt: impl FnMut() -> SysResult,
) -> SysResult {
    blocking_for(Awaited::ready, fd, interest, deadline, attempt)
}

/// The same. `awaited` returns what to say about a wait for the descriptor.
#[inline]
pub fn blocking_for(
    awaited: impl Fn(i32, Interest) -> Awaited,
    fd: i32,
    interest: Interest,
    deadline: impl FnOnce(&Entry) -> Deadline,
    attempt: impl FnMut() -> SysResult,
) -> SysResult {
    restarting(Deadline::is_never, awaited, fd, interest, deadline, attempt)
}

/// The same. `restarts` returns whether a handler with `SA_RESTART` has the operation begin again,
/// given its time limit.
#[inline]
pub fn restarting(
    restarts: impl Fn(Deadline) -> bool,
    awaited: impl Fn(i32, Interest) -> Awaited,
    fd: i32,
    interest: Interest,
    deadline: impl FnOnce(&Entry) -> Deadline,
    mut attempt: impl FnMut() -> SysResult,
) -> SysResult {
    let Some(entry) = fds::entry(fd) else {
        return attempt();
    };
    let operation = Operation {
        awaited,
        restarts,
        fd,
        entry,
        interest,
    };
    operation.attempt_or_wait(entry.since(interest), deadline, |_| attempt())
}

/// Performs an operation that may take several attempts, as one call of the kernel does: with one
/// time limit, and whatever ends it after some bytes, its result is their number. A signal's
/// handler ends it then, also with `SA_RESTART`.
///
/// `bytes` are the number transferred before, and that with which the operation is complete.
/// `attempt(done)` transfers more after `done` bytes; 0: there will be no more.
pub fn in_pieces(
    fd: i32,
    interest: Interest,
    bytes: Range<usize>,
    deadline: impl FnOnce(&Entry) -> Deadline,
    mut attempt: impl FnMut(usize) -> SysResult,
) -> SysResult {
    let done = Cell::new(bytes.start);
    seen_in_part(fd, interest, &done, deadline, || {
        loop {
            let more = attempt(done.get())?;
            done.set(done.get() + more);
            if more == 0 || done.get() >= bytes.end {
                return Ok(done.get());
            }
        }
    })
}

/// Does the same with an `attempt` that keeps account of the bytes in `done` itself, and returns
/// `EAGAIN` until they are enough.
pub fn seen_in_part(
    fd: i32,
    interest: Interest,
    done: &Cell<usize>,
    deadline: impl FnOnce(&Entry) -> Deadline,
    attempt: impl FnMut() -> SysResult,
) -> SysResult {
    let restarts = |deadline: Deadline| done.get() == 0 && deadline.is_never();
    let result = restarting(restarts, Awaited::ready, fd, interest, deadline, attempt);
    match done.get() {
        0 => result,
        done => Ok(done),
    }
}

/// Reads as [`blocking`] does. `wanted` returns the number of bytes asked for, or 0 if the kernel
/// may answer without waiting for bytes. If an attempt gives fewer, and the descriptor is a stream,
/// the next read waits for an event before its attempt. `low_water` reads in place of all this if
/// one byte may not be enough for the socket.
#[inline]
pub fn reading(
    fd: i32,
    wanted: impl Fn() -> usize,
    deadline: impl FnOnce(&Entry) -> Deadline,
    mut attempt: impl FnMut() -> SysResult,
    low_water: impl FnOnce() -> Option<SysResult>,
) -> SysResult {
    let Some(entry) = fds::entry(fd) else {
        return attempt();
    };
    let mut attempt = |since| {
        let result = attempt();
        if let Ok(done @ 1..) = result
            && entry.is_stream()
            && done < wanted()
        {
            entry.readiness.note_emptied(since);
        }
        result
    };
    let interest = Interest::Read;
    let operation = Operation {
        awaited: Awaited::ready,
        restarts: Deadline::is_never,
        fd,
        entry,
        interest,
    };
    let since = entry.since(interest);
    if entry.readiness.is_emptied(since) && entry.is_stream() && wanted() > 0 {
        return match status_flags::may_wait(entry, fd)? {
            Waiting::Refused => attempt(since),
            waiting => operation.wait(since, deadline(entry), waiting, false, attempt),
        };
    }
    if entry.has_low_water()
        && let Some(result) = low_water()
    {
        return result;
    }
    operation.attempt_or_wait(since, deadline, attempt)
}

impl Awaited {
    /// Returns the wait for a descriptor to become readable or writable.
    #[inline(always)]
    pub fn ready(fd: i32, interest: Interest) -> Awaited {
        let kind = match interest {
            Interest::Read => Kind::Read,
            Interest::Write => Kind::Write,
        };
        Awaited::descriptor(kind, fd)
    }
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));

/// An operation on a descriptor that may have to wait. Each `attempt` gets the generation and the
/// count before it.
struct Operation<'a, A, R> {
    /// Returns what to say about a wait. A type of its own, so that nothing is put together before.
    awaited: A,
    /// Returns whether it begins again after a handler with `SA_RESTART`, given its time limit.
    restarts: R,
    fd: i32,
    entry: &'a Entry,
    interest: Interest,
}

impl<A: Fn(i32, Interest) -> Awaited, R: Fn(Deadline) -> bool> Operation<'_, A, R> {
    /// Tries, at the generation and the count `since`, and [waits](Self::wait) if that returns
    /// `EAGAIN` and the descriptor blocks.
    #[inline]
    fn attempt_or_wait(
        &self,
        since: (u32, u32),
        deadline: impl FnOnce(&Entry) -> Deadline,
        mut attempt: impl FnMut((u32, u32)) -> SysResult,
    ) -> SysResult {
        match attempt(since) {
            EAGAIN => {}
            result => return result,
        }
        match status_flags::may_wait(self.entry, self.fd)? {
            Waiting::Refused => EAGAIN,
            waiting => self.wait(since, deadline(self.entry), waiting, true, attempt),
        }
    }

    /// Parks until an event after `since`, tries, and so on. `attempted`: there has been an
    /// attempt.
    fn wait(
        &self,
        mut since: (u32, u32),
        deadline: Deadline,
        waiting: Waiting,
        mut attempted: bool,
        mut attempt: impl FnMut((u32, u32)) -> SysResult,
    ) -> SysResult {
        let &Operation {
            ref awaited,
            ref restarts,
            fd,
            entry,
            interest,
        } = self;
        loop {
            entry.register(fd)?;
            // Once woken it may hold the baton: others wait until it has passed that on, and must
            // not wait for a handler.
            let held = Held::new();
            let begin = || Wait::interruptible(awaited(fd, interest), Hearing::Always);
            let given_up = match park(entry, interest, since, deadline, begin) {
                Outcome::Ready => None,
                Outcome::TimedOut => Some(EAGAIN),
                Outcome::Interrupted => Some(Err(crate::blocking::INTERRUPTED)),
                Outcome::Summoned => {
                    // A handler may run for long: others may try meanwhile.
                    entry.readiness.pass_baton(interest);
                    drop(held);
                    after_signals(restarts(deadline))
                }
                Outcome::Closed => {
                    entry.readiness.pass_baton(interest);
                    return Err(fds::CLOSED);
                }
            };
            let mut result = EAGAIN;
            if given_up.is_none() || !attempted {
                since.1 = entry.readiness.count(interest);
                attempted = true;
                result = attempt(since);
            }
            let refused = || waiting == Waiting::Assumed && status_flags::is_nonblocking(fd);
            if result != EAGAIN || given_up.is_some() || refused() {
                entry.readiness.pass_baton(interest);
                return if result == EAGAIN {
                    given_up.unwrap_or(EAGAIN)
                } else {
                    result
                };
            }
        }
    }
}

/// Runs what the thread was summoned for. Returns the error of the operation, if it is not begun
/// again: after a handler without `SA_RESTART`, and, unless it `restarts`, after any.
#[cold]
fn after_signals(restarts: bool) -> Option<SysResult> {
    let fails = match summons::attend() {
        Ran::Nothing => false,
        Ran::Restarting => !restarts,
        Ran::Interrupting => true,
    };
    fails.then_some(Err(Errno(libc::EINTR)))
}

/// Parks until an event after this generation and count. Returns at once if one has come.
fn park(
    entry: &Entry,
    interest: Interest,
    since: (u32, u32),
    deadline: Deadline,
    begin: impl FnOnce() -> Result<Wait, Outcome>,
) -> Outcome {
    let joined = || entry.awaited();
    entry
        .readiness
        .park(interest, since, deadline, begin, joined)
}

/// Adds an observer to a descriptor's list, unless there have been events after `counts`.
/// Returns whether it was added.
///
/// # Safety
/// The waiter and its wait stay in their places until [`Readiness::stop_observing`] has returned.
pub unsafe fn observe(entry: &Entry, waiter: &FdWaiter, counts: [u32; 2]) -> bool {
    let joined = || entry.awaited();
    // SAFETY: the caller's contract.
    unsafe { entry.readiness.observe(waiter, counts, joined) }
}

#[cfg(test)]
mod tests;
