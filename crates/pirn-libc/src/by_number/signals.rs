//! Signals by number. The kernel's calls get the size of a set, which is eight bytes, and its
//! action has another layout than the C library's.
//!
//! A mask of the kernel's would be the carrier's: libunwind blocks all signals by `syscall`, and
//! then locks a mutex, at which the thread may go to another carrier.

use crate::signals::{alternative, masks, sigwait};
use crate::virtual_thread;
use core::ffi::c_long;
use pirn_rt::sched::preempt::SIGNAL;
use pirn_rt::sys::{self, SysResult, call};

/// Does what the system call does. Returns `None` if the call is the kernel's.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn call(number: c_long, a: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's contract: each function has that of its system call.
    unsafe {
        let result = match number {
            libc::SYS_rt_sigaction => rt_sigaction(a)?,
            libc::SYS_rt_sigprocmask => masks::by_number(a)?,
            _ => return waiting(number, a),
        };
        Some(sys::to_c(result) as c_long)
    }
}

/// Does that for those which are like libc's functions. Other sizes are the kernel's to refuse.
///
/// # Safety
/// As for the system call.
unsafe fn waiting(number: c_long, a: [usize; 6]) -> Option<c_long> {
    virtual_thread()?;
    // SAFETY: the caller's contract.
    let result = unsafe {
        match number {
            libc::SYS_sigaltstack => alternative::sigaltstack(a[0] as _, a[1] as _),
            libc::SYS_rt_sigpending if a[1] == SET => masks::sigpending(a[0] as _),
            libc::SYS_rt_sigsuspend if a[1] == SET => sigwait::sigsuspend(a[0] as _),
            libc::SYS_rt_sigtimedwait if a[3] == SET => {
                sigwait::sigtimedwait(a[0] as _, a[1] as _, a[2] as _)
            }
            libc::SYS_pause => sigwait::pause(),
            _ => return None,
        }
    };
    Some(result.into())
}

/// The size of the kernel's set of signals.
const SET: usize = size_of::<u64>();

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Calls `rt_sigaction` so that the signal of preemption is blocked in handlers. Its own action is
/// left to `sigaction`.
///
/// # Safety
/// As for the system call.
unsafe fn rt_sigaction([signal, new, old, size, ..]: [usize; 6]) -> Option<SysResult> {
    if new == 0 || size != SET {
        return None;
    }
    let word = |i: usize| sys::fetch_u64(new + i * size_of::<u64>());
    let fetched = (|| {
        Ok(KernelAction {
            handler: word(0)? as usize,
            flags: word(1)?,
            restorer: word(2)? as usize,
            mask: word(3)?,
        })
    })();
    let mut action = match fetched {
        Ok(action) => action,
        Err(e) => return Some(Err(e)),
    };
    if action.handler <= libc::SIG_IGN {
        return None;
    }
    action.mask |= 1 << (SIGNAL - 1);
    let place = &raw const action;
    // SAFETY: our copy of the action; the caller's contract for `old`.
    Some(unsafe { call!(libc::SYS_rt_sigaction, signal, place, old, size) })
}
