//! Reading and writing: attempts that never block, and the loops around them.
//!
//! Four ways to try without blocking, in this order:
//! * `preadv2`/`pwritev2` with `RWF_NOWAIT`: sockets, pipes, event descriptors, and files as far as
//!   they are in the page cache;
//! * sockets before Linux 6.5, which do not know that flag: a message with `MSG_DONTWAIT`;
//! * other descriptors without that flag (devices; pipes before Linux 6.5): `poll` without waiting,
//!   then the plain call; [terminals](tty) need more;
//! * descriptors that cannot be polled either (a file whose pages are on disk): the plain call, on
//!   a pool thread.

use crate::forward::{checked, dedicated_call};
use crate::fs::cached::is_on_device;
use crate::io::pieces::{self, after, transfer_all};
use crate::io::simulated_sockets;
use crate::io::tty;
use crate::registry::interposed;
use crate::{cancel, simulated, virtual_thread};
use core::ffi::{c_int, c_long, c_void};
use core::ptr;
use libc::{aiocb, iovec, off_t, sigevent, size_t, ssize_t, timespec};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch;
use pirn_rt::blocking::fds::readiness::{FdCall, Interest};
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sys::{self, Errno, SysResult, call, page_size};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::WaitReason;

const READ: [c_long; 3] = [libc::SYS_pread64, libc::SYS_preadv2, libc::SYS_preadv];
const WRITE: [c_long; 3] = [libc::SYS_pwrite64, libc::SYS_pwritev2, libc::SYS_pwritev];
const READV: [c_long; 2] = [libc::SYS_preadv, libc::SYS_preadv2];
const WRITEV: [c_long; 2] = [libc::SYS_pwritev, libc::SYS_pwritev2];

type Requests = *const *mut aiocb;

interposed! {
    family "Reading and writing in several buffers, at offsets, with flags, by requests" for Scaling,
        cannot "park with flags: calls that may wait run on a platform thread of their own, on files on the pool";

    Parks by hand { readv, writev }
    Cached as {
        fn pread(fd: c_int, buffer: *mut c_void, length: size_t, offset: off_t) -> ssize_t
            = positioned(READ, fd, buffer, length, offset);
        fn pwrite(fd: c_int, buffer: *const c_void, length: size_t, offset: off_t) -> ssize_t
            = positioned(WRITE, fd, buffer.cast_mut(), length, offset);
        fn preadv(fd: c_int, iov: *const iovec, count: c_int, offset: off_t) -> ssize_t
            = positioned_vectored(READV, fd, iov, count, offset);
        fn pwritev(fd: c_int, iov: *const iovec, count: c_int, offset: off_t) -> ssize_t
            = positioned_vectored(WRITEV, fd, iov, count, offset);
        fn __pread_chk(
            fd: c_int, buffer: *mut c_void, length: size_t, offset: off_t, room: size_t,
        ) -> ssize_t = checked(length, room, || pread(fd, buffer, length, offset));
    }
    Cached alias {
        pread64 = pread, __pread64 = pread, __pread64_chk = __pread_chk, preadv64 = preadv,
        pwrite64 = pwrite, __pwrite64 = pwrite, pwritev64 = pwritev,
    }
    Parks as {
        fn preadv2(fd: c_int, iov: *const iovec, count: c_int, offset: off_t, flags: c_int)
            -> ssize_t = flagged(libc::SYS_preadv2, fd, iov, count, offset, flags);
        fn pwritev2(fd: c_int, iov: *const iovec, count: c_int, offset: off_t, flags: c_int)
            -> ssize_t = flagged(libc::SYS_pwritev2, fd, iov, count, offset, flags);
    }
    Parks alias { preadv64v2 = preadv2, pwritev64v2 = pwritev2 }
    // libc's own threads perform the requests.
    Dedicated as {
        fn aio_suspend(requests: Requests, count: c_int, timeout: *const timespec) -> c_int
            = cancel::own_point(move || dedicated_call(c"aio_suspend", || libcs!()));
        fn lio_listio(mode: c_int, requests: Requests, count: c_int, event: *mut sigevent) -> c_int
            = match mode {
                libc::LIO_WAIT => dedicated_call(c"lio_listio", || libcs!()),
                _ => libcs!(),
            };
    }
    Dedicated alias { aio_suspend64 = aio_suspend, lio_listio64 = lio_listio }
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));
/// The offset -1: the descriptor's own position.
pub(super) const HERE: isize = -1;
/// Returns the maximum number of bytes that the kernel reads or writes in one call
/// (`MAX_RW_COUNT`).
pub(crate) fn most() -> usize {
    i32::MAX as usize & !(page_size() - 1)
}

