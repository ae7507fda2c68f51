//! `unistd.h`: reading, writing, closing, pipes and duplicates.

use crate::cancel;
use crate::forward::checked;
use crate::fs::cached::file_type;
use crate::io::simulated_sockets;
use crate::io::{pieces, transfer};
use crate::registry::interposed;
use crate::simulated;
use core::ffi::{c_int, c_void};
use libc::{iovec, size_t, ssize_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::readiness::{FdCall, Interest};
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread;
use pirn_rt::vthread::wait_reason::WaitReason;

interposed! {
    family "Descriptors" for Correctness;

    Parks by hand { read, write }
    Kernel by hand {
        close: "virtual threads that wait for the descriptor wake with `EBADF`",
        pipe2, dup, dup2, dup3, closefrom,
    }

    // glibc's own names for the same functions.
    Parks alias { __read = read, __write = write }
    Kernel as {
        fn pipe(fds: *mut c_int) -> c_int = pipe2(fds, 0);
        /// The descriptors of the runtime stay open.
        fn close_range(first: u32, last: u32, flags: c_int) -> c_int
            = sys::to_c(close_all(first, last, flags)) as c_int;
    }
    Kernel alias { __close = close, __pipe = pipe, __dup2 = dup2 }
    Parks as {
        fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t
            = checked(length, room, || read(fd, buffer, length));
    }
}

#[libc_fn(point)]
pub unsafe fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    read_here(fd, buffer, length)
}

/// Reads without asking for a cancellation. Not inlined: then the closure is, and the arguments
/// stay in registers. Dumps know the ending of its name: they show `read`.
///
/// # Safety
/// As for [`read`].
#[inline(never)]
unsafe fn read_here(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe {
        if vthread::parkable().is_none() {
            call!(libc::SYS_read, fd, buffer, length)
        } else if length == 0 {
            read_nothing(fd)
        } else if let Some(result) = receive(fd, buffer, length) {
            result
        } else {
            transfer::read_buffer(fd, buffer, length)
        }
    })
}

/// Reads from a simulated socket.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
unsafe fn receive(fd: c_int, buffer: *mut c_void, length: size_t) -> Option<SysResult> {
    let place = iovec {
        iov_base: buffer,
        iov_len: length,
    };
    // SAFETY: the caller's contract.
    unsafe { simulated_sockets::receive(fd, || pieces::message_of(&raw const place, 1), 0, |_| ()) }
}

#[libc_fn(point)]
pub unsafe fn write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
    write_here(fd, buffer, length)
}

/// Writes without asking for a cancellation. Not inlined, as [`read_here`].
///
/// # Safety
/// As for [`write`].
#[inline(never)]
unsafe fn write_here(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe {
        if vthread::parkable().is_none() {
            call!(libc::SYS_write, fd, buffer, length)
        } else if length == 0 {
            write_nothing(fd)
        } else {
            let iov = |iov_len| iovec {
                iov_base: buffer.cast_mut(),
                iov_len,
            };
            let whole = iov(length);
            let message = || pieces::message_of(&raw const whole, 1);
            simulated_sockets::send(fd, length, message, |part| {
                transfer::write_vectored(fd, &iov(part), 1)
            })
        }
    })
}

/// Reads no bytes, which some kinds refuse, and some devices wait for: `preadv2` does neither.
#[cold]
fn read_nothing(fd: c_int) -> SysResult {
    // SAFETY: no bytes, so no pointers.
    let plain = || unsafe { call!(libc::SYS_read, fd, 0, 0) };
    let kind = file_type(fd).unwrap_or(libc::S_IFREG);
    let waits = kind == libc::S_IFCHR || kind == 0; // 0: an `eventfd` or the like.
    match waits && !transfer::is_ready(fd, libc::POLLIN) {
        true => pool::dedicated(WaitReason::call(c"read"), plain),
        false => plain(),
    }
}

/// Writes no bytes: on a datagram socket that sends an empty datagram, which `pwritev2` would not.
fn write_nothing(fd: c_int) -> SysResult {
    FdCall::new(fd, Interest::Write).run(|| {
        // SAFETY: no bytes, so no pointers; for no bytes only a socket can block.
        match unsafe { call!(libc::SYS_sendto, fd, 0, 0, libc::MSG_DONTWAIT, 0, 0) } {
            // SAFETY: no bytes, so no pointers; for no bytes only a socket can block.
            Err(Errno(libc::ENOTSOCK)) => unsafe { call!(libc::SYS_write, fd, 0, 0) },
            result => result,
        }
    })
}

/// Virtual threads that wait for the descriptor wake with `EBADF`.
#[libc_fn]
pub fn close(fd: c_int) -> c_int {
    // SAFETY: nothing to drop.
    unsafe { cancel::beginning() };
    simulated::closing(fd..=fd);
    let result = fds::close(fd);
    crate::fs::lock::lock_released();
    sys::to_c(result) as c_int
}

#[libc_fn]
pub unsafe fn pipe2(fds: *mut c_int, flags: c_int) -> c_int {
    let result = call!(libc::SYS_pipe2, fds, flags);
    if result.is_ok() {
        for i in 0..2 {
            // SAFETY: the kernel has written two.
            fds::created(unsafe { *fds.add(i) });
        }
    }
    sys::to_c(result) as c_int
}

#[libc_fn]
pub fn dup(fd: c_int) -> c_int {
    // SAFETY: no pointers.
    let result = unsafe { call!(libc::SYS_dup, fd) };
    if let Ok(new) = result {
        simulated::duplicated(fd, new as c_int);
    }
    sys::to_c(result) as c_int
}

#[libc_fn]
pub fn dup2(fd: c_int, new: c_int) -> c_int {
    if fd == new {
        // SAFETY: no pointers.
        let open = unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFD) };
        return sys::to_c(open.map(|_| new as usize)) as c_int;
    }
    dup3(fd, new, 0)
}

/// Closes `new` first, if the call is not refused. `EBUSY`: `new` is a descriptor of the runtime.
#[libc_fn]
pub fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int {
    if fds::is_ours(new) {
        return sys::to_c(Err(Errno(libc::EBUSY))) as c_int;
    }
    // SAFETY: no pointers.
    let exists = unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFD) }.is_ok();
    if exists && fd != new && flags & !libc::O_CLOEXEC == 0 {
        fds::closing(new);
    }
    // SAFETY: no pointers.
    let result = unsafe { call!(libc::SYS_dup3, fd, new, flags) };
    if result.is_ok() {
        simulated::duplicated(fd, new);
    }
    sys::to_c(result) as c_int
}

/// Closes a range of descriptors, or marks it.
fn close_all(first: u32, last: u32, flags: c_int) -> SysResult {
    if flags as u32 & libc::CLOSE_RANGE_CLOEXEC == 0 && first <= last {
        let number = |it: u32| c_int::try_from(it).unwrap_or(c_int::MAX);
        simulated::closing(number(first)..=number(last));
    }
    fds::close_range(first, last, flags)
}

#[libc_fn]
pub fn closefrom(first: c_int) {
    if close_all(first.max(0) as u32, u32::MAX, 0).is_err() {
        // The kernel does not have the call. libc looks in `/proc`, and aborts if that is not
        // mounted.
        // SAFETY: no pointers.
        unsafe { libcs!() };
    }
}
