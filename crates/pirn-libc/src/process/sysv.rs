//! `sys/msg.h`, `sys/sem.h`: System V message queues and semaphores.
//!
//! The kernel does not report when one of these can go on. A virtual thread therefore tries first,
//! and if the call would wait, it waits on a platform thread of its own.

use crate::registry::interposed;
use crate::{cancel, virtual_thread};
use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr;
use libc::{sembuf, size_t, ssize_t, timespec};
use pirn_rt::blocking::pool;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread::wait_reason::WaitReason;

static NOW: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

interposed! {
    family "System V message queues and semaphores" for Scaling;

    Dedicated as {
        fn msgsnd(queue: c_int, message: *const c_void, size: size_t, flags: c_int) -> c_int
            = cancel::own_point(move || sys::to_c(try_first(c"msgsnd", waits(flags), libc::EAGAIN, |now| {
                call!(libc::SYS_msgsnd, queue, message, size, flags | nowait(now))
            })) as c_int);
        fn msgrcv(queue: c_int, message: *mut c_void, size: size_t, kind: c_long, flags: c_int)
            -> ssize_t
            = cancel::own_point(move || sys::to_c(try_first(c"msgrcv", waits(flags), libc::ENOMSG, |now| {
                call!(libc::SYS_msgrcv, queue, message, size, kind, flags | nowait(now))
            })));
        fn semop(semaphores: c_int, operations: *mut sembuf, count: size_t) -> c_int
            = semtimedop(semaphores, operations, count, ptr::null());
        fn semtimedop(
            semaphores: c_int, operations: *mut sembuf, count: size_t, timeout: *const timespec,
        ) -> c_int
            = sys::to_c(try_first(c"semtimedop", true, libc::EAGAIN, |now| {
                let timeout = if now { &raw const NOW } else { timeout };
                call!(libc::SYS_semtimedop, semaphores, operations, count, timeout)
            })) as c_int;
    }
}

/// Runs a call that may wait. A virtual thread first makes the attempt `call(true)`, which does not
/// wait and fails with `busy` if it would have to. It fails with `EINTR` instead when a signal
/// comes meanwhile: `semtimedop` looks for signals before it looks at its timeout, and these calls
/// are never begun again by the kernel, whatever `SA_RESTART` says. The signal is most often the
/// runtime's own, which must not end the program's call.
fn try_first(
    name: &'static CStr,
    waits: bool,
    busy: c_int,
    call: impl Fn(bool) -> SysResult,
) -> SysResult {
    if !waits {
        return call(false);
    }
    if virtual_thread().is_some() {
        match call(true) {
            Err(Errno(error)) if error == busy || error == libc::EINTR => {}
            result => return result,
        }
    }
    pool::dedicated(WaitReason::call(name), || call(false))
}

/// Returns whether a call with these flags waits.
fn waits(flags: c_int) -> bool {
    flags & libc::IPC_NOWAIT == 0
}

/// Returns the flag of a call that must not wait.
fn nowait(now: bool) -> c_int {
    if now { libc::IPC_NOWAIT } else { 0 }
}
