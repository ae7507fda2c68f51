//! What many of the functions need: a call on the pool, a call as the carrier, and a wait for a
//! descriptor of our own.

use crate::{simulated, virtual_thread};
use core::ffi::{CStr, c_int, c_long};
use libc::pid_t;
use pirn_rt::arch;
use pirn_rt::blocking::fds::readiness::{FdCall, Interest};
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sched;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::WaitReason;

/// Calls `function`, which must not unwind, on the running platform thread or the running virtual
/// thread's carrier, and blocks that thread.
pub(crate) fn on_carrier<R>(function: impl FnOnce() -> R) -> R {
    // SAFETY: `function` calls libc's functions, which do not unwind.
    unsafe { sched::on_carrier(function) }
}

/// Makes a system call at once if it needs only what is `at_hand`, and otherwise on the pool.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn if_cached(
    name: &'static CStr,
    at_hand: impl FnOnce() -> bool,
    number: c_long,
    args: [usize; 6],
) -> isize {
    // SAFETY: the caller's contract.
    unsafe {
        if virtual_thread().is_some() && at_hand() {
            sys::to_c(sys::check(arch::syscall(number, args)))
        } else {
            bounded_call(name, number, args)
        }
    }
}

/// Makes a system call that ends by itself, for the function of this name. Returns its result as
/// a C function does.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn bounded_call(name: &'static CStr, number: c_long, args: [usize; 6]) -> isize {
    // SAFETY: the caller's contract.
    let simulated = unsafe { simulated::call(number, args) };
    // SAFETY: the caller's contract.
    let kernels = || unsafe { sys::check(arch::syscall(number, args)) };
    sys::to_c(simulated.unwrap_or_else(|| pool::bounded(WaitReason::call(name), kernels)))
}

/// A descriptor of our own, closed when this is dropped.
pub(crate) struct Descriptor(pub(crate) c_int);

impl Descriptor {
    /// Takes a descriptor that a system call has made.
    pub(crate) fn new(fd: usize) -> Descriptor {
        fds::created(fd as c_int);
        Descriptor(fd as c_int)
    }

    /// Opens a pidfd: it is readable when the process, or the thread, has ended.
    pub(crate) fn of_process(id: pid_t, flags: c_int) -> Result<Descriptor, Errno> {
        if !valgrind::kernel_has(libc::SYS_pidfd_open) {
            return Err(Errno(libc::ENOSYS));
        }
        // SAFETY: no pointers.
        unsafe { call!(libc::SYS_pidfd_open, id, flags) }.map(Descriptor::new)
    }

    /// Repeats `attempt` while it fails with `EAGAIN`, and parks in between until the descriptor is
    /// readable. Fails with `EAGAIN` at the deadline.
    pub(crate) fn wait(
        &self,
        reason: WaitReason,
        deadline: Deadline,
        attempt: impl FnMut() -> SysResult,
    ) -> SysResult {
        let call = FdCall::new(self.0, Interest::Read).until(deadline);
        call.shown_as(reason).run(attempt)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let _ = fds::close(self.0);
    }
}

/// Makes a call of libc's that may wait for another party, for the function of this name, on a
/// platform thread of its own.
pub(crate) fn dedicated_call(name: &'static CStr, call: impl FnOnce() -> c_int) -> c_int {
    let call = || from_c(call());
    sys::to_c(pool::dedicated(WaitReason::call(name), call)) as c_int
}

/// Runs a call, for a function that `_FORTIFY_SOURCE` makes programs call, if its buffer has room
/// for `wanted` bytes, and aborts otherwise, as glibc does.
pub(crate) fn checked<R>(wanted: usize, room: usize, call: impl FnOnce() -> R) -> R {
    if wanted > room {
        sys::fatal(&["buffer overflow detected in a call of a libc function"]);
    }
    call()
}

/// Notes the descriptor that a system call has created, if it has. Returns the result as a C
/// function does.
pub(crate) fn created(result: SysResult) -> c_int {
    if let Ok(fd) = result {
        fds::created(fd as c_int);
    }
    sys::to_c(result) as c_int
}

/// Returns the result of a C function that reports through `errno`.
pub(crate) fn from_c(result: c_int) -> SysResult {
    if result == -1 {
        Err(Errno(sys::errno()))
    } else {
        Ok(result as usize)
    }
}

/// Returns an error number, as the `pthread` functions do.
pub(crate) fn number<R>(result: Result<R, Errno>) -> c_int {
    result.map_or_else(|e| e.0, |_| 0)
}

/// Returns the six arguments of a system call: those given, then zeros.
pub(crate) fn args<const N: usize>(given: [usize; N]) -> [usize; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&given);
    all
}
