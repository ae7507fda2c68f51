//! `sys/wait.h`, `spawn.h`: starting child processes and waiting for them. (`fork` has a file of
//! its own.)
//!
//! A *pidfd* is a descriptor that becomes readable when one child ends, so a virtual thread can
//! wait for it. Only `wait` itself tells whether any of several children has ended, or has been
//! stopped; such a wait gets a platform thread of its own.

use crate::process::inherit;
use crate::registry::{c_name, interposed};
use crate::{cancel, virtual_thread};
use core::ffi::{c_char, c_int, c_void};
use libc::{
    id_t, idtype_t, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t, rusage, siginfo_t,
};
use pirn_rt::blocking::fds::readiness::{self, Interest};
use pirn_rt::blocking::{fds, pool};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::Awaited;

interposed! {
    family "Child processes" for Scaling;

    Parks by hand {
        wait4: "for any of several children, or for one that stops, on a platform thread of its own",
        waitpid, wait3, waitid, wait,
    }
    Parks as {
        fn __waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t
            = waitpid(pid, status, options);
        fn __wait(status: *mut c_int) -> pid_t = wait(status);
    }
    // The parent waits until the child has begun its program, which must be read first.
    Pool by hand { posix_spawn, posix_spawnp: "`std::process::Command` calls this" }
    Dedicated by hand { system, wordexp: "with the commands that it runs" }
}

/// Defines functions like `posix_spawn`, each through libc's own.
macro_rules! spawns {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`. Returns an error number.")]
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            pid: *mut pid_t,
            path: *const c_char,
            actions: *const posix_spawn_file_actions_t,
            attributes: *const posix_spawnattr_t,
            arguments: *const *mut c_char,
            environment: *const *mut c_char,
        ) -> c_int {
            // SAFETY: the caller's contract.
            inherit::starting(c_name!($name), || unsafe {
                real!(
                    fn $name(
                        pid: *mut pid_t,
                        path: *const c_char,
                        actions: *const posix_spawn_file_actions_t,
                        attributes: *const posix_spawnattr_t,
                        arguments: *const *mut c_char,
                        environment: *const *mut c_char,
                    ) -> c_int
                ) as usize
            }) as c_int
        }
    )*};
}

spawns!(posix_spawn posix_spawnp);

/// `system`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: the caller's contract.
    let run = || unsafe { real!(fn system(command: *const c_char) -> c_int) as usize };
    inherit::running(c"system", run) as c_int
}

/// `wordexp`, which may run commands.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wordexp(text: *const c_char, found: *mut c_void, flags: c_int) -> c_int {
    // SAFETY: the caller's contract.
    let run = || unsafe {
        real!(fn wordexp(text: *const c_char, found: *mut c_void, flags: c_int) -> c_int) as usize
    };
    inherit::running(c"wordexp", run) as c_int
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));

/// A descriptor of a process, closed at the end of a block.
struct PidFd(c_int);

impl PidFd {
    fn open(pid: pid_t) -> Option<PidFd> {
        if !valgrind::kernel_has(libc::SYS_pidfd_open) {
            return None;
        }
        // SAFETY: no pointers.
        let fd = unsafe { call!(libc::SYS_pidfd_open, pid, 0) }.ok()? as c_int;
        fds::created(fd);
        Some(PidFd(fd))
    }
}

impl Drop for PidFd {
    fn drop(&mut self) {
        let _ = fds::close(self.0);
    }
}

/// Waits until a child has ended; `attempt` takes its status if it has.
fn await_end(child: Awaited, pidfd: c_int, attempt: impl FnMut() -> SysResult) -> SysResult {
    readiness::blocking_for(
        |_, _| child,
        pidfd,
        Interest::Read,
        |_| Deadline::NEVER,
        attempt,
    )
}

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
    match only_its_end.then(|| PidFd::open(pid)).flatten() {
        Some(pidfd) => await_end(Awaited::child(pid), pidfd.0, attempt),
        None => pool::dedicated(Awaited::child(pid), || kernel(options)),
    }
}

/// `wait4`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn wait4(
    pid: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> pid_t {
    let ours = move || {
        // SAFETY: the caller's contract.
        sys::to_c(unsafe { wait_for(pid, status, options, usage) }) as pid_t
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn wait4(
                    pid: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage
                ) -> pid_t
            )
        };
        cancel::point(libcs, ours)
    }
}

/// `waitpid`, which `std::process::Child::wait` calls.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    // SAFETY: the caller's contract.
    unsafe { wait4(pid, status, options, core::ptr::null_mut()) }
}

/// `wait`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn wait(status: *mut c_int) -> pid_t {
    // SAFETY: the caller's contract.
    unsafe { wait4(-1, status, 0, core::ptr::null_mut()) }
}

/// `wait3`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn wait3(
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> pid_t {
    // SAFETY: the caller's contract.
    unsafe { wait4(-1, status, options, usage) }
}

/// `waitid`, which `std`'s own pidfds wait with.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn waitid(
    kind: idtype_t,
    id: id_t,
    info: *mut siginfo_t,
    options: c_int,
) -> c_int {
    let ours = move || {
        // SAFETY: the caller's contract.
        sys::to_c(unsafe { wait_for_id(kind, id, info, options) }) as c_int
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn waitid(
                    kind: idtype_t, id: id_t, info: *mut siginfo_t, options: c_int
                ) -> c_int
            )
        };
        cancel::point(libcs, ours)
    }
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
        libc::P_PID => Awaited::child(id as pid_t),
        libc::P_PGID if id != 0 => Awaited::child((id as pid_t).wrapping_neg()),
        _ => Awaited::child(-1),
    };
    let whole = || pool::dedicated(child, || kernel(info, options));
    match kind {
        _ if options & (libc::WSTOPPED | libc::WCONTINUED) != 0 => whole(),
        libc::P_PIDFD => await_end(
            Awaited::ready(id as c_int, Interest::Read),
            id as c_int,
            attempt,
        ),
        libc::P_PID => match PidFd::open(id as pid_t) {
            Some(pidfd) => await_end(child, pidfd.0, attempt),
            None => whole(),
        },
        _ => whole(),
    }
}
