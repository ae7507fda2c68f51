//! A second look at descriptors that threads have been waiting for.
//!
//! A number may change its open file by unseen system calls: `close` and `dup2` made
//! inline, as `rustix` makes them. epoll then knows nothing of the new file, and its waiters would
//! wait for ever. A question to the kernel before each wait would cost a system call per wait. So
//! once, about a second after the first thread began to wait for a descriptor, an idle carrier
//! registers it again and learns from the answer what the number means:
//!
//! | answer | meaning | what is done |
//! |---|---|---|
//! | `EEXIST` | the same file as before | nothing, unless it does not block any more: as next |
//! | success | another file | the waiters try again |
//! | `EBADF` | no file | the waiters wake with `EBADF` |
//!
//! A review of many descriptors goes in steps, with threads and events between them: two system
//! calls each for 10,000 connections took 10 ms in one go, once per second.
//!
//! The [`protocol`] decides when a review is due, and which carrier takes it.

use crate::blocking::fds::readiness::Event;
use crate::blocking::fds::{self, readiness, status_flags};
use crate::no_suspend::NoSuspend;
use crate::sched::{self, runtime};
use crate::sys::Errno;
use crate::time::Deadline;
use core::sync::atomic::{AtomicU32, AtomicU64};

mod protocol;
pub(super) use protocol::{UNREVIEWED, is_marked, unmark};

/// The number of descriptors that are reviewed in one step: 100 to 200 microseconds.
const STEP_LENGTH: usize = 256;

static SCHEDULE: protocol::Schedule = protocol::Schedule {
    due: AtomicU64::new(0),
    step: AtomicU64::new(0),
    first: AtomicU32::new(0),
};

/// Begins anew, in the child of a fork that has no runtime yet.
pub(super) fn after_fork() {
    SCHEDULE.reset();
}

/// Notes that a thread has begun to wait for a descriptor with these flags, which is not
/// [marked](is_marked). It has joined the waiters, and holds their lock.
pub(super) fn expect(flags: &AtomicU32) {
    if SCHEDULE.mark(flags) {
        let section = NoSuspend::new();
        // A carrier with a processor attends before it sleeps, or has another do so.
        if sched::carrier(&section)
            .and_then(|c| c.processor())
            .is_none()
            && let Some(runtime) = runtime::get()
            && runtime.timers.unattended(due)
        {
            runtime.poller.kick();
        }
    }
}

/// Returns when the next review, or a step of one, is due.
pub(crate) fn due() -> Deadline {
    Deadline::from_nanos(SCHEDULE.due())
}

/// Reviews some descriptors if a review is due.
pub(crate) fn run_if_due() {
    if due().has_passed() {
        take_step();
    }
}

#[cold]
fn take_step() {
    SCHEDULE.take_step(|first| fds::review_some(first, STEP_LENGTH, review));
}

fn review(fd: i32, entry: &fds::Entry) {
    let generation = entry.generation();
    if !entry.readiness.is_awaited() {
        return;
    }
    let Some(runtime) = runtime::get() else {
        return;
    };
    match runtime.poller.register(fd, generation) {
        Ok(_) => {
            readiness::report(fd, generation, Event::ALL);
        }
        Err(Errno(libc::EBADF)) => entry.end_life(generation),
        Err(Errno(libc::EEXIST)) if !status_flags::is_nonblocking(fd) => {}
        // It does not block any more; or there is no memory to find out, so that the waiters do.
        Err(_) => {
            readiness::report(fd, generation, Event::ALL);
        }
    }
}
