//! Waiting for signals: `sigwait` and its relatives take a signal, `sigsuspend` and `pause` wait
//! until a handler has run.
//!
//! A virtual thread notes in its record which signals it awaits, and is told of one as if it did
//! not block it ([safe points](pirn_rt::sched::safepoint)). While all platform threads block a
//! signal that is sent to the process, the kernel keeps it: the thread takes it if it is there
//! already, and is [given](process_wide) it if it comes later. If main does not block the signal,
//! main gets it, as natively.
//!
//! All these functions are cancellation points. A call that has taken a signal returns it, and the
//! thread acts on the cancellation at its next point.

use crate::cancel::{self, Number};
use crate::registry::interposed;
use crate::signals::{delivery, masks, process_wide, sending};
use crate::virtual_thread;
use core::ffi::{CStr, c_int};
use core::ptr;
use core::sync::atomic::Ordering::SeqCst;
use libc::{siginfo_t, sigset_t, timespec};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::{self, Nap};
use pirn_rt::sys::{self, Errno, SysResult};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::Current;
use pirn_rt::vthread::signals::{SYNCHRONOUS, bit};
use pirn_rt::vthread::wait_reason::WaitReason;
use pirn_rt::vthread::wait_word::Interruptible;

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

/// Repeats `attempt` while it returns `EAGAIN`; in between parks until the thread is told of a
/// signal.
fn park_until(
    name: &'static CStr,
    deadline: Deadline,
    mut attempt: impl FnMut() -> SysResult,
) -> SysResult {
    let mut is_over = false;
    loop {
        match attempt() {
            EAGAIN if !is_over => {}
            result => return result,
        }
        match blocking::pause_until(WaitReason::call(name), deadline, Interruptible::Always) {
            Nap::Over => is_over = true,
            Nap::Interrupted => return Err(blocking::INTERRUPTED),
            Nap::Signalled(_) => {}
        }
    }
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
    let mut attempt = || {
        let own = thread.signals.pending.load(SeqCst) & set;
        let own = (own != 0)
            .then(|| sending::take(&thread, own.trailing_zeros() as c_int + 1))
            .flatten();
        // Also if the thread's own signal was given back to the process meanwhile.
        match own.map_or_else(|| process_wide::take(set & !SYNCHRONOUS), Ok) {
            Ok(info) => {
                taken = Some(info);
                Ok(0)
            }
            // Also after a handler with `SA_RESTART`.
            Err(_) if delivery::begun() != begun => Err(Errno(libc::EINTR)),
            Err(error) => Err(error),
        }
    };
    thread.signals.awaited.store(set, SeqCst);
    process_wide::watch();
    let mut result = park_until(name, deadline, &mut attempt);
    thread.signals.awaited.store(0, SeqCst);
    if result.is_err() {
        result = attempt().or(result); // A signal may have been handed over meanwhile.
    }
    // Delivers a signal that came just now, and is not blocked.
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
    let taken = take(
        name,
        thread,
        unsafe { masks::read(set) }.unwrap_or(0),
        deadline,
    )?;
    if !info.is_null() {
        // SAFETY: the caller's contract.
        unsafe { info.write(taken) };
    }
    Ok(taken.si_signo as usize)
}

#[libc_fn]
pub unsafe fn sigtimedwait(
    set: *const sigset_t,
    info: *mut siginfo_t,
    timeout: *const timespec,
) -> c_int {
    let Some(thread) = virtual_thread() else {
        return libcs!();
    };
    let deadline = match sys::fetch_timeout(timeout) {
        Ok(timeout) => Deadline::after_timeout(timeout),
        Err(e) => return sys::to_c(Err(e)) as c_int,
    };
    let ours = move || sys::to_c(take_info(c"sigtimedwait", thread, set, info, deadline)) as c_int;
    // SAFETY: nothing to drop.
    unsafe { cancel::point(ours, ours) }
}

#[libc_fn]
pub unsafe fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    sigtimedwait(set, info, ptr::null())
}

/// Returns an error number; never `EINTR`.
#[libc_fn]
pub unsafe fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int {
    let Some(thread) = virtual_thread() else {
        return libcs!();
    };
    let once = move || {
        let name = c"sigwait";
        match take_info(name, thread, set, ptr::null_mut(), Deadline::NEVER) {
            Ok(number) => {
                *signal = number as c_int;
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
fn suspend(name: &'static CStr, thread: Current, mask: u64) -> SysResult {
    let is_awaited = || match thread.signals.any_awaited() {
        true => Err(Errno(libc::EINTR)),
        false => EAGAIN,
    };
    masks::with(thread, mask, None, |_| {
        park_until(name, Deadline::NEVER, is_awaited)
    })
}

/// Does what [`suspend`] does for a function of C, as a cancellation point.
///
/// # Safety
/// As for [`cancel::point`].
unsafe fn suspend_at_a_point(name: &'static CStr, thread: Current, mask: u64) -> c_int {
    let ours = move || sys::to_c(suspend(name, thread, mask)) as c_int;
    // SAFETY: the caller's contract.
    unsafe { cancel::point(ours, ours) }
}

#[libc_fn]
pub unsafe fn sigsuspend(mask: *const sigset_t) -> c_int {
    let Some(thread) = virtual_thread() else {
        return libcs!();
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe { suspend_at_a_point(c"sigsuspend", thread, masks::read(mask).unwrap_or(0)) }
}

#[libc_fn]
pub fn pause() -> c_int {
    match virtual_thread() {
        Some(thread) => {
            let mask = thread.signals.mask.load(SeqCst);
            // SAFETY: nothing to drop.
            unsafe { suspend_at_a_point(c"pause", thread, mask) }
        }
        // SAFETY: no arguments.
        None => unsafe { libcs!() },
    }
}

/// With a mask (BSD), or without one signal of the present one (System V).
#[libc_fn]
pub unsafe fn __sigpause(mask_or_signal: c_int, is_signal: c_int) -> c_int {
    let Some(thread) = virtual_thread() else {
        // SAFETY: no pointers.
        return unsafe { libcs!() };
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

/// System V's `sigpause`.
#[libc_fn]
pub unsafe fn __xpg_sigpause(signal: c_int) -> c_int {
    // SAFETY: no pointers.
    unsafe { __sigpause(signal, 1) }
}