/// Returns whether a descriptor has these events right now.
pub(crate) fn is_ready(fd: c_int, events: i16) -> bool {
    sys::events_now(fd, events) != 0
}

/// Returns whether `preadv2` or `pwritev2` does not support `RWF_NOWAIT`: the file does not know
/// the flag, the kernel does not know the call, or a seccomp profile forbids it. (Other reasons for
/// `EPERM` show again in the plain call.)
pub(super) fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno(libc::EOPNOTSUPP | libc::ENOSYS | libc::EPERM))
}

/// Returns the arguments of a system call with these buffers.
fn described(fd: c_int, iov: *const iovec, count: c_int, offset: isize) -> [usize; 4] {
    [fd as usize, iov.addr(), count as usize, offset as usize]
}

/// Reads or writes once without `RWF_NOWAIT`, when `poll` says that it will not wait. `EPERM`:
/// `poll` cannot tell, because files are always ready; the pool must make the call. Nor does it
/// tell enough of a [terminal](tty::TERMINAL).
pub(super) fn unflagged(fd: c_int, events: i16, plain: impl FnOnce() -> SysResult) -> SysResult {
    if tty::is_terminal(fd) {
        Err(tty::TERMINAL)
    } else if is_on_device(fd) {
        Err(Errno(libc::EPERM))
    } else if is_ready(fd, events) {
        plain()
    } else {
        EAGAIN
    }
}

/// Reads at the descriptor's position, into one buffer.
///
/// # Safety
/// As for `read(2)`.
pub(crate) unsafe fn read_buffer(fd: c_int, buffer: *mut c_void, length: usize) -> SysResult {
    let iov = iovec {
        iov_base: buffer,
        iov_len: length,
    };
    // SAFETY: the caller's contract.
    unsafe { read_wanted(fd, &iov, 1, || asked(buffer.addr(), length)) }
}

/// Reads at the descriptor's position, into several buffers.
///
/// # Safety
/// As for `readv(2)`.
unsafe fn read_vectored(fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    // SAFETY: the caller's contract.
    unsafe { read_wanted(fd, iov, count, || asked_of_all(iov, count)) }
}

/// Returns the number of bytes that a buffer has room for. `None`: the kernel will not accept it.
pub(crate) fn asked(address: usize, length: usize) -> Option<usize> {
    let end = address.checked_add(length)?;
    (end <= arch::END_OF_PROGRAM).then_some(length)
}

/// Returns the number of bytes that some buffers have room for. `None`: as for [`asked`].
pub(crate) fn asked_of_all(iov: *const iovec, count: c_int) -> Option<usize> {
    if count > libc::UIO_MAXIOV {
        return None;
    }
    let mut total = 0usize;
    for i in 0..usize::try_from(count).ok()? {
        let vector = iov.addr().checked_add(i * size_of::<iovec>())?;
        let [address, length] = [vector, vector + size_of::<usize>()].map(sys::fetch_u64);
        total = total.checked_add(asked(address.ok()? as usize, length.ok()? as usize)?)?;
    }
    Some(total)
}

/// Reads at the descriptor's position. `asked` is as [`asked`] for the buffers.
///
/// # Safety
/// As for `readv(2)`.
#[inline]
unsafe fn read_wanted(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    asked: impl Fn() -> Option<usize>,
) -> SysResult {
    // SAFETY: the caller's contract, here and below.
    let plain = move || unsafe { call!(libc::SYS_readv, fd, iov, count) };
    if virtual_thread().is_none() {
        return plain();
    }
    // SAFETY: the caller's contract.
    if let Some(result) = unsafe { simulated::call(libc::SYS_readv, described(fd, iov, count, 0)) }
    {
        return result;
    }
    // SAFETY: the caller's contract.
    let now = || unsafe { now(libc::SYS_preadv2, fd, iov, count, HERE) };
    let whole = Parts { fd, iov, count };
    let attempt = || match now() {
        // SAFETY: the kernel has accepted the buffers.
        Ok(done) => unsafe { whole.finish(done, HERE, [libc::SYS_preadv2, libc::SYS_readv]) },
        // What the plain call gives is all that there is.
        Err(e) if is_unsupported(e) => unflagged(fd, libc::POLLIN, plain),
        EAGAIN if fds::is_shut(fd) => plain(), // It will not wait, and says so only to this call.
        result => result,
    };
    let wanted = || asked().map_or(0, |bytes| bytes.min(most()));
    let mut call = FdCall::new(fd, Interest::Read);
    if call.has_low_water()
        && let least @ 2.. = pieces::least(fd, 0, &asked)
    {
        let no_address = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the caller's contract; the buffers have been read.
        return unsafe { pieces::receive_from(fd, (iov, count as usize), 0, no_address, least) };
    }
    match call.read(wanted, attempt) {
        // SAFETY: the kernel has accepted the buffers.
        Err(tty::TERMINAL) => unsafe { tty::read(fd, iov, count) },
        Err(Errno(libc::EPERM)) if fds::may_be_file(fd) => {
            pool::bounded(on_file(libc::SYS_readv), plain)
        }
        // A non-blocking file waits for its disk all the same.
        EAGAIN if fds::may_be_file(fd) => pool::bounded(on_file(libc::SYS_readv), plain),
        result => result,
    }
}

