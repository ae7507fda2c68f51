//! Putting off a handler of the program that the kernel calls on a platform thread, while that
//! thread is in a section of the runtime (see [`mark`]).
//!
//! ```text
//!   in the section      signal: our handler sends it to this thread again, and returns
//!                       with all signals blocked
//!   end of the section  unblocks them: the kernel calls the program's handler, with the
//!                       stack, mask and information that it would have had
//! ```
//!
//! Not for faults, which must be handled where they happen, and whose signals are therefore never
//! blocked; nor on a carrier, which blocks all others, and may leave a section by a switch.

use crate::signals::{handler, sending};
use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr;
use libc::siginfo_t;
use pirn_rt::arch::Interruption;
use pirn_rt::mark::{self, Raised};
use pirn_rt::sys::{self, call};
use pirn_rt::vthread;
use pirn_rt::vthread::signals::{OTHERS, bit};

/// Puts a signal off if its handler must not run where the signal has come. Returns whether it did.
///
/// # Safety
/// The arguments of a handler that is running.
pub(crate) unsafe fn put_off(signal: c_int, info: *const siginfo_t, context: *mut c_void) -> bool {
    if !mark::in_section() || bit(signal) & OTHERS == 0 || context.is_null() || carries() {
        return false;
    }
    let action = kernels_action(signal);
    let plain = sending::plain(signal);
    let info = match action.sa_flags & libc::SA_SIGINFO {
        0 => &raw const plain, // The kernel has written none.
        _ => info,
    };
    let before = sys::blocked_signals();
    sys::block_only(before | OTHERS);
    let (process, thread) = (std::process::id(), sys::os_thread_id());
    // SAFETY: the kernel's own information, which it accepts from the process that it is for.
    let sent = unsafe { call!(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info) };
    if sent.is_err() {
        sys::block_only(before);
        return false; // No room for one more pending signal.
    }
    install_again(signal, &action);
    // SAFETY: the caller's contract.
    let mut place = unsafe { Interruption::new(context) };
    mark::put_off(place.blocked());
    place.block_only(place.blocked() | OTHERS);
    true
}

/// Returns the action that the kernel knows.
pub(super) fn kernels_action(signal: c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid action, which libc writes.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        handler::real_sigaction(signal, ptr::null(), &mut action);
        action
    }
}

/// Puts a handler in force again that the kernel has forgotten when it called it (`SA_RESETHAND`):
/// of the action it forgets nothing else.
pub(super) fn install_again(signal: c_int, action: &libc::sigaction) {
    let mut action = *action;
    if action.sa_sigaction == libc::SIG_DFL && action.sa_flags & libc::SA_RESETHAND != 0 {
        action.sa_sigaction = handler::dispatcher();
        // SAFETY: a valid action, which was in force until now.
        unsafe { handler::real_sigaction(signal, &action, ptr::null_mut()) };
    }
}

/// Returns whether the running platform thread carries virtual threads just now.
pub(super) fn carries() -> bool {
    vthread::carrier(&Raised::new()).is_some()
}
