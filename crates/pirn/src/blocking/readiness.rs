//! Waiting for a descriptor to become readable or writable: the [`protocol`], and the loop of an
//! operation that parks its virtual thread instead of blocking the carrier.

use super::fds::{self, Entry};
use super::status_flags::{self, Waiting};
use super::wait::{Outcome, Wait};
use crate::sys::{Errno, SysResult};
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;

mod protocol;
pub(crate) use protocol::{FdWaiter, Interest, Readiness};

/// Reports events that the poller has seen of a descriptor. Returns whether somebody was woken.
pub(crate) fn report(fd: i32, generation: u32, read: bool, write: bool) -> bool {
    fds::entry(fd).is_some_and(|entry| entry.readiness.report(generation, read, write))
}

/// Performs an operation as if it blocked: tries it, and while that returns `EAGAIN` parks the
/// running virtual thread until the descriptor is ready.
///
/// `attempt` must not block the carrier. `deadline` is called only before a wait. The result is
/// `EAGAIN` when the deadline has passed, as with `SO_RCVTIMEO`, and when the program has made the
/// descriptor non-blocking. It is `ECANCELED` when the thread is interrupted, which ends the wait.
pub(crate) fn blocking(
    fd: i32,
    interest: Interest,
    deadline: impl FnOnce(&Entry) -> Deadline,
    mut attempt: impl FnMut() -> SysResult,
) -> SysResult {
    let Some(entry) = fds::entry(fd) else {
        return attempt();
    };
    let generation = entry.generation();
    let mut count = entry.readiness.count(interest);
    match attempt() {
        Err(Errno(libc::EAGAIN)) => {}
        result => return result,
    }
    let waiting = status_flags::may_wait(entry, fd);
    if waiting == Waiting::Refused {
        return Err(Errno(libc::EAGAIN));
    }
    let deadline = deadline(entry);
    let mut attempted = false;
    loop {
        entry.register(fd)?;
        let outcome = park(entry, interest, (generation, count), deadline);
        let result = match outcome {
            Outcome::Closed => Err(fds::CLOSED),
            Outcome::Interrupted => Err(super::INTERRUPTED),
            Outcome::TimedOut if attempted || !deadline.is_never() => Err(Errno(libc::EAGAIN)),
            _ => {
                count = entry.readiness.count(interest);
                attempted = true;
                attempt()
            }
        };
        let refused = || waiting == Waiting::Assumed && status_flags::is_nonblocking(fd);
        if result != Err(Errno(libc::EAGAIN)) || outcome == Outcome::TimedOut || refused() {
            entry.readiness.pass_baton(interest);
            return result;
        }
    }
}

/// Parks until an event after this generation and count. Returns at once if one has come.
fn park(entry: &Entry, interest: Interest, since: (u32, u32), deadline: Deadline) -> Outcome {
    let begin = || Wait::interruptible(Hearing::Always);
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
pub(crate) unsafe fn observe(entry: &Entry, waiter: &FdWaiter, counts: [u32; 2]) -> bool {
    let joined = || entry.awaited();
    // SAFETY: the caller's contract.
    unsafe { entry.readiness.observe(waiter, counts, joined) }
}

#[cfg(test)]
mod tests;
