//! `mqueue.h`: POSIX message queues, which on Linux are descriptors.
//!
//! The kernel has no flag for "do not wait" per call, but with a deadline in the past it does not
//! wait.

use crate::io::rw::close;
use crate::registry::interposed;
use crate::{Time, cancel, sync, virtual_thread};
use core::ffi::{c_char, c_int, c_uint};
use core::ptr;
use libc::{mqd_t, size_t, ssize_t};
use pirn_rt::blocking::fds::readiness::{self, FdCall, Interest};
use pirn_rt::blocking::pool;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;

interposed! {
    family "POSIX message queues" for Scaling;

    Parks as {
        fn mq_receive(queue: mqd_t, message: *mut c_char, size: size_t, priority: *mut c_uint)
            -> ssize_t = mq_timedreceive(queue, message, size, priority, ptr::null());
        fn mq_timedreceive(
            queue: mqd_t, message: *mut c_char, size: size_t, priority: *mut c_uint, time: Time,
        ) -> ssize_t = cancel::own_point(move || sys::to_c(wait(queue, Interest::Read, time, |time| {
            call!(libc::SYS_mq_timedreceive, queue, message, size, priority, time)
        })));
        fn mq_send(queue: mqd_t, message: *const c_char, size: size_t, priority: c_uint) -> c_int
            = mq_timedsend(queue, message, size, priority, ptr::null());
        fn mq_timedsend(
            queue: mqd_t, message: *const c_char, size: size_t, priority: c_uint, time: Time,
        ) -> c_int = cancel::own_point(move || sys::to_c(wait(queue, Interest::Write, time, |time| {
            call!(libc::SYS_mq_timedsend, queue, message, size, priority, time)
        })) as c_int);
    }
    Kernel as { fn mq_close(queue: mqd_t) -> c_int = close(queue); }
}

/// Runs `call(deadline)`; on a virtual thread parks until the call need not wait.
///
/// # Safety
/// `time` is null, or the program's timespec.
unsafe fn wait(
    queue: mqd_t,
    interest: Interest,
    time: Time,
    call: impl Fn(Time) -> SysResult,
) -> SysResult {
    /// The program has made the queue non-blocking. (The kernel gives no such error.)
    const NONBLOCKING: Errno = Errno(0);
    if virtual_thread().is_none() {
        return call(time);
    }
    // SAFETY: the caller's contract.
    let deadline = unsafe { deadline_at(time)? };
    let past = sys::timespec(0);
    let attempt = || match call(&past) {
        Err(Errno(libc::ETIMEDOUT)) => Err(Errno(libc::EAGAIN)),
        Err(Errno(libc::EAGAIN)) => Err(NONBLOCKING),
        result => result,
    };
    let mut waiting = FdCall::new(queue, interest).until(deadline);
    match waiting.run(attempt) {
        Err(NONBLOCKING) => Err(Errno(libc::EAGAIN)),
        Err(Errno(libc::EAGAIN)) if deadline.has_passed() => Err(Errno(libc::ETIMEDOUT)),
        // A descriptor that cannot be watched.
        Err(Errno(libc::EAGAIN)) => {
            pool::dedicated(readiness::wait_for(queue, interest), || call(time))
        }
        result => result,
    }
}

/// Returns the deadline for a point in time on `CLOCK_REALTIME`. The kernel checks the time for
/// `EFAULT` and `EINVAL`, in a futex wait that expects another value than the word has.
///
/// # Safety
/// `time` is null, or the program's timespec.
unsafe fn deadline_at(time: Time) -> Result<Deadline, Errno> {
    const WAIT: c_int = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    if time.is_null() {
        return Ok(Deadline::NEVER);
    }
    let word = 0u32;
    // SAFETY: the kernel checks the address of the time.
    match unsafe { call!(libc::SYS_futex, &raw const word, WAIT, 1, time, 0, u32::MAX) } {
        Err(error @ Errno(libc::EFAULT | libc::EINVAL)) => Err(error),
        // SAFETY: the kernel has just read it.
        _ => unsafe { sync::deadline(libc::CLOCK_REALTIME, time) }.map_err(Errno),
    }
}
