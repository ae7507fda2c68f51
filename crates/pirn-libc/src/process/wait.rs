//! `sys/wait.h`, `spawn.h`: starting child processes and waiting for them. (`fork` has a file of
//! its own.)
//!
//! A *pidfd* is a descriptor that becomes readable when one child ends, so a virtual thread can
//! wait for it. Only `wait` itself tells whether any of several children has ended, or has been
//! stopped; such a wait gets a platform thread of its own.

use crate::forward::Descriptor;
use crate::process::exec::Texts;
use crate::process::inherit;
use crate::registry::interposed;
use crate::{Path, Text, virtual_thread};
use core::ffi::{c_int, c_void};
use core::ptr;
use libc::{
    id_t, idtype_t, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t, rusage, siginfo_t,
};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::readiness::{FdCall, Interest};
use pirn_rt::blocking::pool;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::WaitReason;

type Actions = *const posix_spawn_file_actions_t;
type Attributes = *const posix_spawnattr_t;

interposed! {
    family "Child processes" for Scaling;

    Parks by hand {
        wait4: "for any of several children, or for one that stops, on a platform thread of its own",
        waitid,
    }
    Parks as {
        /// `std::process::Child::wait` calls this.
        fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t
            = wait4(pid, status, options, ptr::null_mut());
        fn wait(status: *mut c_int) -> pid_t = wait4(-1, status, 0, ptr::null_mut());
        fn wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t
            = wait4(-1, status, options, usage);
        fn __waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t
            = waitpid(pid, status, options);
        fn __wait(status: *mut c_int) -> pid_t = wait(status);
    }
    // The parent waits until the child has begun its program, which must be read first.
    Pool as {
        fn posix_spawn(
            pid: *mut pid_t, path: Path, actions: Actions, attributes: Attributes,
            arguments: Texts, environment: Texts,
        ) -> c_int
            = inherit::starting(c"posix_spawn", || libcs!() as usize) as c_int;
        /// `std::process::Command` calls this.
        fn posix_spawnp(
            pid: *mut pid_t, file: Path, actions: Actions, attributes: Attributes,
            arguments: Texts, environment: Texts,
        ) -> c_int
            = inherit::starting(c"posix_spawnp", || libcs!() as usize) as c_int;
    }
    Dedicated as {
        fn system(command: Text) -> c_int
            = inherit::running(c"system", || libcs!() as usize) as c_int;
        /// May run commands.
        fn wordexp(text: Text, found: *mut c_void, flags: c_int) -> c_int
            = inherit::running(c"wordexp", || libcs!() as usize) as c_int;
    }
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));

/// # Safety
/// As for `wait4(2)`.
unsafe fn wait_for(
    pid: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> SysResult {
    // SAFETY: the caller's contract.
    let kernel = |options: c_int| unsafe { call!(libc::SYS_wait4, pid, status, options, usage) };
    if virtual_thread().is_none() || options & libc::WNOHANG != 0 {
        return kernel(options);
    }
    let attempt = || match kernel(options | libc::WNOHANG) {
        Ok(0) => EAGAIN,
        result => result,
    };
    match attempt() {
        EAGAIN => {}
        result => return result,
    }
    let only_its_end = pid > 0 && options & (libc::WUNTRACED | libc::WCONTINUED) == 0;
    let child = WaitReason::child(pid);
    match only_its_end.then(|| Descriptor::of_process(pid, 0)) {
        Some(Ok(pidfd)) => pidfd.wait(child, Deadline::NEVER, attempt),
        _ => pool::dedicated(child, || kernel(options)),
    }
}

#[libc_fn(point)]
pub unsafe fn wait4(pid: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
    sys::to_c(wait_for(pid, status, options, usage)) as pid_t
}

/// `waitid`, which `std`'s own pidfds wait with.
#[libc_fn(point)]
pub unsafe fn waitid(kind: idtype_t, id: id_t, info: *mut siginfo_t, options: c_int) -> c_int {
    sys::to_c(wait_for_id(kind, id, info, options)) as c_int
}

/// # Safety
/// As for `waitid(2)`.
unsafe fn wait_for_id(kind: idtype_t, id: id_t, info: *mut siginfo_t, options: c_int) -> SysResult {
    // SAFETY: the caller's contract, or a structure of our own.
    let kernel = |info: *mut siginfo_t, options: c_int| unsafe {
        call!(libc::SYS_waitid, kind, id, info, options, 0)
    };
    if virtual_thread().is_none() || options & libc::WNOHANG != 0 {
        return kernel(info, options);
    }
    // Zeros mean that there is nothing. Without a structure of the program, one of ours.
    // SAFETY: all zeros is a valid `siginfo_t`.
    let mut own: siginfo_t = unsafe { core::mem::zeroed() };
    let found = if info.is_null() { &raw mut own } else { info };
    let attempt = || {
        kernel(found, options | libc::WNOHANG)?;
        // SAFETY: the kernel has filled it in.
        match unsafe { (*found).si_signo } {
            0 => EAGAIN,
            _ => Ok(0),
        }
    };
    match attempt() {
        EAGAIN => {}
        result => return result,
    }
    let child = match kind {
        libc::P_PID => WaitReason::child(id as pid_t),
        libc::P_PGID if id != 0 => WaitReason::child((id as pid_t).wrapping_neg()),
        _ => WaitReason::child(-1),
    };
    let whole = || pool::dedicated(child, || kernel(info, options));
    match kind {
        _ if options & (libc::WSTOPPED | libc::WCONTINUED) != 0 => whole(),
        libc::P_PIDFD => {
            let call = FdCall::new(id as c_int, Interest::Read);
            call.until(Deadline::NEVER).run(attempt)
        }
        libc::P_PID => match Descriptor::of_process(id as pid_t, 0) {
            Ok(pidfd) => pidfd.wait(child, Deadline::NEVER, attempt),
            Err(_) => whole(),
        },
        _ => whole(),
    }
}
