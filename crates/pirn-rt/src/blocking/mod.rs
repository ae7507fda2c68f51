//! Blocking: everything that a virtual thread can wait for.
//!
//! * [`wait`]: one episode of waiting, decided by exactly one claim. [`list`]: waiting threads, in
//!   order.
//! * [`timer`]: points in time.
//! * [`parking_lot`]: addresses. [`futex`]: futex words, shared with platform threads.
//! * [`fds`]: descriptors. [`task`]: tasks of async code that wait for one.
//! * [`pool`]: calls that only the kernel can finish, made by platform threads.
//! * [`notice`]: a signal that one thread waits for and others give.
//! * [`retry`]: repeated attempts, where the kernel reports no event.
//! * [`events`]: how idle carriers wait for all of it. [`nap`]: when they leave that to others.

mod events;
pub mod fds;
pub mod futex;
pub mod list;
mod nap;
#[cfg(test)]
#[path = "nap/tests.rs"] // `pirn-model` includes `nap`, without a whole runtime.
mod nap_tests;
pub mod notice;
pub mod parking_lot;
pub mod pool;
pub mod retry;
pub mod task;
pub mod timer;
pub mod wait;

use crate::sys::Errno;
use crate::time::Deadline;
use crate::vthread::awaited::{Awaited, Kind};
use crate::vthread::summons::{self, Ran};
use crate::vthread::wait_word::Hearing;
use wait::{Outcome, Wait};

/// Puts the running thread to sleep until `deadline`, or until it hears of an interrupt. Returns
/// whether it slept until the deadline. Handlers of signals may run meanwhile.
pub fn sleep_until(deadline: Deadline, hearing: Hearing) -> bool {
    loop {
        match nap_until(deadline, hearing) {
            Nap::Over => return true,
            Nap::Interrupted => return false,
            Nap::Signalled(_) => {}
        }
    }
}

/// How a [nap](nap_until) ended.
pub enum Nap {
    /// At its deadline.
    Over,
    Interrupted,
    /// What the thread was summoned for has been run.
    Signalled(Ran),
}

/// Puts the running thread to sleep until `deadline`, an interrupt, or a summons.
pub fn nap_until(deadline: Deadline, hearing: Hearing) -> Nap {
    match pause(Awaited::new(Kind::Sleep, 0), deadline, hearing) {
        Outcome::Summoned => Nap::Signalled(summons::attend()),
        Outcome::TimedOut => Nap::Over,
        _ => Nap::Interrupted,
    }
}

/// Does the same in a wait for something that is looked at afterwards.
pub fn pause_until(awaited: Awaited, deadline: Deadline, hearing: Hearing) {
    if pause(awaited, deadline, hearing) == Outcome::Summoned {
        summons::attend();
    }
}

fn pause(awaited: Awaited, deadline: Deadline, hearing: Hearing) -> Outcome {
    match Wait::interruptible(awaited, hearing) {
        Ok(wait) => wait.block_until(deadline),
        Err(refused) => refused,
    }
}

/// The error of a wait for a descriptor when the thread is interrupted. Not `EINTR`, after which
/// `std` tries again.
pub const INTERRUPTED: Errno = Errno(libc::ECANCELED);
