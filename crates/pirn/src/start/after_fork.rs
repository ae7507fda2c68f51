//! What the child of a fork does before it has a runtime of its own.
//!
//! The child of a process with virtual threads has copies of all data, and one thread. The others
//! may have been anywhere: they held locks, and were in the middle of changes. So nothing that they
//! could write is looked at again. The old runtime, as a value, is left where it is; what is kept
//! per process is begun anew, in each file by its own `after_fork`:
//!
//! ```text
//!   at the fork          no runtime, its descriptors are closed; threads act as libc's
//!   the first thread     what is kept per process is begun anew, then a new runtime starts
//! ```
//!
//! Most children run another program and never get to the second line. What does not change stays:
//! the layout of TLS blocks, settings, signal handlers.
//!
//! The thread that forked stays a platform thread, also if it was a virtual one. Its stack is in a
//! slot of the old runtime; so the addresses of all old slots stay reserved, and none is used
//! again.

use crate::observe;
use pirn_rt::blocking::{fds, parking_lot, wait};
use pirn_rt::glibc::late;
use pirn_rt::recorder;
use pirn_rt::sched::errands;
#[cfg(feature = "dump")]
use pirn_rt::sched::standing;
use pirn_rt::stack::region;
use pirn_rt::vthread::{helper, magazines, table};

/// Begins all data of the process anew that belong to its runtime.
///
/// # Safety
/// In the child of a fork that has no runtime yet, under the lock of the start.
pub(super) unsafe fn renew() {
    // SAFETY: the caller's contract.
    unsafe {
        pirn_libc::after_fork();
        parking_lot::after_fork();
        late::after_fork();
        magazines::after_fork();
        recorder::after_fork();
        observe::after_fork();
    }
    fds::after_fork();
    wait::after_fork();
    region::after_fork();
    table::after_fork();
    table::after_fork();
    helper::after_fork();
    errands::after_fork();
    #[cfg(feature = "dump")]
    standing::after_fork();
}