/// Calls `preadv2` or `pwritev2` for the part that needs no waiting.
///
/// # Safety
/// As for `preadv2(2)`.
pub(super) unsafe fn now(
    number: c_long,
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    offset: isize,
) -> SysResult {
    // The offset takes two words; a 64-bit kernel uses the first.
    // SAFETY: the caller's contract.
    match unsafe { call!(number, fd, iov, count, offset, 0, libc::RWF_NOWAIT) } {
        // SAFETY: the caller's contract.
        UNFLAGGED if offset == HERE => unsafe { message_now(number, fd, iov, count) },
        result => result,
    }
}

/// The file does not know `RWF_NOWAIT`. The kernel has accepted the buffers, which are not empty.
const UNFLAGGED: SysResult = Err(Errno(libc::EOPNOTSUPP));

/// Does what [`now`] does where sockets do not know `RWF_NOWAIT`, before Linux 6.5.
///
/// # Safety
/// As for [`now`].
#[cold]
unsafe fn message_now(number: c_long, fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    let mut message = pieces::message_of(iov, count as usize);
    let (number, flags) = match number {
        libc::SYS_preadv2 => (libc::SYS_recvmsg, 0),
        // As `write` does: `sock_write_iter` in net/socket.c.
        _ if pieces::option(fd, libc::SO_TYPE) == Some(libc::SOCK_SEQPACKET) => {
            (libc::SYS_sendmsg, libc::MSG_EOR)
        }
        _ => (libc::SYS_sendmsg, 0),
    };
    // SAFETY: the caller's contract.
    match unsafe { call!(number, fd, &raw mut message, flags | libc::MSG_DONTWAIT) } {
        Err(Errno(libc::ENOTSOCK)) => UNFLAGGED,
        result => result,
    }
}

/// The buffers of a call on a file that may be done in part only: with `RWF_NOWAIT` the kernel
/// stops at the first page that is not in memory, where the plain call goes on.
#[derive(Clone, Copy)]
struct Parts {
    fd: c_int,
    iov: *const iovec,
    count: c_int,
}

impl Parts {
    /// Finishes a call that has transferred `done` bytes, from `offset` or [`HERE`]. `calls` are
    /// the call that takes flags, and the plain one, for the rest.
    ///
    /// If two threads read at a shared position, one may so get bytes from the other's range.
    ///
    /// # Safety
    /// The kernel has accepted the buffers.
    #[inline]
    unsafe fn finish(self, done: usize, offset: isize, calls: [c_long; 2]) -> SysResult {
        // SAFETY: the caller's contract. One buffer is the common case, and needs no sum.
        let total = unsafe { self.total() };
        if done == 0 || done >= total || !fds::may_be_file(self.fd) {
            return Ok(done);
        }
        // SAFETY: the caller's contract.
        unsafe { self.finish_file(done, total, offset, calls) }
    }

    #[cold]
    unsafe fn finish_file(
        self,
        done: usize,
        total: usize,
        offset: isize,
        [flagged, plain]: [c_long; 2],
    ) -> SysResult {
        // SAFETY: the caller's contract: the kernel has just read them.
        let all = unsafe { core::slice::from_raw_parts(self.iov, self.count as usize) };
        let rest = transfer_all(total - done, |more| {
            let rest = after(all, done + more);
            let at = if offset == HERE {
                HERE
            } else {
                offset + (done + more) as isize
            };
            let (iov, count) = (rest.as_ptr(), rest.len() as c_int);
            // SAFETY: parts of the caller's buffers. 0 bytes here mean the end of the file.
            match unsafe { now(flagged, self.fd, iov, count, at) } {
                // SAFETY: parts of the caller's buffers. 0 bytes here mean the end of the file.
                Err(_) => pool::bounded(on_file(plain), || unsafe {
                    call!(plain, self.fd, iov, count, at, 0)
                }),
                result => result,
            }
        });
        Ok(done + rest.unwrap_or(0))
    }

