//! `time.h`, `sched.h`: sleeping and yielding.

pub(crate) mod clocks;

use crate::cancel::{self, Slept};
use crate::registry::interposed;
use crate::{simulated, virtual_thread};
use core::ffi::{c_int, c_uint};
use core::ptr;
use libc::{clockid_t, timespec};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::Nap;
use pirn_rt::sched::safepoint::Ran;
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_word::Interruptible;
use pirn_rt::{blocking, sched};

/// How long a thread sleeps before it looks at a clock of CPU time again. The kernel looks at these
/// at its ticks.
const SHORTEST_PAUSE_NS: u64 = 1_000_000;
const LONGEST_PAUSE_NS: u64 = 20_000_000;

interposed! {
    family "Sleeping and yielding" for Scaling;

    Parks by hand { clock_nanosleep, nanosleep, sleep }
    Parks as {
        fn usleep(micros: libc::useconds_t) -> c_int
            = nanosleep(&sys::timespec(u64::from(micros) * 1000), ptr::null_mut());
    }
    Own by hand { sched_yield }
    Parks alias { __nanosleep = nanosleep }
    // glibc 2.34 removed `pthread_yield` from its headers.
    Own alias { __sched_yield = sched_yield, pthread_yield = sched_yield }
}

/// `clock_nanosleep`, which `std::thread::sleep` calls. Returns an error number.
#[libc_fn]
pub unsafe fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    request: *const timespec,
    remaining: *mut timespec,
) -> c_int {
    let libcs = move || libcs!();
    let ours = move || Slept(sleep_by(clock, flags, request, remaining));
    cancel::point(|| Slept(libcs()), ours).0
}

/// # Safety
/// As for [`clock_nanosleep`].
unsafe fn sleep_by(
    clock: clockid_t,
    flags: c_int,
    request: *const timespec,
    remaining: *mut timespec,
) -> c_int {
    if virtual_thread().is_none() {
        // SAFETY: the caller's contract.
        let result = unsafe { call!(libc::SYS_clock_nanosleep, clock, flags, request, remaining) };
        return result.map_or_else(|e| e.0, |_| 0);
    }
    let request = match sys::fetch_timespec(request) {
        Ok(request) => request,
        Err(e) => return e.0,
    };
    if clock == libc::CLOCK_THREAD_CPUTIME_ID {
        return libc::EINVAL; // As in libc: it does not pass while its thread sleeps.
    }
    let has_timers = matches!(
        clock,
        libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME | libc::CLOCK_TAI
    );
    if !has_timers && !simulated::is_here() {
        return sleep_by_other(clock, flags, &request, remaining);
    }
    let nanos = sys::nanos(&request);
    let nanos = if flags & libc::TIMER_ABSTIME != 0 {
        nanos.saturating_sub(sys::clock(clock))
    } else {
        nanos
    };
    match nap(nanos) {
        None => 0,
        Some(left) => {
            if flags & libc::TIMER_ABSTIME == 0 && !remaining.is_null() {
                // SAFETY: the caller's contract: room for a timespec.
                unsafe { sys::store_timespec(remaining, sys::timespec(left)) };
            }
            libc::EINTR
        }
    }
}

/// Sleeps by a clock that the runtime's timers do not have, mostly one of CPU time: looks at it
/// again and again.
#[cold]
fn sleep_by_other(
    clock: clockid_t,
    flags: c_int,
    request: &timespec,
    remaining: *mut timespec,
) -> c_int {
    let (mut now, at_once) = (sys::timespec(0), sys::timespec(0));
    // The kernel says whether a thread may sleep by this clock. It does not know clocks of virtual
    // threads. SAFETY: a valid time.
    let asked = unsafe { call!(libc::SYS_clock_nanosleep, clock, 0, &raw const at_once, 0) };
    match asked {
        Err(error) if !clocks::is_anothers(clock) => return error.0,
        _ => {}
    }
    let mut read = || {
        // SAFETY: room for a time.
        match unsafe { clocks::read(clock, &raw mut now) } {
            0 => Ok(sys::nanos(&now)),
            _ => Err(sys::errno()),
        }
    };
    let relative = flags & libc::TIMER_ABSTIME == 0;
    let mut pause = SHORTEST_PAUSE_NS;
    let (mut begin, mut last) = (None, 0);
    loop {
        let now = match read() {
            Ok(now) => now,
            Err(error) => return error,
        };
        let begin = *begin.get_or_insert(if relative { now } else { 0 });
        let left = begin
            .saturating_add(sys::nanos(request))
            .saturating_sub(now);
        if left == 0 {
            return 0;
        }
        // A process uses several CPUs, or none.
        pause = match now == last {
            true => (2 * pause).min(LONGEST_PAUSE_NS),
            false => (left / 4).clamp(SHORTEST_PAUSE_NS, LONGEST_PAUSE_NS),
        };
        last = now;
        match blocking::nap_until(Deadline::after_nanos(pause), Interruptible::OnceInSleep) {
            Nap::Over | Nap::Signalled(Ran::Nothing) => {}
            Nap::Interrupted => return 0, // As in `nap`.
            Nap::Signalled(_) if relative && !remaining.is_null() => {
                // SAFETY: the caller's contract: room for a timespec.
                unsafe { sys::store_timespec(remaining, sys::timespec(left)) };
                return libc::EINTR;
            }
            Nap::Signalled(_) => return libc::EINTR,
        }
    }
}

/// Parks the running virtual thread for this many nanoseconds. Returns how many were left when a
/// signal's handler had run.
fn nap(nanos: u64) -> Option<u64> {
    if nanos == 0 {
        if let Some(thread) = virtual_thread() {
            sched::yield_now(thread);
        }
        return None;
    }
    let deadline = Deadline::after_nanos(nanos);
    loop {
        match blocking::nap_until(deadline, Interruptible::OnceInSleep) {
            Nap::Signalled(Ran::Nothing) => {}
            Nap::Signalled(_) => return Some(deadline.nanos().saturating_sub(sys::now())),
            // An interrupt ends the sleep early, once. Not with EINTR: `std` would go on sleeping.
            Nap::Over | Nap::Interrupted => return None,
        }
    }
}

#[libc_fn]
pub unsafe fn nanosleep(request: *const timespec, remaining: *mut timespec) -> c_int {
    // `CLOCK_REALTIME`, by whose units it counts, but not by its jumps.
    match clock_nanosleep(libc::CLOCK_MONOTONIC, 0, request, remaining) {
        0 => 0,
        e => sys::to_c(Err(Errno(e))) as c_int,
    }
}

/// Returns the seconds not slept, if a signal ended it.
#[libc_fn]
pub fn sleep(seconds: c_uint) -> c_uint {
    if virtual_thread().is_some() {
        let ours = move || Slept(nap(u64::from(seconds) * 1_000_000_000));
        // SAFETY: on a virtual thread, so libc's own function is not called; nothing to drop.
        let left = unsafe { cancel::point(ours, ours) }.0;
        return left.map_or(0, |left| ((left + 500_000_000) / 1_000_000_000) as c_uint);
    }
    let mut time = timespec {
        tv_sec: seconds.into(),
        tv_nsec: 0,
    };
    // SAFETY: a valid timespec, in and out.
    match unsafe { nanosleep(&time, &mut time) } {
        0 => 0,
        _ => (time.tv_sec + i64::from(time.tv_nsec >= 500_000_000)) as c_uint,
    }
}

#[libc_fn]
pub fn sched_yield() -> c_int {
    match virtual_thread() {
        Some(core) => sched::yield_now(core),
        None => sys::os_yield(),
    }
    0
}
