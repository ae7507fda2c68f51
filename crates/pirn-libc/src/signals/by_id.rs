//! Signals to threads by their ids ([`identity`](crate::identity)).

use crate::identity::{Whose, find, is_own_carrier, of_own_carrier};
use crate::registry::interposed;
use crate::signals::sending;
use core::ffi::c_int;
use libc::{pid_t, pthread_t, siginfo_t};
use pirn_rt::sys::{self, Errno, SysResult, call, to_c};

interposed! {
    family "Signals by thread ids" for Correctness;

    Own by hand { tgkill }
}

/// `tgkill`: to a virtual thread, as `pthread_kill`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn tgkill(process: pid_t, id: pid_t, signal: c_int) -> c_int {
    to_c(send(Some(process), id, signal)) as c_int
}

/// Sends a signal to the thread with an id, of a process if that is given.
pub(crate) fn send(process: Option<pid_t>, id: pid_t, signal: c_int) -> SysResult {
    let whose = match id {
        ..=0 => Whose::Kernels, // It refuses them.
        _ => find(id)?,
    };
    // SAFETY: no pointers; a thread that exists.
    unsafe {
        match (whose, process) {
            (Whose::Virtual(thread), None) => kill(thread, signal),
            (Whose::Virtual(thread), Some(process)) if process == libc::getpid() => {
                kill(thread, signal)
            }
            (Whose::Virtual(_), Some(1..)) => Err(Errno(libc::ESRCH)),
            (Whose::Virtual(_), Some(_)) => Err(Errno(libc::EINVAL)),
            // What `gettid` gives in Rust programs: the carrier blocks the signal.
            (Whose::Kernels, _) if is_own_carrier(process, id) => {
                kill(libc::pthread_self(), signal)
            }
            (Whose::Kernels, Some(process)) => call!(libc::SYS_tgkill, process, id, signal),
            (Whose::Kernels, None) => call!(libc::SYS_tkill, id, signal),
        }
    }
}

/// Sends a signal with an information at this address to a virtual thread; `None`: it is the
/// kernel's.
///
/// # Safety
/// The caller may read there.
pub(crate) unsafe fn queue(
    process: pid_t,
    id: pid_t,
    signal: c_int,
    info: usize,
) -> Option<SysResult> {
    let own = process.cast_unsigned() == std::process::id();
    let id = of_own_carrier(id).unwrap_or(id);
    let thread = match find(id) {
        _ if id <= 0 || !own => return None,
        Ok(Whose::Kernels) => return None,
        Ok(Whose::Virtual(thread)) => thread,
        Err(e) => return Some(Err(e)),
    };
    let words = size_of::<siginfo_t>() / size_of::<u64>();
    if let Err(e) = (0..words).try_for_each(|i| sys::fetch_u64(info + i * 8).map(drop)) {
        return Some(Err(e));
    }
    // SAFETY: readable a moment ago.
    let mut info = unsafe { (info as *const siginfo_t).read_unaligned() };
    info.si_signo = signal;
    Some(sending::send_info(thread, &info))
}

/// # Safety
/// The thread exists.
unsafe fn kill(thread: pthread_t, signal: c_int) -> SysResult {
    // Our own definition.
    // SAFETY: the caller's contract.
    match unsafe { libc::pthread_kill(thread, signal) } {
        0 => Ok(0),
        e => Err(Errno(e)),
    }
}