    /// Writes the rest of some buffers after their first `done` bytes. `limit` is the deadline,
    /// if there has been a wait. Returns the number of bytes written in all.
    ///
    /// # Safety
    /// The kernel has accepted the buffers.
    #[cold]
    unsafe fn write_rest(self, done: usize, total: usize, limit: Option<Deadline>) -> usize {
        let Parts { fd, iov, count } = self;
        // SAFETY: the caller's contract.
        let all = unsafe { core::slice::from_raw_parts(iov, count as usize) };
        if pieces::family(fd).is_some() {
            // SAFETY: the caller's contract.
            return unsafe { pieces::send_rest(fd, all, done, 0, limit) };
        }
        if fds::may_be_file(fd) {
            let calls = [libc::SYS_pwritev2, libc::SYS_writev];
            // SAFETY: the caller's contract.
            let rest = unsafe { self.finish_file(done, total, HERE, calls) };
            return rest.unwrap_or(done);
        }
        let call = FdCall::new(fd, Interest::Write).until(Deadline::NEVER);
        let more = call.in_pieces(done..total, |done| {
            let rest = after(all, done);
            // SAFETY: parts of the caller's buffers.
            unsafe { write_now(fd, rest.as_ptr(), rest.len() as c_int) }
        });
        more.unwrap_or(done)
    }

    /// Returns the total number of bytes, at most what the kernel does in one call.
    ///
    /// # Safety
    /// The kernel has accepted the buffers.
    unsafe fn total(self) -> usize {
        if self.count <= 0 {
            return 0; // There may be no address either.
        }
        // SAFETY: the caller's contract.
        let all = unsafe { core::slice::from_raw_parts(self.iov, self.count as usize) };
        all.iter().map(|v| v.iov_len).sum::<usize>().min(most())
    }
}

/// Writes at the descriptor's position: all of it, as a blocking write does, unless there is an
/// error or the descriptor is non-blocking.
///
/// # Safety
/// As for `writev(2)`.
pub(crate) unsafe fn write_vectored(fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    if virtual_thread().is_none() {
        // SAFETY: the caller's contract.
        return unsafe { call!(libc::SYS_writev, fd, iov, count) };
    }
    // SAFETY: the caller's contract.
    if let Some(result) = unsafe { simulated::call(libc::SYS_writev, described(fd, iov, count, 0)) }
    {
        return result;
    }
    // The kernel sees the buffers first and checks their addresses.
    let mut call = FdCall::new(fd, Interest::Write);
    // SAFETY: the caller's contract.
    let done = unsafe { write_some(&mut call, fd, iov, count)? };
    let whole = Parts { fd, iov, count };
    // SAFETY: the kernel has accepted the buffers.
    match unsafe { whole.total() } {
        total if done == 0 || done >= total => Ok(done),
        // SAFETY: the kernel has accepted the buffers.
        total => Ok(unsafe { whole.write_rest(done, total, call.deadline) }),
    }
}

/// Makes one write, as soon as it can be done.
unsafe fn write_some(call: &mut FdCall, fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    // SAFETY: the caller's contract.
    let attempt = pieces::sending(fd, || unsafe { write_now(fd, iov, count) });
    match call.run(attempt) {
        // SAFETY: the caller's contract.
        Err(tty::TERMINAL) => unsafe { tty::write(fd, iov, count) },
        Err(Errno(libc::EPERM | libc::EAGAIN)) if fds::may_be_file(fd) => {
            // SAFETY: the caller's contract.
            pool::bounded(on_file(libc::SYS_writev), || unsafe {
                call!(libc::SYS_writev, fd, iov, count)
            })
        }
        result => result,
    }
}

/// Makes one write, if it can be done without waiting.
unsafe fn write_now(fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    // SAFETY: the caller's contract.
    unsafe {
        match now(libc::SYS_pwritev2, fd, iov, count, HERE) {
            Err(e) if is_unsupported(e) => unflagged(fd, libc::POLLOUT, || {
                call!(libc::SYS_writev, fd, iov, count)
            }),
            result => result,
        }
    }
}

/// Returns the wait for this system call, which is made on a file by another thread.
pub(super) fn on_file(number: c_long) -> WaitReason {
    WaitReason::call(match number {
        libc::SYS_readv => c"read",
        libc::SYS_writev => c"write",
        libc::SYS_preadv | libc::SYS_preadv2 => c"pread",
        _ => c"pwrite",
    })
}

