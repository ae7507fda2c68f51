//! Moving bytes between descriptors inside the kernel: `copy_file_range`, `sendfile`, `splice` and
//! related calls.
//!
//! Between files these end by themselves, and run on the pool. A pipe can be told not to wait
//! (`SPLICE_F_NONBLOCK`); the virtual thread then parks until it is ready. These calls cannot tell
//! a socket not to wait:
//! * `sendfile` to anything but a file copies through a buffer, as a loop of `pread` and `write`
//!   does;
//! * `splice` with a socket waits until both sides are ready and then uses a thread of its own.

use crate::forward::bounded_call;
use crate::fs::cached::file_type;
use crate::io::pieces::transfer_all;
use crate::io::transfer::{self, is_ready};
use crate::registry::interposed;
use crate::{cancel, simulated, virtual_thread, zeros};
use core::ffi::{c_int, c_uint};
use libc::{iovec, off_t, size_t, ssize_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::readiness::{FdCall, Interest};
use pirn_rt::blocking::fds::status_flags;
use pirn_rt::blocking::pool;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::WaitReason;

interposed! {
    family "Moving bytes inside the kernel" for Scaling;

    Pool as {
        /// `std::fs::copy` calls this.
        fn copy_file_range(
            from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, length: size_t, flags: c_uint
        ) -> ssize_t = cancel::own_point(move || bounded_call(
            c"copy_file_range",
            libc::SYS_copy_file_range,
            [
                from as usize, from_at.expose_provenance(), to as usize, to_at.expose_provenance(),
                length, flags as usize,
            ],
        ));
    }
    Parks by hand {
        sendfile: "between files, on the pool",
        splice: "with a socket, on a platform thread of its own",
        tee, vmsplice,
    }
    Parks alias { sendfile64 = sendfile }
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));
/// The number of bytes copied at once.
const CHUNK: usize = 64 << 10;

/// The kinds of descriptors that these calls distinguish.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileKind {
    /// Always ready; the kernel may wait for its device.
    File,
    Pipe,
    Socket,
    /// A terminal.
    Device,
}

impl FileKind {
    /// Returns whether the kernel waits for it even if it is told not to.
    fn waits(self) -> bool {
        self == FileKind::Socket || self == FileKind::Device
    }
}

fn kind(fd: c_int) -> FileKind {
    match file_type(fd) {
        Some(libc::S_IFIFO) => FileKind::Pipe,
        Some(libc::S_IFSOCK) => FileKind::Socket,
        Some(libc::S_IFCHR) => FileKind::Device,
        _ => FileKind::File, // Or not open, which the kernel will report.
    }
}

/// Parks until a descriptor is ready. `EAGAIN`: it is not ready, and the program has made it
/// non-blocking, or its time limit has passed.
fn wait_until_ready(fd: c_int, interest: Interest) -> SysResult {
    let events = match interest {
        Interest::Read => libc::POLLIN,
        Interest::Write => libc::POLLOUT,
    };
    FdCall::new(fd, interest).run(|| if is_ready(fd, events) { Ok(0) } else { EAGAIN })
}

#[libc_fn]
pub unsafe fn sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    let kernel = |count| {
        let args = [out as usize, from as usize, offset.addr(), count];
        simulated::call(libc::SYS_sendfile, args)
            .unwrap_or_else(|| call!(libc::SYS_sendfile, out, from, offset, count))
    };
    let sent = || WaitReason::call(c"sendfile");
    let (source, sink) = (kind(from), kind(out));
    let ends = sink == FileKind::File || status_flags::is_nonblocking(out);
    sys::to_c(if virtual_thread().is_none() {
        kernel(count)
    } else if ends {
        pool::bounded(sent(), || kernel(count))
    } else if sink == FileKind::Pipe {
        // To a pipe it is the same call.
        let splice = |flags| {
            let no_offset = 0;
            call!(libc::SYS_splice, from, offset, out, no_offset, count, flags)
        };
        moving(from, out, count, 0, splice)
    } else if source == FileKind::File && sink == FileKind::Socket {
        // Without bytes the kernel only looks at the arguments.
        kernel(0).and_then(|_| copy(out, from, offset, count))
    } else {
        pool::dedicated(sent(), || kernel(count))
    })
}

