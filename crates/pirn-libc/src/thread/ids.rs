//! Calls that take the id of a thread, or of a process: there the kernel accepts the id of any
//! thread of the process.
//!
//! The kernel does not know the ids that `gettid` gives to virtual threads. Most of these calls ask
//! for something of the process: then they are made with the id of the process. Calls for signals,
//! scheduling, clocks and timers have files of their own. What the kernel can only do for an OS
//! thread fails, by errors that users of these calls are prepared for:
//!
//! | | on the id of a virtual thread |
//! |---|---|
//! | `kill`, `sigqueue`, `prlimit`, `process_vm_*`, `getpgid`, `getsid`, `kcmp`, `move_pages`, `migrate_pages`, `capget`, `ioprio_get` | as on the process's |
//! | `pidfd_open` | `EINVAL`, as of a kernel that has no descriptors of threads |
//! | `perf_event_open`, `ioprio_set` | `ENOTSUP` |
//! | `capset` of another, `ptrace`, `setpgid` | `EPERM`, `EPERM`, `ESRCH`, as of one's own threads |
//! | `/proc/self/task/ID` | is not there |

use crate::forward::args;
use crate::identity::process_of;
use crate::registry::interposed;
use crate::signals::{delivery, sending};
use crate::sync::robust;
use core::ffi::{c_int, c_long, c_uint, c_ulong};
use libc::{iovec, pid_t, rlimit64, sigval, ssize_t};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{self, Errno, call};

interposed! {
    family "Processes by ids of their threads" for Scaling;

    Own as {
        fn prlimit(id: pid_t, which: c_uint, new: *const rlimit64, old: *mut rlimit64) -> c_int
            = to_process(libc::SYS_prlimit64, [id as usize, which as usize, new as usize, old as usize])
                as c_int;
        fn prlimit64(id: pid_t, which: c_uint, new: *const rlimit64, old: *mut rlimit64) -> c_int
            = prlimit(id, which, new, old);
        fn process_vm_readv(
            id: pid_t, here: *const iovec, many: c_ulong, there: *const iovec, count: c_ulong, flags: c_ulong,
        ) -> ssize_t
            = to_process(libc::SYS_process_vm_readv, [
                id as usize, here as usize, many as usize, there as usize, count as usize, flags as usize,
            ]) as ssize_t;
        fn process_vm_writev(
            id: pid_t, here: *const iovec, many: c_ulong, there: *const iovec, count: c_ulong, flags: c_ulong,
        ) -> ssize_t
            = to_process(libc::SYS_process_vm_writev, [
                id as usize, here as usize, many as usize, there as usize, count as usize, flags as usize,
            ]) as ssize_t;
        fn getpgid(id: pid_t) -> pid_t
            = to_process(libc::SYS_getpgid, [id as usize]) as pid_t;
        fn __getpgid(id: pid_t) -> pid_t = getpgid(id);
        fn getsid(id: pid_t) -> pid_t
            = to_process(libc::SYS_getsid, [id as usize]) as pid_t;
        fn pidfd_open(id: pid_t, flags: c_uint) -> c_int
            = to_process(libc::SYS_pidfd_open, [id as usize, flags as usize]) as c_int;
        fn sigqueue(id: pid_t, signal: c_int, value: sigval) -> c_int = match process_of(id) {
            Ok(id) => real!(fn sigqueue(id: pid_t, signal: c_int, value: sigval) -> c_int),
            Err(e) => sys::to_c(Err(e)) as c_int,
        };
    }
}

/// Makes a call whose first argument is an id.
///
/// # Safety
/// As for the system call.
unsafe fn to_process<const N: usize>(number: c_long, given: [usize; N]) -> c_long {
    let args = args(given);
    // SAFETY: the caller's contract.
    unsafe {
        call(number, args).unwrap_or_else(|| sys::to_c(delivery::kernels(number, args)) as c_long)
    }
}

/// Does what a system call does that takes ids, if one of them is a virtual thread's. Returns
/// `None` if the kernel must make the call.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn call(number: c_long, mut args: [usize; 6]) -> Option<c_long> {
    const IOPRIO_WHO_PROCESS: usize = 1;
    let [a, b, ..] = args;
    let places: &[usize] = match number {
        libc::SYS_prlimit64
        | libc::SYS_process_vm_readv
        | libc::SYS_process_vm_writev
        | libc::SYS_getpgid
        | libc::SYS_getsid
        | libc::SYS_move_pages
        | libc::SYS_migrate_pages
        | libc::SYS_pidfd_open
        | libc::SYS_get_robust_list
        | libc::SYS_rt_sigqueueinfo => &[0],
        libc::SYS_kcmp => &[0, 1],
        libc::SYS_perf_event_open | libc::SYS_ptrace => &[1],
        libc::SYS_ioprio_get | libc::SYS_ioprio_set if a == IOPRIO_WHO_PROCESS => &[1],
        libc::SYS_rt_tgsigqueueinfo => {
            let (process, id, signal) = (a as pid_t, b as pid_t, args[2] as c_int);
            // SAFETY: the caller's contract.
            let sent = unsafe { sending::queue_to_id(process, id, signal, args[3]) }?;
            return Some(sys::to_c(sent) as c_long);
        }
        libc::SYS_capget => return capabilities(args),
        _ => return None,
    };
    let mut any = false;
    for &place in places {
        match process_of(args[place] as pid_t) {
            Ok(id) => {
                any |= args[place] as pid_t != id;
                args[place] = id as usize;
            }
            Err(e) => return Some(sys::to_c(Err(e)) as c_long),
        }
    }
    let own_list = number == libc::SYS_get_robust_list && a as pid_t == 0;
    if !(any || own_list) {
        return None;
    }
    let result = match number {
        libc::SYS_pidfd_open => Err(Errno(libc::EINVAL)),
        libc::SYS_perf_event_open | libc::SYS_ioprio_set => Err(Errno(libc::ENOTSUP)),
        libc::SYS_ptrace => Err(Errno(libc::EPERM)),
        // SAFETY: the caller's contract.
        libc::SYS_get_robust_list => unsafe { robust::list(a as pid_t, b, args[2])? },
        // SAFETY: the caller's contract.
        _ => unsafe { delivery::kernels(number, args) },
    };
    Some(sys::to_c(result) as c_long)
}

/// `capget`: the id is in a structure, behind a version.
fn capabilities([header, data, ..]: [usize; 6]) -> Option<c_long> {
    let id = sys::fetch_u32(header.wrapping_add(4)).ok()?.cast_signed();
    match process_of(id) {
        Ok(same) if same == id => None,
        Ok(process) => {
            let header = [sys::fetch_u32(header).ok()?, process.cast_unsigned()];
            // SAFETY: a header; the kernel checks the other place.
            let result = unsafe { call!(libc::SYS_capget, header.as_ptr(), data) };
            Some(sys::to_c(result) as c_long)
        }
        Err(e) => Some(sys::to_c(Err::<usize, _>(e)) as c_long),
    }
}
