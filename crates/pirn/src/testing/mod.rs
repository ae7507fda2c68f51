//! Runtimes and threads for unit tests, and the tests of the crates below that need threads which
//! park in `std`'s locks and channels.

mod claimed;
#[cfg(feature = "dump")]
mod debug_table;
#[cfg(feature = "dump")]
mod metrics;
mod runtimes;
#[cfg(feature = "dump")]
mod waits;

use crate::thread::JoinHandle;
use pirn_rt::sched::runtime::Runtime;
use pirn_rt::sched::{self, Cause};
use pirn_rt::testing::ready;
pub use pirn_rt::testing::{few, make_with};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

/// Spawns a thread of a runtime.
#[track_caller]
pub fn spawn<T: Send>(
    runtime: &'static Runtime,
    f: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let (thread, ready) = ready(runtime, f);
    sched::schedule(ready, Cause::Start);
    JoinHandle::new(thread)
}

/// Forks while another thread is in `hold`, which holds a lock as long as it is in its argument.
/// Asserts that the child gets through `body`.
pub fn fork_while(hold: impl FnOnce(&dyn Fn()) + Send + 'static, body: impl FnOnce()) {
    crate::thread::spawn(|| ()).join().unwrap(); // The runtime has started.
    let (here, held) = mpsc::channel();
    let (done, is_done) = mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        hold(&|| {
            here.send(()).unwrap();
            let _ = is_done.recv();
        });
    });
    held.recv().unwrap();
    // SAFETY: the child uses what glibc keeps usable after a fork.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        pirn_testing::end_if_it_hangs();
        let is_through = catch_unwind(AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child without the exit handlers.
        unsafe { libc::_exit(i32::from(!is_through)) };
    }
    let mut status = -1;
    // SAFETY: the child from above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    drop(done);
    holder.join().unwrap();
    assert_eq!(status, 0, "status of the child");
}
