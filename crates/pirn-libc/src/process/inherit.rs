//! What a program inherits from the thread that starts it.
//!
//! The kernel gives the program what it knows of the OS thread that makes the call. A virtual
//! thread has some of this for itself: the signals that it blocks, its pending signals, which
//! `exec` keeps, and what it has requested about its scheduling ([`scheduling`]). The OS thread
//! that makes the call has these meanwhile:
//!
//! | | the call is made by | the caller has, meanwhile, the thread's |
//! |---|---|---|
//! | `exec*` | the carrier | mask, pending signals |
//! | `posix_spawn*`, `popen` | the pool | mask |
//! | `system`, `wordexp`, and all these of a thread with requests | a platform thread for this call | mask, pending signals, requests |
//! | `fork` | the carrier | mask, requests: in the child ([`fork`](crate::process::fork)) |
//!
//! Only a platform thread that ends after the call can have requests: the kernel lets few users
//! give a thread its former niceness.

use crate::signals::masks::InKernel;
use crate::signals::{process_wide, sending};
use crate::thread::scheduling::{self, Requested};
use crate::{simulated, virtual_thread};
use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering::SeqCst;
use libc::siginfo_t;
use pirn_rt::blocking::pool;
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::vthread::signals::bit;
use pirn_rt::vthread::wait_reason::WaitReason;
use pirn_rt::vthread::{self, Core};

/// What the running virtual thread has of its own that a program inherits.
struct Own {
    mask: u64,
    requested: Option<&'static Requested>,
}

impl Own {
    /// Returns what the running virtual thread has; `None` on a platform thread. For a thread that
    /// must not park, leaves out the requests: its carrier makes the call.
    fn of_this_thread() -> Option<Own> {
        let thread = vthread::current()?;
        Some(Own {
            mask: thread.signals.mask.load(SeqCst),
            // SAFETY: the running thread is virtual.
            requested: virtual_thread().and_then(|_| unsafe { scheduling::own() }),
        })
    }

    /// Makes a call that starts a program, on an OS thread that has this meanwhile.
    fn during<R>(self, start: impl FnOnce() -> R) -> R {
        let before = sys::blocked_signals();
        sys::block_only(self.mask);
        if let Some(requested) = self.requested {
            requested.apply();
        }
        let result = start();
        sys::block_only(before);
        result
    }
}

/// Makes a call that starts a program and does not wait for its end. Returns its result.
pub(crate) fn starting(name: &'static CStr, start: impl FnOnce() -> usize) -> usize {
    if let Some(error) = refused() {
        return match name == c"popen" {
            true => 0, // No stream.
            false => error.0 as usize,
        };
    }
    match Own::of_this_thread() {
        None => start(),
        Some(own) if own.requested.is_some() => alone(name, own, start),
        Some(own) => pool::bounded(WaitReason::call(name), || own.during(start)),
    }
}

/// Returns the error, also in `errno`, of starting a program in a simulation.
fn refused() -> Option<Errno> {
    // SAFETY: a simulation refuses it, and does not look at the arguments.
    let error = unsafe { simulated::call(libc::SYS_clone, [0; 6]) }?.err()?;
    sys::set_errno(error);
    Some(error)
}

/// Makes a call that starts a program and waits for its end. Returns its result.
pub(crate) fn running(name: &'static CStr, start: impl FnOnce() -> usize) -> usize {
    if refused().is_some() {
        return -1_isize as usize;
    }
    match Own::of_this_thread() {
        None => start(),
        Some(own) => alone(name, own, start),
    }
}

/// Makes such a call on a platform thread of its own.
fn alone(name: &'static CStr, own: Own, start: impl FnOnce() -> usize) -> usize {
    let call = || Ok(own.during(start));
    pool::dedicated(WaitReason::call(name), call).unwrap_or_default() // It is never an error.
}

/// Replaces the program by another, by `exec`, which returns only if that fails.
pub(crate) fn becoming(exec: impl FnOnce() -> c_int) -> c_int {
    let Some((thread, own)) = vthread::current().zip(Own::of_this_thread()) else {
        return exec();
    };
    let exec = || {
        let pending = Pending::hand_over(&thread);
        let result = exec();
        pending.take_back(&thread);
        result
    };
    if own.requested.is_some() {
        return alone(c"execve", own, || exec() as usize) as c_int;
    }
    let _mask = InKernel::of_this_thread();
    exec()
}

/// The signals that are pending for a virtual thread, while the calling OS thread has them.
struct Pending(Vec<siginfo_t>);

impl Pending {
    /// Takes over the pending signals of the thread for which the caller acts.
    fn hand_over(thread: &Core) -> Pending {
        let mut handed = Vec::new();
        for signal in
            (1..=64).filter(|&signal| thread.signals.pending.load(SeqCst) & bit(signal) != 0)
        {
            handed.extend(std::iter::from_fn(|| sending::take(thread, signal)));
        }
        let (process, own) = (std::process::id(), sys::os_thread_id());
        for info in &handed {
            let place = core::ptr::from_ref(info);
            // SAFETY: an information, which a process may send to itself whatever it says.
            let _ = unsafe {
                call!(
                    libc::SYS_rt_tgsigqueueinfo,
                    process,
                    own,
                    info.si_signo,
                    place
                )
            };
        }
        Pending(handed)
    }

    /// Gives the signals back.
    fn take_back(self, thread: &Core) {
        for info in self.0 {
            // The OS thread's own come before the process's.
            let _ = process_wide::take(bit(info.si_signo));
            let _ = sending::post(thread, &info, false); // There was room for it.
        }
    }
}
