//! Waiting for signals: `sigwait` and its relatives take a signal, `sigsuspend` and `pause` wait
//! until a handler has run.
//!
//! A virtual thread waits for two kinds of signals at once. For its own it is
//! [summoned](pirn_rt::vthread::summons). Those sent to the process the kernel keeps, while all
//! platform threads block them; a descriptor (`signalfd`) says when there is one, and then this
//! thread takes it, if no other has.
//!
//! Where a signal arrives that main does not block, main gets it, as natively.
//!
//! All of them are cancellation points. One that has taken a signal returns it: the cancellation
//! is acted upon at the next point.

use crate::cancel::{self, Number};
use crate::registry::interposed;
use crate::signals::{delivery, masks, process_wide, sending};
use crate::virtual_thread;
use core::ffi::{CStr, c_int};
use core::ptr;
use core::sync::atomic::Ordering::SeqCst;
use libc::{siginfo_t, sigset_t, timespec};
use pirn_rt::blocking::fds;
use pirn_rt::blocking::fds::readiness::{self, Interest};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched::preempt;
use pirn_rt::sys::{self, Errno, SysResult};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::Current;
use pirn_rt::vthread::awaited::Awaited;
use pirn_rt::vthread::signals::{NEVER_BLOCKED, SYNCHRONOUS, bit};

interposed! {
    family "Waiting for signals" for Correctness;

    Parks by hand { sigwait, sigwaitinfo, sigtimedwait, sigsuspend, pause, __xpg_sigpause }
    Parks by hand { __sigpause }
    Parks as {
        fn __sigsuspend(mask: *const sigset_t) -> c_int = sigsuspend(mask);
        /// BSD's: its argument is a mask.
        fn sigpause(mask: c_int) -> c_int = __sigpause(mask, 0);
    }
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));

/// Returns the kernel's part of a set; 0 for null.
///
/// # Safety
/// A set, or null.
unsafe fn bits(set: *const sigset_t) -> u64 {
    // SAFETY: the caller's contract; the C library's set begins with the kernel's.
    unsafe { set.cast::<u64>().as_ref().copied().unwrap_or(0) }
}

/// A descriptor that is readable while a signal is pending for the process.
struct Arrivals(c_int);

impl Arrivals {
    fn of(set: u64) -> Result<Arrivals, Errno> {
        let fd = process_wide::descriptor(set)?;
        fds::created(fd);
        Ok(Arrivals(fd))
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        let _ = fds::close(self.0);
    }
}

/// Repeats `attempt` while it returns `EAGAIN`; in between parks until a signal of `set` arrives,
/// for the thread or the process.
fn park_until(
    name: &'static CStr,
    set: u64,
    deadline: Deadline,
    attempt: impl FnMut() -> SysResult,
) -> SysResult {
    let arrivals = Arrivals::of(set)?;
    let awaited = Awaited::call(name);
    readiness::blocking_for(
        |_, _| awaited,
        arrivals.0,
        Interest::Read,
        |_| deadline,
        attempt,
    )
}

/// Takes a signal of a set. `EAGAIN`: the deadline came first.
fn take(
    name: &'static CStr,
    thread: Current,
    set: u64,
    deadline: Deadline,
) -> Result<siginfo_t, Errno> {
    let begun = delivery::begun();
    let mut taken = None;
    thread.signals.awaited.store(set, SeqCst);
    let attempt = || {
        let own = thread.signals.pending.load(SeqCst) & set;
        taken = match own {
            0 => process_wide::take(set & !SYNCHRONOUS),
            _ => sending::take(&thread, own.trailing_zeros() as c_int + 1),
        };
        match taken {
            Some(_) => Ok(0),
            // Whatever `SA_RESTART` says.
            None if delivery::begun() != begun => Err(Errno(libc::EINTR)),
            None => EAGAIN,
        }
    };
    let result = park_until(name, set & !SYNCHRONOUS, deadline, attempt);
    thread.signals.awaited.store(0, SeqCst);
    // One that came just now, and is not blocked.
    delivery::at_once();
    match (taken, result) {
        (Some(info), _) => Ok(info),
        (None, Err(e)) => Err(e),
        (None, Ok(_)) => Err(Errno(libc::EINTR)),
    }
}

/// Takes a signal, and returns its number.
///
/// # Safety
/// As for `sigtimedwait`.
unsafe fn take_info(
    name: &'static CStr,
    thread: Current,
    set: *const sigset_t,
    info: *mut siginfo_t,
    deadline: Deadline,
) -> SysResult {
    // SAFETY: the caller's contract.
    let taken = take(name, thread, unsafe { bits(set) }, deadline)?;
    if !info.is_null() {
        // SAFETY: the caller's contract.
        unsafe { info.write(taken) };
    }
    Ok(taken.si_signo as usize)
}

