//! Asking a process to listen, by a signal.
//!
//! The signal is `SIGURG`, which a process ignores unless it has a handler. It goes to one thread,
//! the runtime's monitor, so that no system call of the program ends early, and carries a marker,
//! so that the runtime does not take it for one of the program's.

use std::ffi::c_int;
use std::io;

use super::failure::Failure;
use super::process::Process;

/// The marker: the same as in `crates/pirn-libc/src/signals/urgent.rs`.
const MARKER: u64 = u64::from_ne_bytes(*b"pirn-ask");

/// Asks the process to listen.
pub fn ask_to_listen(process: &Process) -> Result<(), Failure> {
    let (pid, name) = (process.pid, process.name.clone());
    let Some(monitor) = process.monitor else {
        return Err(Failure::NoThreads { pid, name });
    };
    if process.handled & 1 << (libc::SIGURG - 1) == 0 {
        return Err(Failure::Closed { pid, name });
    }
    send(pid, monitor).map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => Failure::forbidden(process),
        Some(libc::ESRCH) => Failure::NoProcess(pid),
        _ => Failure::Own {
            doing: "send a signal",
            error,
        },
    })
}

/// The kernel's description of a signal that carries a value.
#[repr(C)]
struct Info {
    signal: c_int,
    error: c_int,
    code: c_int,
    pad: c_int,
    pid: u32,
    uid: u32,
    value: u64,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Info>() == size_of::<libc::siginfo_t>());

#[allow(unsafe_code, reason = "no crate has this call")]
fn send(pid: u32, thread: u32) -> io::Result<()> {
    let info = Info {
        signal: libc::SIGURG,
        error: 0,
        code: libc::SI_QUEUE,
        pad: 0,
        pid: std::process::id(),
        uid: rustix::process::getuid().as_raw(),
        value: MARKER,
        rest: [0; 12],
    };
    let number = libc::SYS_rt_tgsigqueueinfo;
    // SAFETY: the kernel reads the information, which has the length of a `siginfo_t`, and checks
    // the rest.
    match unsafe { libc::syscall(number, pid, thread, libc::SIGURG, &raw const info) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
