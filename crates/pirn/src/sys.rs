//! System calls and the runtime's own clock: nothing here can reach an interposed symbol.
//!
//! The runtime must not call `read`, `futex` and the like through libc's names, because in this
//! program those names are its own. Everything here goes to the kernel directly, or to libc
//! functions that are never interposed and never block.

use crate::arch;
use crate::time::Deadline;
pub(crate) use crate::time::{clock, nanos, now, timespec};
use core::sync::atomic::AtomicU32;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(pub i32);

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

/// What a system call gave.
pub(crate) type SysResult = Result<usize, Errno>;

/// Turns the kernel's `-errno` convention into a `Result`.
#[inline(always)]
pub(crate) fn check(value: isize) -> SysResult {
    if (-4095..0).contains(&value) {
        Err(Errno(-value as i32))
    } else {
        Ok(value as usize)
    }
}

/// A system call by name and arguments: `call!(libc::SYS_close, fd)`. Evaluates to [`SysResult`].
/// An `unsafe` operation; the arguments may be any integers or pointers.
macro_rules! call {
    ($number:expr $(, $arg:expr)* $(,)?) => {{
        #[allow(unused_mut)] // of a call without arguments
        let mut args = [0usize; 6];
        let mut _n = 0;
        $( #[allow(clippy::cast_lossless)] { args[_n] = $arg as usize; _n += 1; } )*
        $crate::sys::check($crate::arch::syscall($number, args))
    }};
}
pub(crate) use call;

/// Sets `errno` of the running thread, virtual or platform.
#[inline]
pub(crate) fn set_errno(e: Errno) {
    // SAFETY: always points to the running thread's errno.
    unsafe { *libc::__errno_location() = e.0 };
}

/// `errno` of the running thread.
#[inline]
pub(crate) fn errno() -> i32 {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

/// Gives a [`SysResult`] to a C caller: the value, or -1 with `errno` set.
#[inline]
pub(crate) fn to_c(result: SysResult) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(e) => {
            set_errno(e);
            -1
        }
    }
}

/// Blocks the calling OS thread while `*word == expected`, until woken or until `deadline`. For the
/// runtime's own platform-side waiting only.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> SysResult {
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
pub(crate) fn futex_wake(word: *const u32, count: i32) -> usize {
    const OP: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the address is only a key; the kernel does not read through it for private wakes.
    unsafe { call!(libc::SYS_futex, word, OP, count).unwrap_or(0) }
}

/// Writes a message to standard error with no buffering, locking or allocation.
pub(crate) fn complain(parts: &[&str]) {
    for part in parts {
        // SAFETY: the buffer is valid for its length.
        let _ = unsafe { call!(libc::SYS_write, 2, part.as_ptr(), part.len()) };
    }
}

/// Reports a broken invariant and ends the process.
#[cold]
pub(crate) fn fatal(parts: &[&str]) -> ! {
    complain(&["pirn: fatal: "]);
    complain(parts);
    complain(&["\n"]);
    // SAFETY: abort is always allowed.
    unsafe { libc::abort() }
}

/// Lets other OS threads run.
pub(crate) fn os_yield() {
    // SAFETY: no arguments.
    let _ = unsafe { call!(libc::SYS_sched_yield) };
}

/// Puts the platform thread to sleep for some nanoseconds.
pub(crate) fn os_sleep(nanos: u64) {
    let time = timespec(nanos);
    // SAFETY: a valid timespec.
    let _ = unsafe { call!(libc::SYS_nanosleep, &raw const time, 0) };
}

/// A spinning wait that stays polite: a few pauses, then yields of the processor.
pub(crate) fn backoff(round: u32) {
    if round < 64 {
        arch::relax();
    } else {
        os_yield();
    }
}
