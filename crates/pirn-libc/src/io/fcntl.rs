//! `fcntl.h`, `sys/ioctl.h`: flags of descriptors, and duplicates made with `F_DUPFD`.
//!
//! All three functions are variadic in C; [`syscall`](crate::by_number::syscall) explains
//! why their arguments may be declared here.

use crate::fs::lock;
use crate::io::simulated_sockets;
use crate::io::tty;
use crate::registry::interposed;
use crate::simulated;
use crate::{cancel, virtual_thread};
use core::ffi::{c_int, c_ulong};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::status_flags;
use pirn_rt::sys::{self, SysResult, call};

interposed! {
    family "Flags of descriptors" for Correctness;

    Parks by hand {
        fcntl: "waits only with `F_SETLKW` and `F_OFD_SETLKW`, and does not notice deadlocks",
    }
    // Programs built against glibc 2.28 or later call `fcntl64`.
    Parks alias { fcntl64 = fcntl, __fcntl = fcntl }
    Kernel by hand { ioctl: "blocks the carrier for as long as the device makes it wait" }
}

#[libc_fn]
pub unsafe fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let control = move || sys::to_c(control(fd, command, argument)) as c_int;
        match command {
            libc::F_SETLKW | libc::F_OFD_SETLKW => cancel::own_point(control),
            _ => control(),
        }
    }
}

unsafe fn control(fd: c_int, command: c_int, argument: usize) -> SysResult {
    // SAFETY: the caller's contract, here and below.
    let kernel = |command: c_int| unsafe { call!(libc::SYS_fcntl, fd, command, argument) };
    // SAFETY: no pointers.
    let set_flags = |flags: c_int| unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETFL, flags) };
    let flags = argument as c_int;
    match command {
        libc::F_SETLKW | libc::F_OFD_SETLKW if virtual_thread().is_some() => {
            let try_command = if command == libc::F_SETLKW {
                libc::F_SETLK
            } else {
                libc::F_OFD_SETLK
            };
            lock::lock_patiently(fd, || kernel(try_command))
        }
        libc::F_SETFL => status_flags::change(fd, flags & libc::O_NONBLOCK != 0, |on| {
            let nonblock = if on { libc::O_NONBLOCK } else { 0 };
            set_flags(flags & !libc::O_NONBLOCK | nonblock)
        }),
        libc::F_GETFL => {
            kernel(command).map(|now| status_flags::visible(fd, now as c_int) as usize)
        }
        _ => {
            let result = kernel(command);
            if let Ok(value) = result {
                note(fd, command, value);
            }
            result
        }
    }
}

/// Updates the table of descriptors.
fn note(fd: c_int, command: c_int, value: usize) {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => simulated::duplicated(fd, value as c_int),
        libc::F_SETLK | libc::F_OFD_SETLK => lock::lock_released(),
        _ => {}
    }
}

/// `std` makes a socket non-blocking with `FIONBIO`.
#[libc_fn]
pub unsafe fn ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int {
    let kernel = |argument: usize| call!(libc::SYS_ioctl, fd, request, argument);
    if tty::changes(request) {
        let call = || kernel(argument);
        return sys::to_c(tty::in_foreground(fd, libc::SIGTTOU, call)) as c_int;
    }
    if request == libc::FIONREAD
        && let Some(size) = simulated_sockets::next_datagram(fd)
    {
        // SAFETY: the caller's place for an int.
        unsafe { (argument as *mut c_int).write(size) };
        return 0;
    }
    if request != libc::FIONBIO || !pirn_rt::sched::runtime::is_started() {
        return sys::to_c(kernel(argument)) as c_int;
    }
    let on = match sys::fetch_u32(argument) {
        Ok(on) => on != 0,
        Err(e) => return sys::to_c(Err(e)) as c_int,
    };
    sys::to_c(status_flags::change(fd, on, |on| {
        let on = c_int::from(on);
        kernel((&raw const on).addr())
    })) as c_int
}
