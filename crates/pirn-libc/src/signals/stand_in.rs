//! The OS thread that stands for virtual threads where the kernel must know one that lasts: as the
//! target of timers' signals ([`directed`](crate::signals::directed)), and as the owner of robust
//! mutexes that other processes share. It is started when it is first needed.

use crate::signals::directed;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use pirn_rt::arch;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sys::{self, Errno};
use pirn_rt::vthread::start_helper;

/// See the module's documentation.
#[derive(Clone, Copy)]
pub(crate) struct StandIn {
    /// The kernel's id.
    pub(crate) id: u32,
    /// Its thread pointer.
    pub(crate) tp: usize,
}

/// Its id, or one of these.
static ID: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
const STARTING: u32 = u32::MAX;
static TP: AtomicUsize = AtomicUsize::new(0);

/// Begins anew, in the child of a fork, which has none.
pub(crate) fn after_fork() {
    ID.store(NONE, SeqCst);
}

/// Returns it.
///
/// # Errors
/// `EAGAIN`: there is no memory, or no OS thread, for it.
pub(crate) fn get() -> Result<StandIn, Errno> {
    let mut round = 0;
    loop {
        match ID.compare_exchange(NONE, STARTING, SeqCst, SeqCst) {
            Ok(_) if start_helper("pirn-stand-in", 64 << 10, run).is_err() => {
                ID.store(NONE, SeqCst);
                return Err(Errno(libc::EAGAIN));
            }
            Ok(_) | Err(STARTING) => sys::back_off(round),
            Err(id) => {
                let tp = TP.load(SeqCst);
                return Ok(StandIn { id, tp });
            }
        }
        round += 1;
    }
}

fn run() {
    valgrind::note_platform_thread();
    sys::block_only(!0);
    TP.store(arch::thread_pointer(), SeqCst);
    ID.store(sys::os_thread_id(), SeqCst);
    directed::pass_on_for_ever();
}
