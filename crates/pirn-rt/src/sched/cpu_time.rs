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
use crate::glibc::tls;
use crate::no_suspend::NoSuspend;
use crate::recorder;
use crate::sys::{self, call};
use crate::time;
use crate::vthread::{Core, current};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Below this, the time that a run has taken is its CPU time.
const SHORT_NS: u64 = 50_000;

thread_local! {
    /// The nanoseconds that the thread has used in all runs that it has ended.
    static ACCOUNT: AtomicU64 = const { AtomicU64::new(0) };
}

/// How much CPU time a carrier has used.
pub(super) struct Meter {
    /// The CPU time of the carrier at its last switch, when the running thread's run began; 0: not
    /// known.
    began: AtomicU64,
    /// The monotonic time of its last switch; 0: not known. The carrier's own.
    switched: AtomicU64,
}

impl Meter {
    #[inline]
    pub(super) const fn new() -> Meter {
        Meter {
            began: AtomicU64::new(0),
            switched: AtomicU64::new(0),
        }
    }

    /// Forgets another platform thread's time.
    #[inline]
    pub(super) fn reset(&self) {
        self.began.store(0, Relaxed); // Relaxed: no thread is mounted yet.
        self.switched.store(0, Relaxed);
    }

    /// Ends a run, and passes its CPU time to `charge`. The carrier calls this.
    fn switch(&self, charge: impl FnOnce(u64)) {
        // Relaxed: only `begin`, in another thread, writes besides the carrier, and only once.
        let (began, last) = (self.began.load(Relaxed), self.switched.load(Relaxed));
        let now = time::now();
        let passed = now.saturating_sub(last);
        let time = match began != 0 && last != 0 && passed < SHORT_NS {
            true => began + passed,
            false => kernels(libc::CLOCK_THREAD_CPUTIME_ID).max(began),
        };
        if began != 0 {
            charge(time - began);
        }
        self.switched.store(now, Relaxed); // Relaxed: the carrier's own.
        // Release: pairs with the Acquire in `of`, which then sees the time that has been charged.
        self.began.store(time, Release);
    }

    /// Lets the current run begin now, if its beginning is not known. `clock` is the carrier's.
    fn begin(&self, clock: libc::clockid_t) {
        // Relaxed: carries no other data.
        if self.began.load(Relaxed) == 0 {
            let time = kernels(clock);
            let _ = self.began.compare_exchange(0, time, Relaxed, Relaxed);
        }
    }
}

/// Notes that a thread, or none, leaves its carrier, which goes on with another or its own work.
pub(super) fn switched(carrier: &Carrier, leaving: Option<&Core>) {
    let Some(meter) = carrier.mounted().meter() else {
        return;
    };
    meter.switch(|time| {
        if let Some(slot) = leaving.and_then(Core::slot) {
            // SAFETY: the thread is mounted here, so it has its slot.
            let account = unsafe { account(slot.tp()) };
            // No read-modify-write: only the carrier that has it mounted writes it. Release: pairs
            // with the Acquire in `of`.
            account.store(account.load(Relaxed) + time, Release);
        }
    });
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
            carrying.meter.begin(clock_of(carrying.platform));
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
    let used = ACCOUNT.with(|own| own.load(Relaxed)); // Relaxed: the running thread's own.
    Some(used + meter.map_or(0, |meter| meter.running(libc::CLOCK_THREAD_CPUTIME_ID)))
}

impl Meter {
    /// Returns how long the current run is, by the carrier's clock.
    fn running(&self, clock: libc::clockid_t) -> u64 {
        self.begin(clock);
        // Acquire: pairs with the Release in `switch`.
        let began = self.began.load(Acquire);
        kernels(clock).saturating_sub(began)
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
    for _ in 0..TRIES {
        let mounts = thread.mounts();
        let used = account.load(Acquire); // Acquire: what is read below is not older.
        let entry = thread.carrier_number().and_then(carrying);
        let Some(entry) = entry else {
            return used;
        };
        let run = entry.meter.running(clock_of(entry.platform));
        if thread.mounts() == mounts && account.load(Relaxed) == used {
            return used + run;
        }
    }
    account.load(Relaxed)
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
