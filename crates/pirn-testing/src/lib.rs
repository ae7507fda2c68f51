//! What the tests of all packages share: `#[watched]`, limits of time that do not depend on the
//! pace of the machine, and small helpers.
//!
//! A test waits for conditions, and its [`Watchdog`] ends it if it hangs: no other limit is needed.
//! A watchdog counts seconds of a machine that is not busy: where three threads or processes want
//! each processor, a second of the clock is a third of one ([`pace`]). So a test passes beside any
//! load; one that hangs, sleeping or spinning, is ended all the same, if later. Where the kernel
//! does not know how slow the machine is (it emulates another, or valgrind runs the test), the
//! variable `PIRN_TEST_SLOWNESS` says it: it multiplies all limits, and divides what [`fewer`] is
//! asked for.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

mod bomb;
mod count;
mod drawn;
mod gate;
mod preload;
mod servers;

pub use bomb::{Bomb, burst, is_bomb};
pub use count::{Count, One};
pub use drawn::below;
pub use gate::Gate;
pub use pirn_testing_macros::watched;
pub use preload::build_library;
pub use servers::{Folder, Running, Server, watch};

/// A watchdog looks how busy the machine is this often.
const TICK: Duration = Duration::from_secs(1);

/// Ends the process, unless it is dropped in time.
pub struct Watchdog {
    _over: mpsc::Sender<()>,
}

impl Watchdog {
    /// Starts a watchdog on a platform thread: it works when every carrier is stuck. After `limit`
    /// it calls `hung`, which says which test it was and what is known, and aborts.
    ///
    /// Returns when its thread runs: std starts no thread where a test has forbidden `mprotect`.
    pub fn start(limit: Duration, hung: impl FnOnce() + Send + 'static) -> Watchdog {
        let (over, is_over) = mpsc::channel();
        let (begin, has_begun) = mpsc::channel::<()>();
        let mut left = limit.as_secs_f64() * slowness();
        std::thread::spawn(move || {
            drop(begin);
            while left > 0.0 {
                if is_over.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                left -= TICK.as_secs_f64() / pace();
            }
            hung();
            std::process::abort();
        });
        let _ = has_begun.recv();
        Watchdog { _over: over }
    }
}

/// Returns a limit for what another program bounds, as this machine needs it now.
pub fn patient(limit: Duration) -> Duration {
    limit.mul_f64(slowness() * pace())
}

/// Returns how often a test does what takes minutes on a slow machine: `count` times on others. The
/// load does not count, only what is set from outside.
pub fn fewer(count: usize) -> usize {
    (count as f64 / slowness()).ceil() as usize
}

/// Ends this process if it hangs: the child of a fork, which has no watchdog. What the process
/// executes keeps the limit; its own children do not.
pub fn end_if_it_hangs() {
    // SAFETY: no pointers.
    unsafe { libc::alarm(patient(Duration::from_secs(120)).as_secs() as u32) };
}

/// Returns how many times longer work takes here than on a machine with nothing else to do: the
/// threads that run, or wait for a processor or a disk, per processor, as the kernel averages it
/// over a minute. Opens no descriptor, on whose numbers tests rely.
pub fn pace() -> f64 {
    if cfg!(miri) {
        return 1.0;
    }
    // SAFETY: zeros are a valid `sysinfo` and `cpu_set_t`; the kernel writes one of each.
    let (load, processors) = unsafe {
        let (mut info, mut set): (libc::sysinfo, libc::cpu_set_t) = std::mem::zeroed();
        let failed =
            libc::sysinfo(&mut info) | libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        if failed != 0 {
            return 1.0;
        }
        (info.loads[0] as f64 / 65536.0, libc::CPU_COUNT(&set))
    };
    (load / f64::from(processors)).max(1.0)
}

/// Returns the processor time that this process has used.
pub fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns whether `/proc` says what this program's threads do in the kernel. Of a program that an
/// emulator runs it says what the emulator does.
pub fn kernel_tells_calls() -> bool {
    // Read by this very call.
    let line = std::fs::read_to_string("/proc/thread-self/syscall").unwrap_or_default();
    line.split(' ').next() == Some(&libc::SYS_read.to_string())
}

/// Returns the factor that is set from outside.
fn slowness() -> f64 {
    let text = std::env::var("PIRN_TEST_SLOWNESS");
    text.map_or(1.0, |text| {
        text.parse().expect("PIRN_TEST_SLOWNESS is a number")
    })
}
