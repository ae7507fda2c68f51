//! Handlers of ours in the place of default actions, and signals that the kernel sends to a thread
//! for a call of the thread's own.
//!
//! Where the program has the default action in force, the kernel calls our handler for these
//! signals. A program that asks is told that the default action is in force. A program that ignores
//! such a signal, or has a handler of its own, is left alone.
//!
//! * `SIGQUIT`: the process writes its dump to standard error and goes on. A second signal within
//!   two seconds takes the default action, which ends the process, and so does any in the child of
//!   a fork, which has no virtual threads.
//! * `SIGPIPE`, `SIGXFSZ`: carriers do not block them. So the kernel delivers such a signal to the
//!   carrier, during the call that causes it, also if libc makes the call itself (stdio). It does
//!   not deliver a signal that the program ignores. The virtual thread decides what happens:
//!
//! ```text
//!   blocked by the thread   it is pending for the thread
//!   the default action      taken
//!   a handler               called where it came, as for faults: it cannot park
//! ```
//!
//! If a thread of the pool makes the call, the signal becomes pending for the virtual thread on
//! whose behalf it makes the call, and that thread finds it when the call has ended. Other threads
//! and processes can send these signals as well. If all platform threads block them, the kernel
//! gives them to a carrier, which sends them on to the first thread, for which they stay pending.

use crate::signals::{handler, information, masks, sending};
use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr;
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use libc::{SIGQUIT, siginfo_t};
use pirn_rt::no_suspend;
use pirn_rt::sanitizer;
use pirn_rt::sched::deferred;
use pirn_rt::sys::{self, call};
use pirn_rt::vthread;
use pirn_rt::vthread::signals::{RAISED, bit, caller};

/// The signals for which our handler stands in.
static STANDS_IN: AtomicU64 = AtomicU64::new(0);
/// The process that writes a dump at `SIGQUIT`; 0: none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// When `SIGQUIT` last came; 0: never.
static LAST: AtomicU64 = AtomicU64::new(0);
/// A second `SIGQUIT` that comes this soon ends the process.
const SOON_NS: u64 = 2_000_000_000;

/// Takes the place of the default actions of `SIGPIPE` and `SIGXFSZ`.
pub fn install() {
    take_place(libc::SIGPIPE);
    take_place(libc::SIGXFSZ);
}

/// Takes the place of the default action of `SIGQUIT`.
pub fn install_dump() {
    PROCESS.store(std::process::id(), Relaxed); // Relaxed: under the lock of the start.
    take_place(SIGQUIT);
}

/// Lets `SIGQUIT` write the dump of this process, the child of a fork, if our handler stands in for
/// the default action.
pub fn after_fork() {
    if is_shared(SIGQUIT) {
        PROCESS.store(std::process::id(), Relaxed); // Relaxed: under the lock of the start.
    }
}

fn take_place(signal: c_int) {
    if sanitizer::watches() {
        return; // A sanitizer handles these signals itself.
    }
    STANDS_IN.fetch_or(bit(signal), Relaxed); // Relaxed: under the lock of the start.
    let action = handler::kernels_action(signal);
    if action.sa_sigaction == libc::SIG_DFL {
        // SAFETY: a valid action, put in force again through our own definition.
        unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
    }
}

/// Returns whether our handler stands in for the default action of this signal.
pub(super) fn is_shared(signal: c_int) -> bool {
    STANDS_IN.load(Relaxed) & bit(signal) != 0 // Relaxed: no other data.
}

/// Puts our handler in the place of the default action.
pub(super) fn stand_in(signal: c_int, action: &mut libc::sigaction) {
    if is_shared(signal) && action.sa_sigaction == libc::SIG_DFL {
        action.sa_sigaction = on_default as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        *masks::bits(&mut action.sa_mask) = u64::MAX;
    }
}

/// Turns an action with our handler into the default action that it stands for.
pub(super) fn hide(action: &mut libc::sigaction) {
    if action.sa_sigaction == on_default as *const () as usize {
        // SAFETY: all zeros is a valid action, the default one.
        *action = unsafe { zeroed() };
    }
}

unsafe extern "C" fn on_default(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    if signal == SIGQUIT && is_for_a_dump() {
        deferred::request(deferred::DUMP);
        return;
    }
    // SAFETY: the kernel's own arguments.
    if !unsafe { keep(signal, info) } {
        take_default(signal);
    }
}

fn is_for_a_dump() -> bool {
    let now = sys::now();
    let last = LAST.swap(now, Relaxed); // Relaxed: a time, no other data.
    let again = last != 0 && now.saturating_sub(last) < SOON_NS;
    // Not by `runtime::has_forked`, which the child of a fork may not have been told yet.
    // Relaxed: no other data.
    !again && PROCESS.load(Relaxed) == std::process::id()
}

/// Makes the kernel take the default action, at once or when the signal is unblocked: if a handler
/// of ours calls this, when the handler returns.
pub(super) fn take_default(signal: c_int) {
    // SAFETY: all zeros is a valid action, the default one; no pointers of ours.
    unsafe {
        let default: libc::sigaction = zeroed();
        handler::real_sigaction(signal, &default, ptr::null_mut());
        let (process, thread) = (std::process::id(), sys::os_thread_id());
        let _ = call!(libc::SYS_tgkill, process, thread, signal);
    }
}

/// Keeps one of these signals for the virtual thread that it is for, or sends it on, if the
/// program's action must not be taken here. Returns whether it did. For handlers of signals.
///
/// # Safety
/// The information is the kernel's.
pub(super) unsafe fn keep(signal: c_int, info: *const siginfo_t) -> bool {
    let behalf = caller();
    if bit(signal) & RAISED == 0 || behalf.is_null() && !handler::carries() {
        return false;
    }
    let process = std::process::id();
    let action = handler::kernels_action(signal);
    // SAFETY: the caller's contract; a signal that a process has sent, or the kernel in the name of
    // the caller.
    let (info, sender) = unsafe { (&*info, (*info).si_pid().cast_unsigned()) };
    let own = info.si_code == libc::SI_USER && sender == process;
    let running = vthread::current();
    // SAFETY: it waits for its call, which this thread makes.
    let waits = || unsafe { behalf.as_ref() };
    match running.as_deref().or_else(waits).filter(|_| own) {
        // The runtime has written a line of its own, which caused the signal.
        Some(_) if running.is_some() && no_suspend::in_section() => {}
        Some(thread) => {
            let blocks = thread.signals.mask.load(SeqCst) & bit(signal) != 0;
            if running.is_some() && !blocks {
                return false;
            }
            if thread.signals.pending.load(SeqCst) & bit(signal) == 0 {
                information::put(thread, info, false);
                thread.signals.pending.fetch_or(bit(signal), SeqCst);
            }
        }
        None if sys::os_thread_id() == process => return false, // The first thread, lent.
        None => {
            let (first, info) = (process, sending::for_any_sender(info));
            let info = &raw const info;
            // SAFETY: an information, which the kernel copies.
            let _ = unsafe { call!(libc::SYS_rt_tgsigqueueinfo, process, first, signal, info) };
        }
    }
    handler::install_again(signal, &action);
    true
}