/// Makes a call on a file at a given offset, on a virtual thread: data in memory needs no pool.
/// `calls` are as for [`Parts::finish`].
///
/// # Safety
/// As for `preadv(2)`.
unsafe fn at_offset(whole: Parts, offset: off_t, calls: [c_long; 2]) -> SysResult {
    if offset < 0 {
        return Err(Errno(libc::EINVAL)); // It must not become `HERE`.
    }
    let Parts { fd, iov, count } = whole;
    let offset = offset as isize;
    // SAFETY: the caller's contract.
    if let Some(result) = unsafe { simulated::call(calls[1], described(fd, iov, count, offset)) } {
        return result;
    }
    // SAFETY: the caller's contract; the kernel has accepted the buffers before `finish`.
    unsafe {
        match now(calls[0], fd, iov, count, offset) {
            Ok(done) => whole.finish(done, offset, calls),
            Err(e) if e == Errno(libc::EAGAIN) || is_unsupported(e) => {
                pool::bounded(on_file(calls[1]), || {
                    call!(calls[1], fd, iov, count, offset, 0)
                })
            }
            result => result,
        }
    }
}

/// Performs `pread` or `pwrite`: calls `plain`, or, on a virtual thread, [`at_offset`].
/// A cancellation point at its beginning: nothing ends the wait for a file.
///
/// # Safety
/// As for `plain`, and [`cancel::point`].
unsafe fn positioned(
    [plain, flagged, vectored]: [c_long; 3],
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    let iov = iovec {
        iov_base: buffer,
        iov_len: length,
    };
    // SAFETY: the caller's contract.
    unsafe {
        if virtual_thread().is_some() {
            return positioned_vectored([vectored, flagged], fd, &raw const iov, 1, offset);
        }
        cancel::beginning();
        sys::to_c(call!(plain, fd, buffer, length, offset))
    }
}

/// Performs `preadv` or `pwritev` in the same way.
///
/// # Safety
/// As for `plain`, and [`cancel::point`].
unsafe fn positioned_vectored(
    [plain, flagged]: [c_long; 2],
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller's contract.
    unsafe {
        cancel::beginning();
        sys::to_c(match virtual_thread() {
            None => call!(plain, fd, iov, count, offset, 0),
            Some(_) => at_offset(Parts { fd, iov, count }, offset, [flagged, plain]),
        })
    }
}

/// Performs `preadv2` or `pwritev2`. Without flags they are `preadv` and `pwritev`; with the offset
/// -1 they are `readv` and `writev`.
///
/// # Safety
/// As for `preadv2(2)`, and [`cancel::point`].
unsafe fn flagged(
    number: c_long,
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    let reads = number == libc::SYS_preadv2;
    let name = if reads { c"preadv2" } else { c"pwritev2" };
    // SAFETY: the caller's contract, here and below.
    let kernel = || unsafe {
        let args = [
            fd as usize,
            iov.addr(),
            count as usize,
            offset as usize,
            0,
            flags as usize,
        ];
        simulated::call(number, args)
            .unwrap_or_else(|| call!(number, fd, iov, count, offset, 0, flags))
    };
    // SAFETY: the caller's contract.
    unsafe {
        match (reads, flags, offset) {
            (true, 0, -1) => readv(fd, iov, count),
            (true, 0, _) => preadv(fd, iov, count, offset),
            (false, 0, -1) => writev(fd, iov, count),
            (false, 0, _) => pwritev(fd, iov, count, offset),
            _ if flags & libc::RWF_NOWAIT != 0 => sys::to_c(kernel()),
            _ if fds::may_be_file(fd) => sys::to_c(pool::bounded(WaitReason::call(name), kernel)),
            _ => sys::to_c(pool::dedicated(WaitReason::call(name), kernel)),
        }
    }
}

#[libc_fn(point)]
pub unsafe fn readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t {
    let place = || pieces::message_of(iov, count.max(0) as usize);
    sys::to_c(match simulated_sockets::receive(fd, place, 0, |_| ()) {
        Some(result) => result,
        None => read_vectored(fd, iov, count),
    })
}

#[libc_fn(point)]
pub unsafe fn writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t {
    let message = || pieces::message_of(iov, count.max(0) as usize);
    let kernel = |_| write_vectored(fd, iov, count);
    sys::to_c(simulated_sockets::send(fd, usize::MAX, message, kernel))
}
