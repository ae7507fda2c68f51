//! Safe wrappers of the few raw calls the tests need, with errors as `std::io` gives them.

use std::io::{self, Error};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use libc::{c_int, c_void};

pub use super::processor::inline;

/// Turns the C convention (-1 and `errno`) into a `Result`.
pub fn check<N: Into<i64> + Copy>(result: N) -> io::Result<N> {
    if result.into() == -1 {
        Err(Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Calls `read` on a bare descriptor number, which may be closed or bad.
pub fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for writes of its length.
    let count = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    check(count as i64).map(|count| count as usize)
}

/// Calls `write` on a bare descriptor number.
pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for reads of its length.
    let count = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    check(count as i64).map(|count| count as usize)
}

/// Calls `close` on a bare descriptor number.
pub fn close(fd: RawFd) -> io::Result<()> {
    // SAFETY: the callers own the descriptor and use it no more (or test just that use).
    check(unsafe { libc::close(fd) }).map(drop)
}

/// Takes over a descriptor that a call has just returned.
pub fn own(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the call succeeded, so the descriptor is open, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the status flags of a descriptor (`O_NONBLOCK` and the like).
pub fn status_flags(fd: &impl AsRawFd) -> c_int {
    // SAFETY: F_GETFL only reads.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) }).unwrap()
}

/// Sets or clears `O_NONBLOCK`.
pub fn set_nonblocking(fd: &impl AsRawFd, on: bool) {
    let old = status_flags(fd);
    let new = if on {
        old | libc::O_NONBLOCK
    } else {
        old & !libc::O_NONBLOCK
    };
    // SAFETY: F_SETFL touches no memory.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, new) }).unwrap();
}

/// Calls `poll`. Returns the number of ready entries.
pub fn poll(entries: &mut [libc::pollfd], timeout_ms: c_int) -> io::Result<usize> {
    // SAFETY: the slice is valid for its length.
    let count = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as _, timeout_ms) };
    check(count).map(|count| count as usize)
}

/// Returns an entry for [`poll`].
pub fn entry(fd: BorrowedFd<'_>, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    }
}

/// Calls `dup2(from, onto)`.
pub fn dup2(from: RawFd, onto: RawFd) -> io::Result<()> {
    // SAFETY: touches no memory; the callers own both descriptors.
    check(unsafe { libc::dup2(from, onto) }).map(drop)
}

/// Returns a duration as the kernel's structure.
pub fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs() as _,
        tv_nsec: duration.subsec_nanos() as _,
    }
}

/// Returns the bytes of a page.
pub fn page_size() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Raises the limit of open descriptors to its maximum, and returns that.
pub fn raise_file_limit() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls use one valid `rlimit`.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit)).unwrap();
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &limit)).unwrap();
    }
    limit.rlim_cur as usize
}

/// Has this process write no core file.
pub fn no_core_file() {
    limit_core_file(|limit| limit.rlim_cur = 0);
}

/// Has this process write a core file, as far as it may.
pub fn core_file() {
    limit_core_file(|limit| limit.rlim_cur = limit.rlim_max);
}

fn limit_core_file(change: impl FnOnce(&mut libc::rlimit)) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls use one valid `rlimit`.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_CORE, &mut limit)).unwrap();
        change(&mut limit);
        check(libc::setrlimit(libc::RLIMIT_CORE, &limit)).unwrap();
    }
}

/// Allows other processes of this user to look at this one, where only its parents may.
pub fn let_others_trace() {
    // SAFETY: no pointers. It fails where all may.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
}

/// Waits for the child process `pid` and returns its raw status.
pub fn waitpid(pid: libc::pid_t) -> io::Result<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid for writes.
        match check(unsafe { libc::waitpid(pid, &mut status, 0) }) {
            Ok(_) => return Ok(status),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Installs `handler` for `signal`, with the given `SA_` flags.
pub fn on_signal(signal: c_int, flags: c_int, handler: extern "C" fn(c_int)) {
    // SAFETY: all-zero is a valid `sigaction`; the handlers in the tests are async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        check(libc::sigaction(signal, &action, ptr::null_mut())).unwrap();
    }
}

/// Returns the current `errno`.
pub fn errno() -> c_int {
    // SAFETY: the address of the thread's own `errno`.
    unsafe { *libc::__errno_location() }
}

/// Sets `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: the address of the thread's own `errno`.
    unsafe { *libc::__errno_location() = value }
}

/// Sets an `int` option of a socket.
pub fn set_socket_option<T>(socket: &impl AsRawFd, level: c_int, name: c_int, value: &T) {
    // SAFETY: the pointer and length describe `value`.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as _,
        )
    })
    .unwrap();
}

/// Blocks or unblocks a signal for the running thread. Returns the set of this signal.
pub fn mask(how: c_int, signal: c_int) -> io::Result<libc::sigset_t> {
    // SAFETY: a set, to which a signal is added.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        match libc::pthread_sigmask(how, &set, ptr::null_mut()) {
            0 => Ok(set),
            error => Err(Error::from_raw_os_error(error)),
        }
    }
}
