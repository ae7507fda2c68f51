//! Signals of platform threads.

use super::{SysResult, call};
use core::ffi::c_int;

/// Bytes of the kernel's signal set.
const SET: usize = 8;

/// Returns the signals that the calling platform thread blocks: bit `n - 1` for signal `n`.
pub(crate) fn blocked_signals() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes eight bytes.
    let _ = unsafe { call!(libc::SYS_rt_sigprocmask, 0, 0, &raw mut set, SET) };
    set
}

/// Unblocks a signal for the calling platform thread.
pub(crate) fn unblock_signal(signal: c_int) {
    let set = 1u64 << (signal - 1);
    let how = libc::SIG_UNBLOCK;
    // SAFETY: the kernel reads eight bytes.
    let _ = unsafe { call!(libc::SYS_rt_sigprocmask, how, &raw const set, 0, SET) };
}

/// Makes the calling platform thread block these signals and no others.
pub(crate) fn block_only(signals: u64) {
    let how = libc::SIG_SETMASK;
    // SAFETY: the kernel reads eight bytes.
    let _ = unsafe { call!(libc::SYS_rt_sigprocmask, how, &raw const signals, 0, SET) };
}

/// The beginning of a `siginfo_t` of a signal that carries a value.
#[repr(C)]
struct Info {
    signal: c_int,
    error: c_int,
    code: c_int,
    pad: c_int,
    pid: libc::pid_t,
    uid: libc::uid_t,
    value: usize,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Info>() == size_of::<libc::siginfo_t>());

/// Sends a signal with a value to a thread of this process, by the kernel's id.
pub(crate) fn send_signal(thread: u32, signal: c_int, value: usize) -> SysResult {
    // SAFETY: no arguments; the kernel reads the information.
    unsafe {
        let info = Info {
            signal,
            error: 0,
            code: libc::SI_QUEUE,
            pad: 0,
            pid: libc::getpid(),
            uid: 0,
            value,
            rest: [0; 12],
        };
        let info = &raw const info;
        call!(
            libc::SYS_rt_tgsigqueueinfo,
            libc::getpid(),
            thread,
            signal,
            info
        )
    }
}
