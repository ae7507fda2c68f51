//! A second look at descriptors that threads have been waiting for.
//!
//! A number may change its open file by system calls that nobody sees: `close` and `dup2` made
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
//! ```text
//!   DUE     0  --expect-->  in a second  --the first step-->  0
//!   STEP    0  --begins-->  BUSY  --more are left-->  in a millisecond  --goes on-->  BUSY
//!                             '-----the last step-->  0
//! ```
//!
//! Whoever makes `STEP` busy takes the step alone.
//!
//! A sleeping carrier [attends](super::attendance) to a review as to a timer. So a carrier that
//! changes `DUE` or `STEP` either attends before it sleeps, or has another carrier do so.
//!
//! Rejected: each carrier looks at `DUE` before it sleeps. One that stood in for others, and then
//! rested, left a review behind that nobody woke for.

use super::readiness::Event;
use super::{fds, readiness, status_flags};
use crate::mark::Raised;
use crate::runtime;
use crate::sys::Errno;
use crate::time::{self, Deadline};
use crate::vthread;
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

const AFTER_NS: u64 = 1_000_000_000;
/// The number of descriptors that are reviewed in one step: 100 to 200 microseconds.
const STEP_LENGTH: usize = 256;
/// The time between two steps.
const STEP_EVERY_NS: u64 = 1_000_000;

/// When the next review is due; 0: nobody has begun to wait since the last one began.
static DUE: AtomicU64 = AtomicU64::new(0);
/// When the next step of the review that has begun is due; 0: none has.
static STEP: AtomicU64 = AtomicU64::new(0);
/// A step is being taken.
const BUSY: u64 = Deadline::NEVER.nanos();
/// The number that the next step begins with. Only the carrier that takes a step uses it.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Begins anew, in the child of a fork that has no runtime yet.
pub(super) fn after_fork() {
    DUE.store(0, Relaxed); // Relaxed, all: there is no runtime yet.
    STEP.store(0, Relaxed);
    FIRST.store(0, Relaxed);
}

/// Notes that a thread has begun to wait for a descriptor, whose mark has been set before, by a
/// sequentially consistent change.
pub(super) fn expect() {
    // SeqCst: in one order with the mark, and with the reviewer's `swap` and its look at the marks.
    // So either we see its 0, or it sees our mark.
    if DUE.load(SeqCst) == 0 {
        let due = time::now() + AFTER_NS;
        DUE.store(due, Relaxed); // Relaxed: ordered by the fences of `attendance`.
        let mark = Raised::new();
        // A carrier with a processor attends before it sleeps, or has another do so.
        if vthread::carrier(&mark)
            .and_then(|c| c.processor())
            .is_none()
            && let Some(runtime) = runtime::get()
            && runtime.timers.unattended()
        {
            runtime.poller.kick();
        }
    }
}

/// Returns when the next review, or a step of one, is due.
pub(super) fn due() -> Deadline {
    // Relaxed: ordered by the fences of `attendance`.
    match (STEP.load(Relaxed), DUE.load(Relaxed)) {
        (0, 0) => Deadline::NEVER,
        (0, due) => Deadline::from_nanos(due),
        (step, _) => Deadline::from_nanos(step),
    }
}

/// Reviews some descriptors if a review is due.
pub(super) fn run_if_due() {
    if due().has_passed() {
        take_step();
    }
}

#[cold]
fn take_step() {
    let step = STEP.load(Relaxed); // Relaxed: the exchange checks it.
    let is_due = step != BUSY && (step != 0 || DUE.load(Relaxed) != 0); // Relaxed: as above.
    // Acquire: pairs with the Release below: `FIRST`. Relaxed: another carrier takes the step.
    if !is_due || STEP.compare_exchange(step, BUSY, Acquire, Relaxed).is_err() {
        return;
    }
    if step == 0 {
        // SeqCst: see `expect`. Before the marks are read: a thread that sets one later expects a
        // review.
        DUE.swap(0, SeqCst);
    }
    let next = fds::review_some(FIRST.load(Relaxed), STEP_LENGTH, review);
    FIRST.store(next.unwrap_or(0), Relaxed); // Relaxed: published by the next store.
    let step = next.map_or(0, |_| time::now() + STEP_EVERY_NS);
    STEP.store(step, Release); // Release: pairs with the Acquire above.
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
        Err(Errno(libc::EEXIST)) if status_flags::is_nonblocking(fd) => {
            readiness::report(fd, generation, Event::ALL);
        }
        Err(_) => {}
    }
}
