//! Virtual time: the clock of all that runs in the simulation. The threads outside, such as the
//! test harness, have the machine's.
//!
//! Each point and each reading of a clock takes some nanoseconds, so that a loop that waits for a
//! time sees it come. Other code takes no time. If no thread is runnable, the clock goes to the
//! next deadline.

use crate::run::is_inside;
use crate::{net, world};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use libc::{clockid_t, time_t, timespec, timeval};
use pirn_rt::{time, vthread};

/// The monotonic clock at the beginning of each run. No machine runs for 31 years, so the threads
/// of the machine take no deadline of the simulation for one that has passed.
pub(crate) const START: u64 = 1_000_000_000_000_000_000;
/// The calendar at the beginning of each run: 2030-01-01.
const CALENDAR: u64 = 1_893_456_000_000_000_000;
/// What one reading takes, in nanoseconds: about what the machine needs for a few of them.
const READING: u64 = 100;

// Relaxed, here and below: only what runs on the carrier reads or writes it.
static NOW: AtomicU64 = AtomicU64::new(START);
static END: AtomicU64 = AtomicU64::new(START);
/// The clock of the machine, as `pirn_rt::time` had it.
static MACHINES: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

type ReadClock = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

/// Returns the virtual time.
pub(crate) fn now() -> u64 {
    NOW.load(Relaxed)
}

/// Lets time pass.
pub(crate) fn pass(nanos: u64) {
    go_to(now().saturating_add(nanos));
}

/// Goes to a point in time, unless that has passed.
pub(crate) fn go_to(time: u64) {
    if time > now() {
        NOW.store(time, Relaxed);
        time::tick();
    }
}

/// Notes the time as that at which the run has ended.
pub(crate) fn stop() {
    END.store(now(), Relaxed);
}

/// Returns how much time has passed in the run that has ended.
pub(crate) fn passed() -> u64 {
    END.load(Relaxed) - START // Relaxed: the futex of the end comes between.
}

/// Begins a run.
pub(crate) fn reset() {
    NOW.store(START, Relaxed);
    time::tick();
}

/// Has each clock of the simulation's threads show virtual time from now on.
pub(crate) fn install() {
    time::now(); // Looks libc's function up.
    let machines = time::LIBCS_CLOCK.load(Relaxed);
    if machines != read as *mut c_void {
        MACHINES.store(machines, Relaxed);
        time::LIBCS_CLOCK.store(read as *mut c_void, Relaxed);
    }
}

/// `clock_gettime`.
unsafe extern "C" fn read(clock: clockid_t, to: *mut timespec) -> c_int {
    if clock < 0 || !is_inside() {
        // SAFETY: the function that was at the place of this one; the caller's contract.
        return unsafe { transmute::<*mut c_void, ReadClock>(MACHINES.load(Relaxed))(clock, to) };
    }
    if vthread::parkable().is_some() {
        NOW.store(now() + READING, Relaxed);
    }
    let nanos = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => calendar(),
        // As if the thread, and the process with it, had computed all the time.
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => now() - START,
        _ => now(),
    };
    // SAFETY: the caller's contract.
    unsafe { to.write(time::timespec(nanos)) };
    0
}

/// Returns the calendar of the calling thread's node.
fn calendar() -> u64 {
    (now() - START + CALENDAR).saturating_add_signed(net::skew(world::own_node()))
}

/// `time`: seconds of the calendar, of the clock that libc's function reads.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(to: *mut time_t) -> time_t {
    let seconds = (time::clock(libc::CLOCK_REALTIME_COARSE) / 1_000_000_000) as time_t;
    if !to.is_null() {
        // SAFETY: the caller's contract.
        unsafe { to.write(seconds) };
    }
    seconds
}

/// `gettimeofday`: the calendar. The time zone, which Linux does not keep, is left alone.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(to: *mut timeval, _zone: *mut c_void) -> c_int {
    let nanos = time::clock(libc::CLOCK_REALTIME);
    if !to.is_null() {
        let value = timeval {
            tv_sec: (nanos / 1_000_000_000) as time_t,
            tv_usec: (nanos / 1000 % 1_000_000) as libc::suseconds_t,
        };
        // SAFETY: the caller's contract.
        unsafe { to.write(value) };
    }
    0
}
