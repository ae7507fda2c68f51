//! `termios.h`; and reading from and writing to terminals, which have no flag for "do not wait".
//!
//! `poll` says when there is something to read or room to write. That is not enough:
//! * a raw terminal's read ends by `VMIN` and `VTIME`, perhaps without a byte;
//! * a write waits until all is written, and the kernel does not tell how much has room. A platform
//!   thread of its own writes a text that is longer than [`SHORT`] in one call, so that the lines
//!   of several writers stay whole;
//! * in a background process the kernel sends `SIGTTIN` or `SIGTTOU`, unless the thread that makes
//!   the call blocks the signal, as carriers do. So a platform thread makes the call, with the mask
//!   of the virtual thread.

use crate::cancel;
use crate::forward::{dedicated_call, from_c};
use crate::io::pieces::after;
use crate::io::transfer::{asked_of_all, is_ready};
use crate::registry::interposed;
use crate::virtual_thread;
use core::cell::Cell;
use core::ffi::c_int;
use libc::{iovec, termios};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::readiness::{self, FdCall, Interest, Restarts};
use pirn_rt::blocking::fds::status_flags;
use pirn_rt::blocking::pool;
use pirn_rt::blocking::retry::Retry;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::signals;
use pirn_rt::vthread::wait_reason::WaitReason;
use pirn_rt::vthread::wait_word::Interruptible;

interposed! {
    family "Terminals" for Scaling;

    Dedicated as {
        fn tcdrain(fd: c_int) -> c_int
            = cancel::own_point(move || dedicated_call(c"tcdrain", || libcs!()));
    }
    Dedicated { fn tcsendbreak(fd: c_int, duration: c_int) -> c_int; }
    Dedicated by hand { tcsetattr: "unless it is to act at once" }
}

#[libc_fn]
pub unsafe fn tcsetattr(fd: c_int, when: c_int, settings: *const termios) -> c_int {
    match when {
        libc::TCSANOW => {
            let set = || from_c(libcs!());
            sys::to_c(in_foreground(fd, libc::SIGTTOU, set)) as c_int
        }
        _ => dedicated_call(c"tcsetattr", || libcs!()),
    }
}

/// The result of an attempt to read or write without waiting, if the descriptor is a terminal.
pub(super) const TERMINAL: Errno = Errno(libc::ENOTTY);
/// The number of bytes for which there is room if there is any: pseudo-terminals keep 256, and a
/// line feed may become two bytes.
pub(super) const SHORT: usize = 128;
/// The unit of `VTIME`.
const TENTH_NS: u64 = 100_000_000;

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));
/// The threads that wait for several bytes, by `VMIN`. When the kernel decides whether to wake
/// them, it does not count the bytes that they have taken already.
static READERS: Retry = Retry::new(1_000_000);

fn control<T>(fd: c_int, request: libc::Ioctl, place: &mut T) -> SysResult {
    // SAFETY: the requests that are made here write at most a `T`.
    unsafe { call!(libc::SYS_ioctl, fd, request, &raw mut *place) }
}

fn settings(fd: c_int) -> Option<termios> {
    // SAFETY: numbers. The kernel's structure is the beginning of libc's.
    let mut settings: termios = unsafe { core::mem::zeroed() };
    control(fd, libc::TCGETS, &mut settings).ok()?;
    Some(settings)
}

/// Returns whether a descriptor is a terminal.
pub(super) fn is_terminal(fd: c_int) -> bool {
    settings(fd).is_some()
}

/// Returns whether it is the other side of a terminal.
fn is_master(fd: c_int) -> bool {
    control(fd, libc::TIOCGPTN, &mut 0u32).is_ok()
}

/// Returns whether the process is in the background of its terminal, if that is the descriptor.
fn is_in_background(fd: c_int) -> bool {
    let mut group = 0;
    // SAFETY: no pointers.
    let own = || unsafe { call!(libc::SYS_getpgid, 0) }.unwrap_or(0);
    control(fd, libc::TIOCGPGRP, &mut group).is_ok()
        && group > 0
        && own() != group as usize
        && !is_master(fd)
}

/// Makes a call for which the kernel stops a background process by `signal`.
pub(super) fn in_foreground(
    fd: c_int,
    signal: c_int,
    call: impl FnOnce() -> SysResult,
) -> SysResult {
    if virtual_thread().is_none() || !is_in_background(fd) {
        return call();
    }
    let blocked = signals::mask() & signals::bit(signal) != 0;
    pool::dedicated(WaitReason::call(c"ioctl"), || {
        if !blocked {
            sys::unblock_signal(signal);
        }
        call()
    })
}

