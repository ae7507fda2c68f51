//! Calls that wait for a descriptor to become readable or writable, by the
//! [`protocol`](super::protocol): they park their virtual thread instead of blocking the carrier.

use crate::blocking::fds::status_flags::{self, Waiting};
use crate::blocking::fds::{self, Entry};
use crate::blocking::wait::{Outcome, Wait};
use crate::blocking::{self, Nap};
use crate::no_suspend::NoPreempt;
use crate::sched::safepoint::{self, Ran};
use crate::sys::{Errno, SysResult};
use crate::time::Deadline;
use crate::vthread;
use crate::vthread::wait_reason::{Kind, WaitReason};
use crate::vthread::wait_word::Interruptible;
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

/// A call on a descriptor that blocks the running virtual thread and no carrier: it is attempted,
/// and while an attempt returns `EAGAIN` the thread parks until the descriptor is ready.
#[derive(Clone, Copy)]
pub struct FdCall {
    fd: i32,
    /// `None`: the table has none for this number.
    entry: Option<&'static Entry>,
    interest: Interest,
    /// The time at which a wait ends with `EAGAIN`. `None`: the first wait sets it, by the socket's
    /// own time limit.
    pub deadline: Option<Deadline>,
    /// What dumps show. `None`: a wait for the descriptor.
    reason: Option<WaitReason>,
    restarts: Restarts,
}

/// When a call begins again after a signal handler with `SA_RESTART`, in place of `EINTR`.
#[derive(Clone, Copy)]
pub enum Restarts {
    /// If the call has no time limit.
    Untimed,
    Always,
    /// The call has already transferred something.
    Never,
}

impl Restarts {
    /// Returns whether a call with this deadline begins again.
    #[inline]
    fn with(self, deadline: Deadline) -> bool {
        match self {
            Restarts::Untimed => deadline.is_never(),
            Restarts::Always => true,
            Restarts::Never => false,
        }
    }
}

impl FdCall {
    /// Returns a call that waits as the kernel does for a socket or a pipe.
    #[inline]
    pub fn new(fd: i32, interest: Interest) -> FdCall {
        FdCall {
            fd,
            entry: fds::entry(fd),
            interest,
            deadline: None,
            reason: None,
            restarts: Restarts::Untimed,
        }
    }

    #[inline]
    pub fn until(mut self, deadline: Deadline) -> FdCall {
        self.deadline = Some(deadline);
        self
    }

    #[inline]
    pub fn shown_as(mut self, reason: WaitReason) -> FdCall {
        self.reason = Some(reason);
        self
    }

    #[inline]
    pub fn restarting(mut self, restarts: Restarts) -> FdCall {
        self.restarts = restarts;
        self
    }

    /// Returns whether the call may have to wait for more than one byte, by `SO_RCVLOWAT`.
    #[inline]
    pub fn has_low_water(&self) -> bool {
        self.entry.is_some_and(Entry::has_low_water)
    }

    /// Repeats `attempt`, which must not block the carrier, until its result is not `EAGAIN`.
    ///
    /// The result is `EAGAIN` after the deadline, as with `SO_RCVTIMEO`, and if the program has
    /// made the descriptor non-blocking; `ECANCELED` if the thread is interrupted during a wait;
    /// `EINTR` after a signal's handler, unless the call [restarts](Restarts).
    #[inline]
    pub fn run(&mut self, mut attempt: impl FnMut() -> SysResult) -> SysResult {
        let Some(entry) = self.entry else {
            return self.run_by_looking(&mut attempt);
        };
        let since = entry.since(self.interest);
        match attempt() {
            EAGAIN => self.wait(entry, since, true, move |_| attempt()),
            result => result,
        }
    }

    /// Runs a read. `wanted` returns the number of bytes asked for, or 0 if the kernel may answer
    /// without waiting for bytes. If an attempt gives fewer, and the descriptor is a stream, the
    /// next read waits for an event before its attempt.
    #[inline]
    pub fn read(
        &mut self,
        wanted: impl Fn() -> usize + Copy,
        mut attempt: impl FnMut() -> SysResult,
    ) -> SysResult {
        let Some(entry) = self.entry else {
            return self.run_by_looking(&mut attempt);
        };
        let mut attempt = move |since| {
            let result = attempt();
            if let Ok(done @ 1..) = result
                && entry.is_stream()
                && done < wanted()
            {
                entry.readiness.note_emptied(since);
            }
            result
        };
        let since = entry.since(self.interest);
        if entry.readiness.is_emptied(since) && entry.is_stream() && wanted() > 0 {
            return self.wait(entry, since, false, attempt);
        }
        match attempt(since) {
            EAGAIN => self.wait(entry, since, true, attempt),
            result => result,
        }
    }

