//! The CPU time that virtual threads use.
//!
//! The kernel counts the CPU time of platform threads. A carrier's belongs to the threads that it
//! carries, one after another. So each switch adds the carrier's time since the switch before to
//! the account of the thread that leaves:
//!
//! ```text
//!   CPU time of the carrier, by the kernel
//!   +------------------+---------------------+------------+-------------->
//!   | thread A runs    | thread B runs       | (searches) | A runs again
//!                 A += this            B += this     `began` of the current run
//! ```
//!
//! The kernel answers by a system call, which takes some 300 ns. The monotonic clock takes none. A
//! run that is shorter than [`SHORT_NS`] by that clock counts as all CPU time: if the kernel had
//! given the CPU to another platform thread meanwhile, the run would have lasted longer. So `began`
//! is never less than the kernel's count, and ahead of it by one such run at most.
//!
//! Counting begins with the first [question](own), for all threads: what they used before counts as
//! nothing. Until then a switch pays one load and one branch, which the recorder of events needs in
//! any case.
//!
//! The accounts are in the TLS blocks, which begin with zeros, at the same distance from the thread
//! pointer in each.

use super::carrier::{self, Carrier, carrier, carrying};
use super::os_thread::clock_of;
use super::run::Began;
use crate::glibc::tls;
use crate::no_suspend::NoSuspend;
use crate::recorder;
use crate::sys::{self, call};
use crate::time;
use crate::vthread::{Core, current};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Below this, the time that a run has taken is its CPU time.
const SHORT_NS: u64 = 50_000;

thread_local! {
    /// The nanoseconds that the thread has used in all runs that it has ended.
    static ACCOUNT: AtomicU64 = const { AtomicU64::new(0) };
}

/// How much CPU time a carrier has used.
pub(super) struct Meter {
    began: Began,
    /// The monotonic time of its last switch; 0: not known. The carrier's own.
    switched: AtomicU64,
}

impl Meter {
    #[inline]
    pub(super) const fn new() -> Meter {
        Meter {
            began: Began(AtomicU64::new(0)),
            switched: AtomicU64::new(0),
        }
    }

    /// Forgets another platform thread's time.
    #[inline]
    pub(super) fn reset(&self) {
        self.began.reset();
        self.switched.store(0, Relaxed);
    }

    /// Ends the run of the thread with this account, or of none. The carrier calls this.
    fn switch(&self, account: Option<&AtomicU64>) {
        // Relaxed: the carrier's own.
        let (began, last) = (self.began.get(), self.switched.load(Relaxed));
        let now = time::now();
        let passed = now.saturating_sub(last);
        let time = match began != 0 && last != 0 && passed < SHORT_NS {
            true => began + passed,
            false => kernels(libc::CLOCK_THREAD_CPUTIME_ID).max(began),
        };
        self.switched.store(now, Relaxed); // Relaxed: the carrier's own.
        match account {
            Some(account) if began != 0 => self.began.end(account, time - began, time),
            _ => self.began.begin(time),
        }
    }
}

/// Notes that a thread, or none, leaves its carrier, which goes on with another or its own work.
pub(super) fn switched(carrier: &Carrier, leaving: Option<&Core>) {
    let Some(meter) = carrier.mounted().meter() else {
        return;
    };
    // SAFETY: the thread is mounted here, so it has its slot.
    let account = leaving
        .and_then(Core::slot)
        .map(|slot| unsafe { account(slot.tp()) });
    meter.switch(account);
}

/// Returns the account of a thread.
///
/// # Safety
/// `tp` is the thread pointer of a slot.
unsafe fn account<'a>(tp: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's contract; the memory of slots stays.
    unsafe { &*tls::place_of(&ACCOUNT, tp) }
}

/// Counts CPU time from now on.
fn count() {
    if recorder::count_cpu_time() {
        for carrying in carrier::carriers().filter(|carrying| carrying.busy) {
            let clock = clock_of(carrying.platform);
            carrying.meter.began.settle(|| kernels(clock));
        }
    }
}

/// Returns the nanoseconds of CPU time that the running virtual thread has used; `None` on a
/// platform thread. The first question begins the counting.
#[inline]
pub fn own() -> Option<u64> {
    current()?;
    count();
    let section = NoSuspend::new();
    let meter = carrier(&section)?.mounted().meter();
    ACCOUNT.with(|own| {
        let run = meter.and_then(|meter| meter.read(own, libc::CLOCK_THREAD_CPUTIME_ID));
        Some(run.unwrap_or_else(|| own.load(Relaxed))) // Relaxed: the running thread's own.
    })
}

impl Meter {
    /// Returns what a thread has used, its current run included, by the carrier's clock.
    fn read(&self, account: &AtomicU64, clock: libc::clockid_t) -> Option<u64> {
        self.began.settle(|| kernels(clock));
        self.began.read(account, || kernels(clock))
    }
}

/// Returns the nanoseconds of CPU time that a thread, which exists, has used.
pub fn of(thread: &Core) -> u64 {
    /// How often a run may end during the call. After that the current run is left out.
    const TRIES: u32 = 8;
    count();
    let Some(slot) = thread.slot() else { return 0 };
    // SAFETY: its slot.
    let account = unsafe { account(slot.tp()) };
    let place = || (thread.mounts(), thread.carrier_number());
    for _ in 0..TRIES {
        let before = place();
        let time = match before.1.and_then(carrying) {
            Some(entry) => entry.meter.read(account, clock_of(entry.platform)),
            None => Some(account.load(Relaxed)), // Relaxed: `carrier_number` acquires.
        };
        // Otherwise another run may have been counted.
        if let Some(time) = time
            && place() == before
        {
            return time;
        }
    }
    account.load(Relaxed) // Relaxed: what it has is the thread's.
}

/// Returns what a clock of the kernel shows, and at least 1. Leaves `errno` alone, which
/// [`sys::clock`] does not.
fn kernels(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: room for the time. A platform thread that has ended has no clock any more.
    let _ = unsafe { call!(libc::SYS_clock_gettime, clock, &raw mut time) };
    sys::nanos(&time).max(1)
}