/// # Safety
/// As for `sendfile(2)`.
unsafe fn copy(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> SysResult {
    // SAFETY: no pointers.
    let seek = |to: off_t, whence: c_int| unsafe { call!(libc::SYS_lseek, from, to, whence) };
    // SAFETY: the caller's pointer, or null.
    let start = match unsafe { offset.as_ref() } {
        Some(offset) => *offset,
        None => seek(0, libc::SEEK_CUR)? as off_t,
    };
    if start < 0 {
        return Err(Errno(libc::EINVAL));
    }
    let mut buffer = zeros(count.min(CHUNK))?;
    let result = transfer_all(count, |done| {
        let chunk = &mut buffer[..(count - done).min(CHUNK)];
        copy_chunk(out, from, start + done as off_t, chunk)
    });
    let end = start + result.unwrap_or(0) as off_t;
    // SAFETY: the caller's pointer, or null.
    match unsafe { offset.as_mut() } {
        Some(offset) => *offset = end,
        None => seek(end, libc::SEEK_SET).map(drop)?,
    }
    result
}

/// Copies one chunk, as far as the data is available. Returns 0 at the end of the file.
fn copy_chunk(out: c_int, from: c_int, at: off_t, chunk: &mut [u8]) -> SysResult {
    // SAFETY: the buffer is writable for its length.
    let read = unsafe { transfer::pread(from, chunk.as_mut_ptr().cast(), chunk.len(), at) };
    let Ok(read) = usize::try_from(read) else {
        return Err(Errno(sys::errno()));
    };
    if read == 0 {
        return Ok(0);
    }
    let part = iovec {
        iov_base: chunk.as_mut_ptr().cast(),
        iov_len: read,
    };
    // SAFETY: the first part of the buffer.
    unsafe { transfer::write_vectored(out, &part, 1) }
}

/// Moves up to `length` bytes from `from` to `to` by `operation(flags)`. At least
/// one of the two is a pipe.
fn moving(
    from: c_int,
    to: c_int,
    length: size_t,
    flags: c_uint,
    operation: impl Fn(c_uint) -> SysResult,
) -> SysResult {
    let kinds = [kind(from), kind(to)];
    // Without a pipe the kernel refuses the call.
    if virtual_thread().is_none() || length == 0 || !kinds.contains(&FileKind::Pipe) {
        return operation(flags);
    }
    let once = || operation(flags | libc::SPLICE_F_NONBLOCK);
    let waits = kinds.iter().any(|kind| kind.waits());
    let mut attempted = false;
    loop {
        // The first attempt also tells what is refused. It is left out if it might wait.
        if flags & libc::SPLICE_F_NONBLOCK == 0 && (attempted || waits) {
            wait_until_ready(from, Interest::Read)?;
            wait_until_ready(to, Interest::Write)?;
        }
        attempted = true;
        let result = if waits {
            pool::dedicated(WaitReason::call(c"splice"), once)
        } else if kinds.contains(&FileKind::File) {
            pool::bounded(WaitReason::call(c"splice"), once)
        } else {
            once()
        };
        // Not ready, or another thread was faster: unless the program does not want to wait.
        let again = result == EAGAIN
            && flags & libc::SPLICE_F_NONBLOCK == 0
            && !status_flags::is_nonblocking(from)
            && !status_flags::is_nonblocking(to);
        if !again {
            return result;
        }
    }
}

#[libc_fn]
pub unsafe fn splice(
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    let call = move |flags| unsafe {
        // SAFETY: the caller's contract.
        let (from_at, to_at) = (from_at.addr(), to_at.addr());
        let args = [
            from as usize,
            from_at,
            to as usize,
            to_at,
            length,
            flags as usize,
        ];
        simulated::call(libc::SYS_splice, args)
            .unwrap_or_else(|| call!(libc::SYS_splice, from, from_at, to, to_at, length, flags))
    };
    // SAFETY: nothing to drop.
    unsafe { cancel::own_point(move || sys::to_c(moving(from, to, length, flags, call))) }
}

#[libc_fn]
pub fn tee(from: c_int, to: c_int, length: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: no pointers.
    let call = move |flags| unsafe { call!(libc::SYS_tee, from, to, length, flags) };
    let ours = move || match [from, to].map(kind) {
        [FileKind::Pipe, FileKind::Pipe] => moving(from, to, length, flags, call),
        _ => call(flags), // Refused.
    };
    // SAFETY: nothing to drop.
    unsafe { cancel::own_point(move || sys::to_c(ours())) }
}

/// Into a pipe's writing end, or out of its reading end.
#[libc_fn]
pub unsafe fn vmsplice(fd: c_int, iov: *const iovec, count: size_t, flags: c_uint) -> ssize_t {
    let kernel = move |flags| call!(libc::SYS_vmsplice, fd, iov, count, flags);
    // SAFETY: nothing to drop.
    unsafe { cancel::own_point(move || sys::to_c(mapping(fd, flags, kernel))) }
}

/// Calls `kernel(flags)`, which is `vmsplice` with this descriptor; parks in between.
fn mapping(fd: c_int, flags: c_uint, kernel: impl Fn(c_uint) -> SysResult) -> SysResult {
    if virtual_thread().is_none() || flags & libc::SPLICE_F_NONBLOCK != 0 {
        return kernel(flags);
    }
    let mode = sys::status_flags(fd).unwrap_or(0) & libc::O_ACCMODE;
    let interest = if mode == libc::O_RDONLY {
        Interest::Read
    } else {
        Interest::Write
    };
    let mut call = FdCall::new(fd, interest).until(Deadline::NEVER);
    call.run(|| kernel(flags | libc::SPLICE_F_NONBLOCK))
}
