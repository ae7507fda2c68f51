//! The starter: a thread that sleeps from the start of the runtime on, until a signal handler
//! [wants](errands::want) something. It starts the server's other threads, and the one that writes
//! the dump for `SIGQUIT`.
//!
//! **The monitor must not start a thread.** To start one takes memory of `malloc` (`std`'s
//! record of the thread, its name, glibc's table of its thread-locals), and so perhaps a lock of
//! `malloc`'s: blocks that other threads have freed are given out again, and to make one larger
//! takes the lock of the arena that it came from, mostly the main thread's. A thread of the program
//! that has stopped for good with that lock would stop the monitor, and then nobody would preempt,
//! add spare carriers or look for late timers. This thread may stop: then tools get no answer, as
//! they would not if the listener stopped.
//!
//! Other ways would be worse:
//! * The reporter of the diagnostics is there anyway, but allocates far more when a carrier is
//!   stuck: just then an operator looks inside.
//! * A thread that the monitor makes by a bare `clone`, on memory that was set aside, needs a TLS
//!   block to call `pthread_create`, and is on none of glibc's lists: `setuid` would not reach it,
//!   and what it starts would keep the rights that the program has given up.
//! * The listener itself, started early, has a table of descriptors of its own, which its children
//!   inherit: the dump for `SIGQUIT` would not reach standard error.

use super::helpers;
use pirn_rt::sched::errands;
use std::io;

/// Bytes of its stack: it only starts threads.
const STACK: usize = 64 << 10;

/// Starts the starter, which passes each set of errands to `run`. Once per process.
///
/// # Errors
/// There is no memory, or the system refuses another thread.
pub(super) fn start(run: fn(u32)) -> io::Result<()> {
    helpers::start_with("pirn-server", STACK, move || {
        loop {
            run(errands::next());
        }
    })
}