/// `sigtimedwait`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigtimedwait(
    set: *const sigset_t,
    info: *mut siginfo_t,
    timeout: *const timespec,
) -> c_int {
    let Some(thread) = virtual_thread() else {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(
                unwinding fn sigtimedwait(set: *const sigset_t, info: *mut siginfo_t, timeout: *const timespec) -> c_int
            )
        };
    };
    let deadline = match sys::fetch_timeout(timeout) {
        Ok(timeout) => Deadline::after_timeout(timeout),
        Err(e) => return sys::to_c(Err(e)) as c_int,
    };
    let ours = move || {
        // SAFETY: the caller's contract.
        sys::to_c(unsafe { take_info(c"sigtimedwait", thread, set, info, deadline) }) as c_int
    };
    // SAFETY: nothing to drop.
    unsafe { cancel::point(ours, ours) }
}

/// `sigwaitinfo`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { sigtimedwait(set, info, ptr::null()) }
}

/// `sigwait`. Returns an error number; never `EINTR`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int {
    let Some(thread) = virtual_thread() else {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(unwinding fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int)
        };
    };
    let once = move || {
        let name = c"sigwait";
        // SAFETY: the caller's contract, here and below.
        match unsafe { take_info(name, thread, set, ptr::null_mut(), Deadline::NEVER) } {
            Ok(number) => {
                // SAFETY: as above.
                unsafe { *signal = number as c_int };
                Number(0)
            }
            Err(e) => Number(e.0),
        }
    };
    loop {
        // SAFETY: nothing to drop.
        match unsafe { cancel::point(once, once) } {
            Number(libc::EINTR) => {}
            Number(number) => return number,
        }
    }
}

/// Waits, with this mask, until a handler has run on the thread.
///
/// While it waits all signals are blocked, and those that the mask lets through are awaited: a
/// handler that ran in front of the wait would otherwise not end it.
fn suspend(name: &'static CStr, thread: Current, mask: u64) -> SysResult {
    let begun = delivery::begun();
    let signals = &thread.signals;
    let set = !mask & !NEVER_BLOCKED;
    let of_process = set & !SYNCHRONOUS & !bit(preempt::SIGNAL);
    let before = signals.mask.swap(u64::MAX, SeqCst);
    let attempt = || match signals.pending.load(SeqCst) & set {
        0 => match process_wide::take(of_process) {
            Some(info) => sending::post(&thread, &info).map(|()| 0),
            None => EAGAIN,
        },
        _ => Ok(0),
    };
    let mut result = Ok(0);
    while result.is_ok() && delivery::begun() == begun {
        signals.mask.store(u64::MAX, SeqCst);
        signals.awaited.store(set, SeqCst);
        result = park_until(name, of_process, Deadline::NEVER, attempt);
        signals.awaited.store(0, SeqCst);
        // Runs the handlers; none if the signal is ignored.
        masks::exchange(thread, mask);
    }
    masks::exchange(thread, before);
    result.and(Err(Errno(libc::EINTR)))
}

/// Does the same for C: a cancellation point.
///
/// # Safety
/// As for [`cancel::point`].
unsafe fn suspend_at_a_point(name: &'static CStr, thread: Current, mask: u64) -> c_int {
    let ours = move || sys::to_c(suspend(name, thread, mask)) as c_int;
    // SAFETY: the caller's contract.
    unsafe { cancel::point(ours, ours) }
}

/// `sigsuspend`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigsuspend(mask: *const sigset_t) -> c_int {
    let Some(thread) = virtual_thread() else {
        // SAFETY: the caller's contract.
        return unsafe { real!(unwinding fn sigsuspend(mask: *const sigset_t) -> c_int) };
    };
    // SAFETY: as above; nothing to drop.
    unsafe { suspend_at_a_point(c"sigsuspend", thread, bits(mask)) }
}

/// `pause`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pause() -> c_int {
    match virtual_thread() {
        Some(thread) => {
            let mask = thread.signals.mask.load(SeqCst);
            // SAFETY: nothing to drop.
            unsafe { suspend_at_a_point(c"pause", thread, mask) }
        }
        // SAFETY: no arguments.
        None => unsafe { real!(unwinding fn pause() -> c_int) },
    }
}

/// `__sigpause`: with a mask (BSD), or without one signal of the present one (System V).
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __sigpause(mask_or_signal: c_int, is_signal: c_int) -> c_int {
    let Some(thread) = virtual_thread() else {
        // SAFETY: no pointers.
        return unsafe {
            real!(unwinding fn __sigpause(mask_or_signal: c_int, is_signal: c_int) -> c_int)
        };
    };
    let mask = match is_signal {
        0 => mask_or_signal as u32 as u64,
        _ if !(1..=64).contains(&mask_or_signal) => {
            return sys::to_c(Err(Errno(libc::EINVAL))) as c_int;
        }
        _ => thread.signals.mask.load(SeqCst) & !bit(mask_or_signal),
    };
    // SAFETY: nothing to drop.
    unsafe { suspend_at_a_point(c"sigpause", thread, mask) }
}

/// `__xpg_sigpause`: System V's `sigpause`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __xpg_sigpause(signal: c_int) -> c_int {
    // SAFETY: no pointers.
    unsafe { __sigpause(signal, 1) }
}
