//! Where a platform thread is blocked in the kernel: the system call with its descriptor, the
//! address that it was made from, and the stack pointer.

use core::ffi::{CStr, c_void};
use pirn_rt::sched::os_thread::{self, Blocked, InKernel};
use std::fmt::Write;

/// Returns where a thread of this process is blocked, if it is, and the kernel says so.
pub(super) fn place(id: u32) -> Option<Blocked> {
    match os_thread::in_kernel(id)? {
        InKernel::Running => None,
        InKernel::Blocked(blocked) => Some(blocked),
    }
}

/// Returns the call in words, with its descriptor if it has one.
pub(super) fn describe(blocked: &Blocked) -> String {
    let mut text = name(blocked.call);
    if blocked.call.is_some_and(takes_descriptor) {
        let fd = blocked.first as i32;
        // Writing to a string does not fail.
        let _ = write!(text, " on descriptor {fd}");
        // Whatever a path contains, it stays on one line.
        if let Ok(target) = std::fs::read_link(format!("/proc/self/fd/{fd}")) {
            let _ = write!(text, " ({})", target.to_string_lossy().escape_debug());
        }
    }
    text
}

/// Returns the object that an address is in, and the function or the offset in it.
pub(super) fn origin(address: usize) -> String {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
    let info = unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address as *const c_void, &mut info);
        info
    };
    let text = |pointer: *const libc::c_char| {
        // SAFETY: dladdr gives strings of the loaded object, or null.
        (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy())
    };
    let Some(object) = text(info.dli_fname) else {
        return format!("{address:#x}");
    };
    match text(info.dli_sname) {
        Some(function) => format!("{function} in {object}"),
        None => format!("{object}+{:#x}", address - info.dli_fbase as usize),
    }
}

/// The system calls that may block, and whether their first argument is a descriptor.
const CALLS: [(i64, &str, bool); 26] = [
    (libc::SYS_accept, "accept", true),
    (libc::SYS_accept4, "accept4", true),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", false),
    (libc::SYS_connect, "connect", true),
    (libc::SYS_epoll_pwait, "epoll_pwait", true),
    (libc::SYS_epoll_pwait2, "epoll_pwait2", true),
    (libc::SYS_epoll_wait, "epoll_wait", true),
    (libc::SYS_fcntl, "fcntl", true),
    (libc::SYS_flock, "flock", true),
    (libc::SYS_fsync, "fsync", true),
    (libc::SYS_futex, "futex", false),
    (libc::SYS_io_uring_enter, "io_uring_enter", true),
    (libc::SYS_nanosleep, "nanosleep", false),
    (libc::SYS_openat, "openat", false),
    (libc::SYS_poll, "poll", false),
    (libc::SYS_ppoll, "ppoll", false),
    (libc::SYS_pselect6, "pselect6", false),
    (libc::SYS_read, "read", true),
    (libc::SYS_readv, "readv", true),
    (libc::SYS_recvfrom, "recvfrom", true),
    (libc::SYS_recvmsg, "recvmsg", true),
    (libc::SYS_sendmsg, "sendmsg", true),
    (libc::SYS_sendto, "sendto", true),
    (libc::SYS_wait4, "wait4", false),
    (libc::SYS_write, "write", true),
    (libc::SYS_writev, "writev", true),
];

fn takes_descriptor(call: i64) -> bool {
    CALLS.iter().any(|&(number, _, fd)| number == call && fd)
}

/// Returns the name of a system call that may block.
pub(super) fn name(call: Option<i64>) -> String {
    match call {
        None => "a page fault".into(),
        Some(call) => match CALLS.iter().find(|(number, ..)| *number == call) {
            Some((_, name, _)) => (*name).into(),
            None => format!("the system call {call}"),
        },
    }
}

#[cfg(test)]
mod tests;
