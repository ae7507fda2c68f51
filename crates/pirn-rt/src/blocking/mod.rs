//! Blocking: everything that a virtual thread can wait for.
//!
//! * [`wait`]: one episode of waiting, decided by exactly one claim. [`list`]: waiting threads, in
//!   order.
//! * [`timer`]: points in time.
//! * [`parking_lot`]: addresses. [`futex`]: futex words, shared with platform threads.
//! * [`fds`]: descriptors. [`task`]: tasks of async code that wait for one.
//! * [`pool`]: calls that only the kernel can finish, made by platform threads.
//! * [`notify`]: a signal that one thread waits for and others give.
//! * [`retry`]: repeated attempts, where the kernel reports no event.

pub mod fds;
pub mod futex;
pub mod list;
pub mod notify;
pub mod parking_lot;
pub mod pool;
pub mod retry;
pub mod task;
pub mod timer;
pub mod wait;

use crate::sched::safepoint::{self, Ran};
use crate::sys::Errno;
use crate::time::Deadline;
use crate::vthread::wait_reason::{Kind, WaitReason};
use crate::vthread::wait_word::Interruptible;
use wait::{Outcome, Wait};

/// Puts the running thread to sleep until `deadline`, or until an interrupt. Returns
/// whether it slept until the deadline. Handlers of signals may run meanwhile.
pub fn sleep_until(deadline: Deadline, interruptible: Interruptible) -> bool {
    loop {
        match nap_until(deadline, interruptible) {
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
    /// By a request for a safe point, which the thread has answered.
    Signalled(Ran),
}

/// Puts the running thread to sleep until `deadline`, an interrupt, or a safe point request.
pub fn nap_until(deadline: Deadline, interruptible: Interruptible) -> Nap {
    pause_until(WaitReason::new(Kind::Sleep, 0), deadline, interruptible)
}

/// Does what [`nap_until`] does, in a wait for something that the caller looks at afterwards. Dumps
/// show `reason`.
pub fn pause_until(reason: WaitReason, deadline: Deadline, interruptible: Interruptible) -> Nap {
    let outcome = match Wait::interruptible(reason, interruptible) {
        Ok(wait) => wait.block_until(deadline),
        Err(refused) => refused,
    };
    match outcome {
        Outcome::SafePoint => Nap::Signalled(safepoint::run_pending()),
        Outcome::TimedOut => Nap::Over,
        _ => Nap::Interrupted,
    }
}

/// Waits by `once` until the wait has ended, and runs what is pending at each requested safe point.
pub fn wait_past_safe_points(mut once: impl FnMut() -> Outcome) -> Outcome {
    loop {
        match once() {
            Outcome::SafePoint => drop(safepoint::run_pending()),
            outcome => return outcome,
        }
    }
}

/// The error of a wait for a descriptor when the thread is interrupted. Not `EINTR`, after which
/// `std` tries again.
pub const INTERRUPTED: Errno = Errno(libc::ECANCELED);
