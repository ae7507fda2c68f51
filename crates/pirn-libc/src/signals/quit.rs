//! `SIGQUIT`, which makes the process write its dump to standard error and go on.
//!
//! Only in place of the default action, which ends the process: a process that ignores the signal,
//! or has a handler of its own, is left alone, also if it installs that later. A program that asks
//! is told that the default action is in force. A second signal within two seconds takes the
//! default action, and so does any in the child of a fork, which has no virtual threads.

use crate::signals::{handler, urgent};
use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use libc::{SIGQUIT, siginfo_t};
use pirn_rt::sanitizer;
use pirn_rt::sched::errands;
use pirn_rt::sys::{self, call};

/// A second signal that comes this soon ends the process.
const SOON_NS: u64 = 2_000_000_000;

/// The process in which our handler takes the place of the default action; 0: none.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// When the signal last came; 0: never.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Takes the place of the default action, if that is in force.
pub fn install() {
    if sanitizer::watches() {
        return; // Their own handling of signals is left alone.
    }
    // SAFETY: all zeros is a valid action, which the program's is read into.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        let asked = handler::real_sigaction(SIGQUIT, core::ptr::null(), &mut action);
        if asked == 0 && action.sa_sigaction == libc::SIG_DFL {
            PROCESS.store(libc::getpid(), Relaxed); // Relaxed: under the lock of the start.
            // Again, through our own definition, which puts the handler in its place.
            libc::sigaction(SIGQUIT, &action, null_mut());
        }
    }
}

/// Takes the place of the default action in the child of a fork, if it does in the parent.
pub fn after_fork() {
    if PROCESS.load(Relaxed) != 0 {
        // SAFETY: no arguments.
        PROCESS.store(unsafe { libc::getpid() }, Relaxed); // Relaxed: as above.
    }
}

/// Returns whether the default action of this signal is ours.
pub(super) fn is_shared(signal: c_int) -> bool {
    signal == SIGQUIT && PROCESS.load(Relaxed) != 0 // Relaxed: complete in itself.
}

/// Puts our handler in the place of the default action.
pub(super) fn stand_in(signal: c_int, action: &mut libc::sigaction) {
    if is_shared(signal) && action.sa_sigaction == libc::SIG_DFL {
        action.sa_sigaction = address();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        *urgent::bits(&mut action.sa_mask) = u64::MAX;
    }
}

/// Turns an action with our handler into the default action that it stands for.
pub(super) fn hide(action: &mut libc::sigaction) {
    if action.sa_sigaction == address() {
        // SAFETY: all zeros is a valid action, the default one.
        *action = unsafe { zeroed() };
    }
}

fn address() -> usize {
    on_signal as *const () as usize
}

/// Has the dump written, or ends the process.
unsafe extern "C" fn on_signal(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    let now = sys::now();
    let last = LAST.swap(now, Relaxed); // Relaxed: a time, complete in itself.
    let again = last != 0 && now.saturating_sub(last) < SOON_NS;
    // Not by `runtime::has_forked`, which the child of a fork may not have been told yet.
    // SAFETY: no arguments.
    let forked = PROCESS.load(Relaxed) != unsafe { libc::getpid() }; // Relaxed: as above.
    if again || forked {
        return take_default();
    }
    errands::want(errands::DUMP);
}

/// Takes the default action, when the handler that calls this returns: until then the signal is
/// blocked.
fn take_default() {
    // SAFETY: all zeros is a valid action, the default one; the calls have no pointers of ours.
    unsafe {
        let default: libc::sigaction = zeroed();
        handler::real_sigaction(SIGQUIT, &default, null_mut());
        let thread = call!(libc::SYS_gettid).unwrap_or(0);
        let _ = call!(libc::SYS_tgkill, libc::getpid(), thread, SIGQUIT);
    }
}
