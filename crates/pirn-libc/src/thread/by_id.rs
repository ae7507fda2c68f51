//! Threads by their ids, as `gettid` returns them.
//!
//! The id of a virtual thread is that of its TCB: above all that the kernel gives out, and below
//! `FUTEX_TID_MASK`, since it becomes the owner of locks. The id leads to the slot, and the id in
//! the slot's TCB tells whether that thread is still there. So functions that take an id know at
//! once whose it is:
//!
//! ```text
//!   0                    the caller
//!   below 2^22           the kernel's: a platform thread, or a process
//!   from 2^22 on         a virtual thread's, or nobody's
//! ```

use crate::posix;
use crate::process::signals::sending;
use crate::registry::interposed;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{pid_t, pthread_t, siginfo_t};
use pirn_rt::arch;
use pirn_rt::glibc::tls;
use pirn_rt::runtime;
use pirn_rt::stack::Slot;
use pirn_rt::stack::region;
use pirn_rt::sys::{self, Errno, SysResult, call, to_c};
use pirn_rt::vthread::{self, table};

interposed! {
    family "Signals by thread ids" for Correctness;

    Own by hand { tgkill }
}

/// Whose an id is.
pub(crate) enum Whose {
    /// A virtual thread's.
    Virtual(pthread_t),
    /// The kernel knows.
    Kernels,
}

/// Returns whose an id is.
///
/// # Errors
/// `ESRCH`: it is the id of a virtual thread that does not exist any more.
pub(crate) fn find(id: pid_t) -> Result<Whose, Errno> {
    if id == 0 {
        return Ok(match vthread::current() {
            // SAFETY: no arguments.
            Some(_) => Whose::Virtual(unsafe { libc::pthread_self() }),
            None => Whose::Kernels,
        });
    }
    let Some(slot) = Slot::of_tid(id.cast_unsigned()) else {
        return Ok(Whose::Kernels);
    };
    let exists = runtime::is_started() && region::exists(slot) && {
        let place = (slot.tp() + tls::template().tid_offset) as *mut u32;
        // SAFETY: in a slot, whose memory is there for good. Relaxed: the program has ordered it.
        let same = unsafe { AtomicU32::from_ptr(place) }.load(Ordering::Relaxed) == id as u32;
        same && (table::is_resident(slot) || posix::find(slot.tp() as pthread_t).is_some())
    };
    match exists {
        true => Ok(Whose::Virtual(slot.tp() as pthread_t)),
        false => Err(Errno(libc::ESRCH)),
    }
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

/// Returns the running virtual thread's own id, if this one, the kernel's, is its carrier's: what
/// `gettid` gives in Rust programs.
pub(crate) fn of_own_carrier(id: pid_t) -> Option<pid_t> {
    is_own_carrier(None, id).then(|| {
        let place = arch::thread_pointer() + tls::template().tid_offset;
        // SAFETY: the running thread's TCB.
        unsafe { (place as *const pid_t).read() }
    })
}

/// Returns whether these are the ids of this process and the running virtual thread's carrier.
fn is_own_carrier(process: Option<pid_t>, id: pid_t) -> bool {
    // SAFETY: no arguments.
    let here = process.is_none_or(|process| process == unsafe { libc::getpid() });
    here && vthread::current().is_some() && id.cast_unsigned() == sys::os_thread_id()
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
