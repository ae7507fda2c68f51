//! Signals of virtual threads, as POSIX has them.
//!
//! The kernel knows OS threads only. So carriers and helpers block all signals that other threads
//! and processes can send (`vthread/signals.rs`). The record of a virtual thread says which signals
//! the thread blocks, and which are pending for it.
//!
//! ```text
//!   sender: pthread_kill, raise, …             the thread
//!   [sending]                                  [delivery]
//!   1 siginfo into the table [information]
//!   2 pending |= signal
//!   3 blocked? that is all                     a mask that changes looks at pending [masks]
//!   4 request ------------------------------>  5 leaves its wait and all lists, or is interrupted
//!                                                where it computes (`sched/safepoint.rs`)
//!                                              6 asks the kernel for the action
//!                                              7 calls the handler, as a function, on its own stack
//!                                              8 SA_RESTART: begins the wait again; else EINTR
//! ```
//!
//! * Such a handler runs outside of all sections: it may park, be preempted, go on on another
//!   carrier, and be left by a jump. [`dispatch`](handler), in which nothing parks, remains for
//!   signals that the kernel delivers: faults, and all on platform threads, after a section of the
//!   runtime.
//! * The kernel is asked for the action, and so knows it: `exec`, `fork` and platform threads see
//!   the same. The default action is the kernel's, too: the thread unblocks the signal on its
//!   carrier and sends it there.
//! * The kernel gives a signal that is sent to the process to a platform thread that does not block
//!   it, mostly `main`. If all platform threads block it, the runtime gives it to a virtual thread
//!   that does not ([`process_wide`]). A virtual thread that waits for signals ([`sigwait`]) takes
//!   them from the kernel's own set.
//! * A carrier never blocks faults (`SIGSEGV`, …), and the kernel delivers them there. The same
//!   holds for signals that the kernel sends to a thread for a call of the thread's own
//!   ([`default`]).
//!
//! Other code can make a thread run something at its safe points in the same way, such as a
//! cancellation: it [requests](pirn_rt::sched::safepoint::request) a safe point of the thread, and
//! the hook in [`delivery`] looks whether there is something to run.

pub(crate) mod alternative;
pub mod default;
pub mod delivery;
pub(crate) mod handler;
pub(crate) mod information;
pub(crate) mod jumps;
pub(crate) mod masks;
pub mod process_wide;
pub(crate) mod sending;
pub(crate) mod sigwait;
pub(crate) mod stand_in;
pub mod urgent;

/// Makes virtual threads run handlers. Called once, at the start.
pub(crate) fn prepare() {
    jumps::prepare();
    pirn_rt::sched::safepoint::set_hook(delivery::deliver);
    pirn_rt::sched::safepoint::set_end_hook(sending::discard);
}
