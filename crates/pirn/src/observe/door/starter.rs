//! The thread that starts the door's other threads, and that of the dump for `SIGQUIT`, when the
//! monitor is told that they are wanted.
//!
//! ```text
//!   monitor                         starter, from the start of the runtime on
//!   1. WANTED |= errand             a. takes WANTED; 0: sleeps while it is 0
//!   2. wakes the starter            b. starts the thread, which may block
//! ```
//!
//! **The monitor must not start a thread itself.** To start one takes memory of `malloc` (`std`'s
//! record of the thread, its name, glibc's table of its thread-locals), and so perhaps a lock of
//! `malloc`'s: blocks that other threads have freed are given out again, and to make one larger
//! takes the lock of the arena that it came from, mostly the main thread's. A thread of the program
//! that has stopped for good with that lock would stop the monitor, and then nobody would preempt,
//! add spare carriers or look for late timers. This thread may stop: then tools get no answer, as
//! they would not if the listener stopped.
//!
//! Other ways would be worse:
//! * The reporter of `observe::lints` is there anyway, but allocates far more, when a carrier is
//!   stuck: just when somebody wants to look inside.
//! * A thread that the monitor makes by a bare `clone`, on memory that was set aside, needs a TLS
//!   block to call `pthread_create`, and is on none of glibc's lists: `setuid` would not reach it,
//!   and what it starts would keep the rights that the program has given up.
//! * The listener itself, started early, has a table of descriptors of its own, which its children
//!   inherit: the dump for `SIGQUIT` would not reach standard error.

use super::helpers;
use crate::sys;
use crate::time::Deadline;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use std::io;

/// Bytes of its stack: it only starts threads.
const STACK: usize = 64 << 10;

/// The errands that it has not begun yet.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// Starts the starter, which passes each set of errands to `run`. Once per process.
///
/// # Errors
/// There is no memory, or the system refuses another thread.
pub(super) fn start(run: fn(u32)) -> io::Result<()> {
    helpers::start_with("pirn-door", STACK, move || {
        loop {
            // Acquire: pairs with the Release in `want`: what the monitor did before it.
            match WANTED.swap(0, Acquire) {
                0 => drop(sys::futex_wait(&WANTED, 0, Deadline::NEVER)),
                wanted => run(wanted),
            }
        }
    })
}

/// Forgets errands of the parent, in the child of a fork that has no runtime yet.
pub(super) fn after_fork() {
    WANTED.store(0, Release); // Release: as in `want`.
}

/// Has the starter do errands. For the monitor: neither blocks nor allocates.
pub(super) fn want(errands: u32) {
    WANTED.fetch_or(errands, Release); // Release: pairs with the Acquire in `start`.
    sys::futex_wake(&WANTED, 1);
}