    /// Runs a call on a number that the table has no entry for (1,048,576 and above): no event is
    /// told of, so this looks every 10 ms. Where the thread cannot park, there is one attempt.
    #[cold]
    fn run_by_looking(&self, attempt: &mut dyn FnMut() -> SysResult) -> SysResult {
        const EVERY_NS: u64 = 10_000_000;
        loop {
            let result = attempt();
            let is_over = self.deadline.is_some_and(|deadline| deadline.has_passed());
            if result != EAGAIN
                || is_over
                || vthread::parkable().is_none()
                || status_flags::is_nonblocking(self.fd)
            {
                return result;
            }
            let reason = self
                .reason
                .unwrap_or_else(|| wait_for(self.fd, self.interest));
            let moment = Deadline::after_nanos(EVERY_NS);
            match blocking::pause_until(reason, moment, Interruptible::Always) {
                Nap::Over => {}
                Nap::Interrupted => return Err(blocking::INTERRUPTED),
                Nap::Signalled(ran) => {
                    let deadline = self.deadline.unwrap_or(Deadline::NEVER);
                    if let Some(error) = end_by(ran, self.restarts.with(deadline)) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Runs a transfer that may take several attempts, as one call of the kernel does: with one
    /// time limit. If anything ends it after some bytes, the result is their number.
    ///
    /// `bytes` are the number transferred before, and that with which the call is complete.
    /// `attempt(done)` transfers more after `done` bytes; 0: there will be no more.
    pub fn in_pieces(
        mut self,
        bytes: Range<usize>,
        mut attempt: impl FnMut(usize) -> SysResult,
    ) -> SysResult {
        let mut done = bytes.start;
        while done < bytes.end {
            if done > 0 {
                self.restarts = Restarts::Never;
            }
            match self.run(|| attempt(done)) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Waits, if the descriptor blocks, for an event after the generation and the count `since`,
    /// and so on until an attempt ends the call. `attempted`: there has been an attempt.
    #[inline]
    fn wait(
        &mut self,
        entry: &'static Entry,
        since: (u32, u32),
        attempted: bool,
        mut attempt: impl FnMut((u32, u32)) -> SysResult,
    ) -> SysResult {
        let waiting = match status_flags::may_wait(entry, self.fd)? {
            Waiting::Refused if attempted => return EAGAIN,
            Waiting::Refused => return attempt(since),
            waiting => waiting,
        };
        let &mut FdCall { fd, interest, .. } = self;
        let anew = || entry.deadline(fd, interest);
        let deadline = *self.deadline.get_or_insert_with(anew);
        let ready = || wait_for(fd, interest);
        let wait = FdWait {
            fd,
            entry,
            interest,
            deadline,
            reason: self.reason.unwrap_or_else(ready),
            restarts: self.restarts.with(deadline),
            waiting,
        };
        wait.park_and_attempt(since, attempted, attempt)
    }
}

/// A [call](FdCall) that waits. A type of its own, so that a call that need not wait puts nothing
/// of this into memory.
struct FdWait {
    fd: i32,
    entry: &'static Entry,
    interest: Interest,
    deadline: Deadline,
    reason: WaitReason,
    /// Whether the call begins again after a handler with `SA_RESTART`.
    restarts: bool,
    waiting: Waiting,
}

impl FdWait {
    /// Parks until an event after `since`, attempts the call, and so on.
    fn park_and_attempt(
        self,
        mut since: (u32, u32),
        mut attempted: bool,
        mut attempt: impl FnMut((u32, u32)) -> SysResult,
    ) -> SysResult {
        let FdWait {
            fd,
            entry,
            interest,
            ..
        } = self;
        let Entry { readiness, .. } = entry;
        loop {
            entry.register(fd)?;
            // Once woken, the thread may owe the hand-off: other threads wait until it has woken
            // the next one, and must not wait for a handler.
            let held = NoPreempt::new();
            let begin = || Wait::interruptible(self.reason, Interruptible::Always);
            let joined = || entry.note_waiter();
            let deadline = self.deadline;
            let end = readiness.park_until_event(interest, since, deadline, begin, joined);
            let error = match end {
                Outcome::Ready => None,
                Outcome::TimedOut => Some(Errno(libc::EAGAIN)),
                Outcome::Interrupted => Some(blocking::INTERRUPTED),
                Outcome::SafePoint => {
                    // A handler may run for long: others may try meanwhile.
                    readiness.hand_off(interest);
                    drop(held);
                    after_signals(self.restarts)
                }
                Outcome::Closed => {
                    readiness.hand_off(interest);
                    return Err(fds::CLOSED);
                }
            };
            let mut result = EAGAIN;
            if error.is_none() || !attempted {
                since.1 = readiness.count(interest);
                attempted = true;
                let owed = OWED.replace(Some((entry, interest)));
                result = attempt(since);
                OWED.set(owed);
            }
            let refused = || self.waiting == Waiting::Assumed && status_flags::is_nonblocking(fd);
            if result != EAGAIN || error.is_some() || refused() {
                readiness.hand_off(interest);
                return match error {
                    Some(error) if result == EAGAIN => Err(error),
                    _ => result,
                };
            }
        }
    }
}

thread_local! {
    /// The hand-off that the running thread owes while it attempts a call that it has waited for.
    static OWED: Cell<Option<(&'static Entry, Interest)>> = const { Cell::new(None) };
}

/// Makes up for what an attempt has begun that a handler of `SIGPIPE`, which the kernel has run in
/// it, leaves by a jump: hands off, and lets the thread be preempted again.
#[cold]
pub fn left_by_jump() {
    if let Some((entry, interest)) = OWED.take() {
        entry.readiness.hand_off(interest);
        NoPreempt::end();
    }
}

/// Runs what is pending for the thread. Returns the error with which a handler ends the call,
/// unless it restarts.
#[cold]
fn after_signals(restarts: bool) -> Option<Errno> {
    end_by(safepoint::run_pending(), restarts)
}

/// Returns the error with which what the thread has run ends a call, unless the call restarts.
fn end_by(ran: Ran, restarts: bool) -> Option<Errno> {
    if vthread::current().is_none() {
        return Some(Errno(libc::EINTR)); // The child of a fork in a handler: no poller is there.
    }
    let ends = match ran {
        Ran::Nothing => false,
        Ran::Restarting => !restarts,
        Ran::Interrupting => true,
    };
    ends.then_some(Errno(libc::EINTR))
}

/// Returns the wait for a descriptor to become readable or writable.
#[inline(always)]
pub fn wait_for(fd: i32, interest: Interest) -> WaitReason {
    let kind = match interest {
        Interest::Read => Kind::Read,
        Interest::Write => Kind::Write,
    };
    WaitReason::descriptor(kind, fd)
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));

/// Adds an observer to a descriptor's list, unless there have been events after `counts`.
/// Returns whether it was added.
///
/// # Safety
/// The waiter and its wait stay in their places until [`Readiness::stop_observing`] has returned.
pub unsafe fn observe(entry: &Entry, waiter: &FdWaiter, counts: [u32; 2]) -> bool {
    let joined = || entry.note_waiter();
    // SAFETY: the caller's contract.
    unsafe { entry.readiness.observe(waiter, counts, joined) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::fds::waiters::{FdWaiters, FdWakes};
    use crate::blocking::list::STEPS;
    use crate::vthread::wait_reason::{Kind, WaitReason};

    const MANY: usize = 10_000;

    #[test]
    fn an_event_costs_no_walk_along_all_who_wait_for_it() {
        let waits: Vec<Wait> = (0..2 * MANY)
            .map(|_| Wait::new(WaitReason::new(Kind::Poll, 1)))
            .collect();
        let doer = |(i, wait)| match i % 2 {
            0 => FdWaiter::doer(wait, Interest::Read),
            _ => FdWaiter::doer(wait, Interest::Write),
        };
        let crowd: Vec<FdWaiter> = waits.iter().enumerate().map(doer).collect();
        let mut waiters = FdWaiters::new();
        for waiter in &crowd {
            // SAFETY: the crowd stays until the end.
            unsafe { waiters.append(waiter) };
        }
        let before = STEPS.get();
        for i in 0..MANY {
            let mut wakes = FdWakes::new();
            for interest in [Interest::Read, Interest::Write] {
                waiters.claim_doer(interest, &mut wakes);
            }
            waiters.claim_observers(true, true, &mut wakes);
            // The first two only.
            assert_eq!(wakes.perform(), 2);
            for wait in &waits[2 * i..2 * i + 2] {
                assert!(wait.claim(Outcome::Ready).is_none());
            }
        }
        assert!(STEPS.get() - before <= 2 * MANY);
        assert!(waiters.doers.iter().all(|list| list.is_empty()));
    }
}
