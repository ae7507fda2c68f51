//! Signals of platform threads.

use super::{SysResult, call};
use core::ffi::c_int;

/// Bytes of the kernel's signal set.
const SET: usize = 8;

/// Returns the signals that the calling platform thread blocks: bit `n - 1` for signal `n`.
pub fn blocked_signals() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes eight bytes.
    let _ = unsafe { call!(libc::SYS_rt_sigprocmask, 0, 0, &raw mut set, SET) };
    set
}

/// Unblocks a signal for the calling platform thread.
pub fn unblock_signal(signal: c_int) {
    let set = 1u64 << (signal - 1);
    let how = libc::SIG_UNBLOCK;
    // SAFETY: the kernel reads eight bytes.
    let _ = unsafe { call!(libc::SYS_rt_sigprocmask, how, &raw const set, 0, SET) };
}

/// Makes the calling platform thread block these signals and no others.
pub fn block_only(signals: u64) {
    let how = libc::SIG_SETMASK;
    // SAFETY: the kernel reads eight bytes.
    let _ = unsafe { call!(libc::SYS_rt_sigprocmask, how, &raw const signals, 0, SET) };
}

/// The beginning of a `siginfo_t` of a signal that carries a value.
#[repr(C)]
pub struct SignalInfo {
    signal: c_int,
    error: c_int,
    code: c_int,
    pad: c_int,
    pid: libc::pid_t,
    uid: libc::uid_t,
    value: usize,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<SignalInfo>() == size_of::<libc::siginfo_t>());

impl SignalInfo {
    /// Returns the information with a signal from this process that carries a value.
    pub fn with_value(signal: c_int, uid: libc::uid_t, value: usize) -> SignalInfo {
        SignalInfo::new(signal, libc::SI_QUEUE, uid, value)
    }

    /// Returns the information with a signal from this process, of the kind that `code` says.
    pub fn new(signal: c_int, code: c_int, uid: libc::uid_t, value: usize) -> SignalInfo {
        SignalInfo {
            signal,
            error: 0,
            code,
            pad: 0,
            // SAFETY: no arguments.
            pid: unsafe { libc::getpid() },
            uid,
            value,
            rest: [0; 12],
        }
    }

    /// Returns why the signal was sent.
    pub fn code(&self) -> c_int {
        self.code
    }

    /// Returns the value that it carries.
    pub fn value(&self) -> usize {
        self.value
    }

    /// Returns it with another signal and value.
    pub fn instead(&self, signal: c_int, value: usize) -> SignalInfo {
        SignalInfo {
            signal,
            value,
            ..*self
        }
    }

    /// Sends the signal to a thread of this process, by the kernel's id.
    pub(crate) fn send_to(&self, thread: u32) -> SysResult {
        let (pid, signal, info) = (self.pid, self.signal, &raw const *self);
        // SAFETY: the kernel reads the information, and checks the rest.
        unsafe { call!(libc::SYS_rt_tgsigqueueinfo, pid, thread, signal, info) }
    }
}

/// Sends a signal with a value to a thread of this process, by the kernel's id.
pub fn send_signal(thread: u32, signal: c_int, value: usize) -> SysResult {
    SignalInfo::with_value(signal, 0, value).send_to(thread)
}
