//! Reporting that all carriers are blocked in the kernel.
//!
//! A system call that is not made through libc's functions is not seen by Pirn and blocks its
//! carrier. Spare carriers stand in; when they are blocked too, the program hangs. So, once per
//! process, the monitor says where they are blocked: the kernel tells the number of the system
//! call, and the address from which it was made.

use super::os_thread;
use crate::notices;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use std::fmt::Write;

/// All carriers must have been blocked in the kernel for this long: any other call would have
/// ended.
pub(super) const STRANDED_NS: u64 = 1_000_000_000;

/// Says once where these carriers are blocked. They are given by kernel id, and are all the
/// carriers there can be, while other threads wait.
#[cold]
pub(super) fn report(carriers: &[u32]) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    // Relaxed: the monitor's alone.
    if !REPORTED.swap(true, Ordering::Relaxed) {
        let places: Vec<Place> = carriers.iter().filter_map(|&id| place(id)).collect();
        notices::write(&text(carriers.len(), &places));
    }
}

/// Where a thread is blocked in the kernel.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    /// The system call; `None` for a page fault.
    call: Option<i64>,
    /// The address after the instruction that made it.
    from: usize,
}

fn place(id: u32) -> Option<Place> {
    let mut buffer = [0; 256];
    parse(core::str::from_utf8(os_thread::read(id, b"/syscall", &mut buffer)).ok()?)
}

/// Parses a line of `/proc/.../syscall`: number, six arguments, stack pointer, address; or `-1` as
/// the number, followed by the last two only; or `running`.
fn parse(line: &str) -> Option<Place> {
    let mut words = line.split_whitespace();
    let call = words.next()?.parse().ok()?;
    let from = usize::from_str_radix(words.last()?.strip_prefix("0x")?, 16).ok()?;
    let call = (call >= 0).then_some(call);
    Some(Place { call, from })
}

/// Returns the line about `count` carriers, with the place where most of them are blocked.
fn text(count: usize, places: &[Place]) -> String {
    let mut text = format!("all {count} carriers have been blocked in the kernel for a second");
    let number = |place: &Place| places.iter().filter(|p| *p == place).count();
    if let Some(place) = places.iter().max_by_key(|place| number(place)) {
        // Writing to a string does not fail.
        let _ = write!(text, ", {} of them in {}", number(place), name(place.call));
        let _ = write!(text, ", called from {}", origin(place.from));
    }
    text + "; other threads wait. Calls that are not made through libc's functions are not seen: \
            see docs/limits.md, \"System calls made without libc\""
}

/// Returns the object that an address is in, and the function or the offset in it.
fn origin(address: usize) -> String {
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

/// Returns the name of a system call that may block.
fn name(call: Option<i64>) -> String {
    const NAMES: [(i64, &str); 24] = [
        (libc::SYS_accept4, "accept4"),
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_epoll_pwait, "epoll_pwait"),
        (libc::SYS_epoll_pwait2, "epoll_pwait2"),
        (libc::SYS_epoll_wait, "epoll_wait"),
        (libc::SYS_fcntl, "fcntl"),
        (libc::SYS_flock, "flock"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_io_uring_enter, "io_uring_enter"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_poll, "poll"),
        (libc::SYS_ppoll, "ppoll"),
        (libc::SYS_pselect6, "pselect6"),
        (libc::SYS_read, "read"),
        (libc::SYS_readv, "readv"),
        (libc::SYS_recvfrom, "recvfrom"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_sendmsg, "sendmsg"),
        (libc::SYS_sendto, "sendto"),
        (libc::SYS_wait4, "wait4"),
        (libc::SYS_write, "write"),
    ];
    match call {
        None => "a page fault".into(),
        Some(call) => match NAMES.iter().find(|(number, _)| *number == call) {
            Some((_, name)) => (*name).into(),
            None => format!("the system call {call}"),
        },
    }
}

#[cfg(test)]
mod tests;