/// Returns whether a request to a terminal is one for which the kernel stops a background process.
pub(super) fn changes(request: libc::c_ulong) -> bool {
    const FIRST: libc::c_ulong = libc::TCSETS;
    const LAST: libc::c_ulong = libc::TCFLSH;
    matches!(
        request,
        FIRST..=LAST | libc::TCSBRKP | libc::TIOCSPGRP | libc::TIOCSETD
    ) || matches!(request, libc::TCSETS2 | libc::TCSETSW2 | libc::TCSETSF2)
}

/// Returns how many bytes there are to read.
fn available(fd: c_int) -> usize {
    let mut count: c_int = 0;
    control(fd, libc::TIOCINQ, &mut count).map_or(0, |_| count as usize)
}

/// Reads as the kernel does for a virtual thread.
///
/// # Safety
/// As for `readv(2)`.
pub(super) unsafe fn read(fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    // SAFETY: the caller's contract.
    let plain = || unsafe { call!(libc::SYS_readv, fd, iov, count) };
    // Without bytes, the kernel looks at the process only.
    // SAFETY: no bytes, so no pointers.
    let nothing = || unsafe { call!(libc::SYS_read, fd, 0, 0) };
    in_foreground(fd, libc::SIGTTIN, nothing)?;
    let raw = settings(fd).filter(|it| it.c_lflag & libc::ICANON == 0 && !is_master(fd));
    match (asked_of_all(iov, count), raw) {
        _ if status_flags::is_nonblocking(fd) => plain(),
        (Some(0), _) => plain(),
        (Some(wanted), Some(raw)) => {
            // SAFETY: it has been read.
            let all = unsafe { core::slice::from_raw_parts(iov, count as usize) };
            let [least, tenths] = [libc::VMIN, libc::VTIME].map(|it| raw.c_cc[it].into());
            read_raw(fd, all, wanted, least, tenths as u64 * TENTH_NS)
        }
        _ => blocking(fd, Interest::Read, Deadline::NEVER, || {
            match is_ready(fd, libc::POLLIN) {
                true => plain(),
                false => EAGAIN,
            }
        }),
    }
}

/// Waits as the kernel does for a terminal: `SA_RESTART` holds with a time limit, too. A read that
/// waits when the other side of a pseudo-terminal is closed fails; later ones find the end.
fn blocking(
    fd: c_int,
    interest: Interest,
    limit: Deadline,
    mut attempt: impl FnMut() -> SysResult,
) -> SysResult {
    let waited = Cell::new(false);
    let attempt = || unless_cut(fd, &waited, attempt());
    let call = FdCall::new(fd, interest).until(limit);
    call.restarting(Restarts::Always).run(attempt)
}

/// Returns the result of an attempt, or the error of one that has waited for a pseudo-terminal
/// whose other side was closed meanwhile.
fn unless_cut(fd: c_int, waited: &Cell<bool>, result: SysResult) -> SysResult {
    match result {
        Ok(0) if waited.get() && is_hung_up(fd) && is_pseudo(fd) => Err(Errno(libc::EIO)),
        result => {
            waited.set(true);
            result
        }
    }
}

fn is_hung_up(fd: c_int) -> bool {
    sys::events_now(fd, 0) & libc::POLLHUP != 0
}

/// Returns whether a terminal is a pseudo-terminal. One that is hung up does not tell itself.
fn is_pseudo(fd: c_int) -> bool {
    /// The major numbers of the devices, in `include/uapi/linux/major.h`.
    const MAJORS: core::ops::RangeInclusive<u32> = 136..=143;
    let mut stat = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills it in, and all zeros is a valid one.
    let device = unsafe {
        let _ = call!(libc::SYS_fstat, fd, stat.as_mut_ptr());
        stat.assume_init().st_rdev
    };
    MAJORS.contains(&libc::major(device))
}

