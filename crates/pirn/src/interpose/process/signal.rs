//! `signal.h`: sending signals to threads. Waiting for them is in [`sigwait`](super::sigwait).
//!
//! The kernel knows OS threads only, not virtual threads. So:
//!
//! * A handler runs on whatever its OS thread is running. That may be a virtual thread, with that
//!   thread's thread-locals and `errno`, and on its stack unless the handler was installed with
//!   `SA_ONSTACK`: the alternative stack belongs to the carrier, and `sigaltstack` on a virtual
//!   thread changes the carrier's, which a program should not do.
//! * `raise`, and `pthread_kill` and `pthread_sigqueue` to the calling thread itself, run the
//!   handler at once, on the calling virtual thread. (glibc's `raise` asks the kernel for the
//!   thread's id and works unchanged.)
//! * A signal to *another* virtual thread is sent to the process: that thread may not be mounted,
//!   so there is no OS thread to send it to. The handler runs wherever the kernel decides. Signal 0
//!   only asks whether the thread exists.
//! * `pthread_sigmask` and `sigprocmask` change the carrier's mask: a virtual thread that blocks
//!   signals, parks, and unblocks them may do the latter on another carrier. Blocking and
//!   unblocking around a piece of code that does not park (`std` and glibc do so around `fork` and
//!   `posix_spawn`) works. To block signals everywhere, block them in `main` before the first
//!   virtual thread: the carriers inherit the mask.
//! * A program may replace the handler for `SIGSEGV` and `SIGBUS` that names the virtual thread
//!   whose stack overflowed; it then loses the message, unless its handler calls the earlier one.
//! * A handler is never parked: see [`handler`](super::handler).
//! * `sem_post`, a wake of a futex and `unpark` are safe in a handler: the thread is woken by the
//!   next carrier that looks for events.

use crate::glibc::symbols::real;
use crate::interpose::registry::interposed;
use crate::interpose::thread::slot_of;
use crate::runtime;
use crate::sys::{self, SignalInfo, SysResult, call};
use core::ffi::c_int;
use libc::{pthread_t, sigval};

interposed! {
    family "Signals to threads" for Correctness,
        cannot "deliver a signal to another virtual thread: it goes to the process";

    Own by hand { pthread_kill, pthread_sigqueue }
}

/// A virtual thread as the target of a signal.
enum Target {
    Oneself,
    Another,
}

/// Returns the target, if it is a virtual thread.
fn target(thread: pthread_t) -> Option<Target> {
    if !runtime::is_started() || slot_of(thread).is_none() {
        return None;
    }
    // SAFETY: no arguments.
    Some(if thread == unsafe { libc::pthread_self() } {
        Target::Oneself
    } else {
        Target::Another
    })
}

/// Returns an error number, as pthread functions do.
fn to_c(result: SysResult) -> c_int {
    result.map_or_else(|e| e.0, |_| 0)
}

/// `pthread_kill`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int {
    // SAFETY: no pointers; libc's function has the caller's contract.
    unsafe {
        match target(thread) {
            None => real!(fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int),
            Some(Target::Oneself) => to_c(call!(
                libc::SYS_tgkill,
                libc::getpid(),
                sys::os_thread_id(),
                signal
            )),
            Some(Target::Another) => to_c(call!(libc::SYS_kill, libc::getpid(), signal)),
        }
    }
}

/// `pthread_sigqueue`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigqueue(
    thread: pthread_t,
    signal: c_int,
    value: sigval,
) -> c_int {
    let Some(target) = target(thread) else {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(fn pthread_sigqueue(thread: pthread_t, signal: c_int, value: sigval) -> c_int)
        };
    };
    // SAFETY: no arguments.
    let uid = unsafe { libc::getuid() };
    let info = SignalInfo::with_value(signal, uid, value.sival_ptr as usize);
    to_c(match target {
        Target::Oneself => info.send_to(sys::os_thread_id()),
        Target::Another => info.send_to_process(),
    })
}
