//! Clocks of CPU time: each virtual thread has its own.
//!
//! [`cpu_time`] counts what the clock shows. A program gets the number of a clock from
//! `pthread_getcpuclockid`:
//!
//! ```text
//!   CLOCK_THREAD_CPUTIME_ID    the caller's
//!   below 0                    the kernel's: of a platform thread, a process, a device
//!   0 to 15                    the kernel's
//!   from 2^22 on               the virtual thread's with this id
//! ```
//!
//! The kernel knows no clock with such a number, so what is not defined here refuses it.
//!
//! `clock_gettime` is called more often than most of what we define, and nearly always for one of
//! the first three clocks: these go on to libc's own with a compare and a jump.

use crate::identity::{self, is_virtual, slot_of};
use crate::posix;
use crate::registry::interposed;
use crate::simulated;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use libc::{clockid_t, pid_t, pthread_t, rusage, timespec};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch::forward_below;
use pirn_rt::glibc::symbols::real;
use pirn_rt::glibc::tls;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched::cpu_time;
use pirn_rt::stack::Slot;
use pirn_rt::sys::{self, Errno, SysResult, call, to_c};
use pirn_rt::time::{self, LIBCS_CLOCK, libcs_clock};
use pirn_rt::vthread::{self, Core};

interposed! {
    family "CPU time of threads" for Scaling,
        cannot "count CPU time of virtual threads before the program first asks for any, or what \
            the pool has used for one; a timer (`timer_create`) of `CLOCK_THREAD_CPUTIME_ID` is \
            the carrier's";

    Own by hand { clock_gettime, clock_getres, getrusage, pthread_getcpuclockid }
}

/// The clocks below this number are never a virtual thread's.
const FIRST: clockid_t = libc::CLOCK_THREAD_CPUTIME_ID;
const _: () = assert!(FIRST == 3, "as in the definition of `clock_gettime`");

forward_below! {
    /// `clock_gettime`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    clock_gettime(below 3) => LIBCS_CLOCK, else read
}

/// Whose a clock is.
enum Whose {
    /// The running virtual thread's.
    Own,
    /// Another thread's: the one with this id.
    Anothers(Slot, pid_t),
    Kernels,
}

/// Returns whose a clock is.
///
/// # Errors
/// `EINVAL`: it belonged to a virtual thread that does not exist any more.
fn find(clock: clockid_t) -> Result<Whose, Errno> {
    if clock == libc::CLOCK_THREAD_CPUTIME_ID {
        return Ok(match vthread::current() {
            Some(_) => Whose::Own,
            None => Whose::Kernels,
        });
    }
    if clock < FIRST {
        return Ok(Whose::Kernels);
    }
    match identity::find(clock).map_err(|_| Errno(libc::EINVAL))? {
        // SAFETY: no arguments.
        identity::Whose::Virtual(thread) if thread == unsafe { libc::pthread_self() } => {
            Ok(Whose::Own)
        }
        identity::Whose::Virtual(thread) => match slot_of(thread) {
            Some(slot) => Ok(Whose::Anothers(slot, clock)),
            None => Err(Errno(libc::EINVAL)),
        },
        identity::Whose::Kernels => Ok(Whose::Kernels),
    }
}

/// Returns whether a clock belongs to another virtual thread than the running one.
pub(crate) fn is_anothers(clock: clockid_t) -> bool {
    matches!(find(clock), Ok(Whose::Anothers(..)))
}

/// `clock_gettime`, of any clock.
///
/// # Safety
/// As for libc's function.
pub(crate) unsafe extern "C" fn read(clock: clockid_t, place: *mut timespec) -> c_int {
    let nanos = match find(clock) {
        // SAFETY: the caller's contract.
        Ok(Whose::Kernels) => return unsafe { libcs_clock(clock, place) },
        // SAFETY: the caller's contract.
        Ok(_) if simulated::is_here() => return unsafe { libcs_clock(FIRST, place) },
        Ok(Whose::Own) => cpu_time::own(),
        Ok(Whose::Anothers(slot, id)) => {
            let _section = NoSuspend::new(); // No handler of this thread visits one meanwhile.
            identity::visit(slot, Some(id), cpu_time::of)
        }
        Err(e) => return to_c(Err(e)) as c_int,
    };
    let Some(nanos) = nanos else {
        return to_c(Err(Errno(libc::EINVAL))) as c_int;
    };
    // SAFETY: the caller's contract.
    unsafe { sys::store_timespec(place, time::timespec(nanos)) };
    0
}

#[libc_fn]
pub unsafe fn clock_getres(clock: clockid_t, place: *mut timespec) -> c_int {
    // The resolution of all clocks of CPU time is the same.
    let clock = match find(clock) {
        Ok(Whose::Kernels) => clock,
        Ok(_) => libc::CLOCK_THREAD_CPUTIME_ID,
        Err(e) => return to_c(Err(e)) as c_int,
    };
    real!(fn clock_getres(clock: clockid_t, place: *mut timespec) -> c_int)
}

/// For a virtual thread (`RUSAGE_THREAD`), tells its CPU time, all of it as the program's own, and
/// how often it has been mounted.
#[libc_fn]
pub unsafe fn getrusage(who: c_int, usage: *mut rusage) -> c_int {
    if let Some(result) = simulated::call(libc::SYS_getrusage, [who as usize, usage.addr()]) {
        return to_c(result) as c_int;
    }
    let result = match vthread::current() {
        Some(core) if who == libc::RUSAGE_THREAD => own_usage(&core).map(|own| {
            // SAFETY: room for it.
            unsafe { usage.write(own) };
            0
        }),
        // SAFETY: the kernel checks the place.
        _ => unsafe { call!(libc::SYS_getrusage, who, usage) },
    };
    to_c(result) as c_int
}

/// Returns what the running virtual thread has used, as far as it is known.
fn own_usage(core: &Core) -> Result<rusage, Errno> {
    // SAFETY: numbers. The largest amount of memory is the process's for every thread.
    let (mut own, mut process) = unsafe {
        let own = MaybeUninit::<rusage>::zeroed().assume_init();
        (own, own)
    };
    // SAFETY: room for the answer.
    unsafe { call!(libc::SYS_getrusage, libc::RUSAGE_SELF, &raw mut process)? };
    let time = time::timespec(cpu_time::own().unwrap_or(0));
    own.ru_utime = libc::timeval {
        tv_sec: time.tv_sec,
        tv_usec: time.tv_nsec / 1000,
    };
    own.ru_maxrss = process.ru_maxrss;
    own.ru_nvcsw = core.mounts().into();
    Ok(own)
}

/// Does not begin the counting of time: some programs call this for each thread that they make, and
/// read none of the clocks.
#[libc_fn]
pub unsafe fn pthread_getcpuclockid(thread: pthread_t, clock: *mut clockid_t) -> c_int {
    if !is_virtual(thread) {
        return libcs!();
    }
    match id(thread) {
        Ok(id) => {
            clock.write(id as clockid_t);
            0
        }
        Err(e) => e.0,
    }
}

/// Returns the id of a virtual thread.
///
/// # Errors
/// `ESRCH`: it has ended.
fn id(thread: pthread_t) -> SysResult {
    let place = (thread as usize + tls::template().tid_offset) as *mut u32;
    // SAFETY: the TCB of a slot, whose memory stays. Relaxed: no other data.
    let id = unsafe { AtomicU32::from_ptr(place) }.load(Relaxed);
    let has_ended = posix::find(thread).is_some_and(|record| record.has_ended());
    match id != 0 && !has_ended {
        true => Ok(id as usize),
        false => Err(Errno(libc::ESRCH)),
    }
}