/// Reads from a raw terminal: as `VMIN` and `VTIME`, in nanoseconds, say.
fn read_raw(fd: c_int, all: &[iovec], wanted: usize, min: usize, time: u64) -> SysResult {
    let never = Deadline::NEVER;
    let limit = || Deadline::after_nanos(time);
    let least = min.min(wanted);
    let some = |done| read_some(fd, all, done);
    match (min, time) {
        (0, 0) => match some(0) {
            EAGAIN => Ok(0),
            result => result,
        },
        (0, _) => match blocking(fd, Interest::Read, limit(), || some(0)) {
            EAGAIN => Ok(0),
            result => result,
        },
        (1, 0) => blocking(fd, Interest::Read, never, || some(0)),
        (_, 0) => {
            let (done, waited) = (Cell::new(0), Cell::new(false));
            let all_of_them = || {
                let more = unless_cut(fd, &waited, some(done.get()))?;
                done.set(done.get() + more);
                let ended = done.get() >= least || available(fd) == 0 && is_hung_up(fd);
                if ended { Ok(done.get()) } else { EAGAIN }
            };
            let wait = readiness::wait_for(fd, Interest::Read);
            let result = READERS.until(wait, never, Interruptible::Always, all_of_them);
            result.or_else(|error| match done.get() {
                0 => Err(error),
                done => Ok(done),
            })
        }
        _ => {
            let mut done = blocking(fd, Interest::Read, never, || some(0))?;
            while done > 0 && done < least {
                let call = FdCall::new(fd, Interest::Read).until(limit());
                match call.restarting(Restarts::Never).run(|| some(done)) {
                    Ok(more @ 1..) => done += more,
                    _ => break,
                }
            }
            Ok(done)
        }
    }
}

/// Reads what there is, or the end, after the first `done` bytes.
fn read_some(fd: c_int, all: &[iovec], done: usize) -> SysResult {
    let ended = is_hung_up(fd);
    let mut part = after(all, done);
    match available(fd) {
        0 if !ended => return EAGAIN,
        0 => {}
        count => shorten(&mut part, count), // More might wait.
    }
    // SAFETY: parts of the caller's buffers.
    unsafe { call!(libc::SYS_readv, fd, part.as_ptr(), part.len()) }
}

/// Shortens buffers to a number of bytes.
fn shorten(buffers: &mut Vec<iovec>, mut bytes: usize) {
    buffers.retain_mut(|buffer| {
        buffer.iov_len = buffer.iov_len.min(bytes);
        bytes -= buffer.iov_len;
        buffer.iov_len > 0
    });
}

/// Returns whether a terminal has room. If it has none and its other side is closed, a write fails;
/// while the other side is being closed, the kernel would let the write wait for ever.
fn has_room(fd: c_int) -> Result<bool, Errno> {
    match sys::events_now(fd, libc::POLLOUT) {
        libc::POLLHUP => Err(Errno(libc::EIO)),
        events => Ok(events != 0),
    }
}

/// Writes as the kernel does for a virtual thread.
///
/// # Safety
/// As for `writev(2)`.
pub(super) unsafe fn write(fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    // SAFETY: the caller's contract.
    let plain = || unsafe { call!(libc::SYS_writev, fd, iov, count) };
    if settings(fd).is_some_and(|it| it.c_lflag & libc::TOSTOP != 0) {
        // SAFETY: no bytes, so no pointers. As in `read`.
        let nothing = || unsafe { call!(libc::SYS_write, fd, 0, 0) };
        in_foreground(fd, libc::SIGTTOU, nothing)?;
    }
    let short = asked_of_all(iov, count).is_none_or(|bytes| bytes <= SHORT);
    if !short && status_flags::is_nonblocking(fd) {
        return plain();
    }
    let never = Deadline::NEVER;
    let ready = blocking(fd, Interest::Write, never, || match has_room(fd)? {
        true if short => plain(),
        true => Err(TERMINAL),
        false => EAGAIN,
    });
    match ready {
        Err(TERMINAL) => pool::dedicated(WaitReason::call(c"write"), plain),
        result => result,
    }
}

/// Reads what there is, without waiting, for tasks of async code.
#[cfg(feature = "async-io")]
pub(super) fn read_once(fd: c_int, buffers: &[iovec]) -> SysResult {
    if !is_ready(fd, libc::POLLIN) {
        return EAGAIN;
    }
    let mut part = buffers.to_vec();
    match available(fd) {
        0 => {} // The end.
        count => shorten(&mut part, count),
    }
    // SAFETY: parts of the caller's buffers.
    unsafe { call!(libc::SYS_readv, fd, part.as_ptr(), part.len()) }
}

/// Writes as much as certainly has room, without waiting, for tasks of async code.
#[cfg(feature = "async-io")]
pub(super) fn write_once(fd: c_int, buffers: &[iovec]) -> SysResult {
    if !has_room(fd)? {
        return EAGAIN;
    }
    let mut part = buffers.to_vec();
    shorten(&mut part, SHORT);
    // SAFETY: parts of the caller's buffers.
    unsafe { call!(libc::SYS_writev, fd, part.as_ptr(), part.len()) }
}
