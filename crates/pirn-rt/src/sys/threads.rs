//! Platform threads: their ids, futexes for the runtime's own ones, yielding and napping, and
//! signals.

use super::{SysResult, call, timespec};
use crate::time::Deadline;
use core::ffi::c_int;
use core::sync::atomic::AtomicU32;

/// Returns whether the calling platform thread is the first of the process.
pub fn is_first_thread() -> bool {
    os_thread_id() == std::process::id()
}

/// Returns the kernel's id of the calling platform thread. libc's function is interposed.
pub fn os_thread_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { call!(libc::SYS_gettid) }.unwrap_or(0) as u32
}

/// Blocks the calling OS thread while `*word == expected`, until it is woken or until `deadline`.
/// Only for the waits of the runtime's own platform threads.
pub fn futex_wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> SysResult {
    let ts = deadline.timespec();
    let timeout = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    const OP: i32 = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call; the kernel only reads it.
    unsafe {
        call!(
            libc::SYS_futex,
            word.as_ptr(),
            OP,
            expected,
            timeout,
            0,
            u32::MAX
        )
    }
}

/// Wakes up to `count` OS threads blocked in [`futex_wait`] on `word`.
pub fn futex_wake(word: &AtomicU32, count: i32) -> usize {
    futex_wake_at(word.as_ptr(), count)
}

/// As [`futex_wake`], by the address of a word that may be gone.
pub fn futex_wake_at(word: *const u32, count: i32) -> usize {
    const OP: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the address is only a key; the kernel does not read through it for private wakes.
    unsafe { call!(libc::SYS_futex, word, OP, count).unwrap_or(0) }
}

/// The number of looks before the first yield.
const SPINS: u32 = 100;
/// The number of looks before the first nap.
const YIELDS: u32 = 110;
const NAP_NS: u64 = 50_000;

/// Lets other OS threads run.
pub fn os_yield() {
    // SAFETY: no arguments.
    let _ = unsafe { call!(libc::SYS_sched_yield) };
}

/// Puts the platform thread to sleep for some nanoseconds.
pub fn nap(nanos: u64) {
    let time = timespec(nanos);
    // SAFETY: a valid timespec.
    let _ = unsafe { call!(libc::SYS_nanosleep, &raw const time, 0) };
}

/// Waits a little before the next look at a value that another OS thread is about to change: spins
/// at first, then yields, then naps. `look` counts from 0.
pub fn back_off(look: u32) {
    match look {
        0..SPINS => core::hint::spin_loop(),
        SPINS..YIELDS => os_yield(),
        _ => nap(NAP_NS),
    }
}

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
    SignalInfo::new(signal, libc::SI_QUEUE, 0, value).send_to(thread)
}
