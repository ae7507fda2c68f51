//! Descriptors: polling them without waiting, their flags, options of sockets, small files.

use super::{Errno, SysResult, call, nap, timespec, uninterrupted};
use crate::time::Deadline;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use libc::{nfds_t, pollfd};

/// Returns a descriptor's status flags and access mode.
pub fn status_flags(fd: c_int) -> Result<c_int, Errno> {
    // SAFETY: no pointers.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFL) }.map(|flags| flags as c_int)
}

/// Returns an option of a socket, of level `SOL_SOCKET`.
///
/// # Safety
/// `T` is the type of this option's value.
pub unsafe fn socket_option<T>(fd: c_int, option: c_int) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes of `value`; the caller's contract.
    unsafe {
        call!(
            libc::SYS_getsockopt,
            fd,
            libc::SOL_SOCKET,
            option,
            value.as_mut_ptr(),
            &raw mut len
        )?;
        Ok(value.assume_init())
    }
}

/// Returns whether a descriptor is of a kind that cannot be polled: a regular file, a directory, a
/// block device.
pub fn is_file(fd: c_int) -> bool {
    // SAFETY: all zeros is a valid `stat`; the kernel fills it in.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        call!(libc::SYS_fstat, fd, &raw mut stat).is_ok()
            && matches!(
                stat.st_mode & libc::S_IFMT,
                libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK
            )
    }
}

/// Returns whether a descriptor is a TCP socket, with no other protocol on top of TCP.
pub fn is_plain_tcp(fd: c_int) -> bool {
    let mut name = [0u8; 16];
    let mut len = size_of_val(&name) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes of `name`.
    let asked = unsafe {
        call!(
            libc::SYS_getsockopt,
            fd,
            libc::SOL_TCP,
            libc::TCP_ULP,
            name.as_mut_ptr(),
            &raw mut len
        )
    };
    asked.is_ok() && len == 0 // Only TCP has the option, whose value is the other protocol's name.
}

/// Opens a file for reading.
pub fn open_file(path: &CStr) -> Result<c_int, Errno> {
    const FLAGS: c_int = libc::O_RDONLY | libc::O_CLOEXEC;
    let here = libc::AT_FDCWD as isize;
    // SAFETY: a valid path.
    unsafe { call!(libc::SYS_openat, here, path.as_ptr(), FLAGS) }.map(|fd| fd as c_int)
}

/// Closes a descriptor that no other code uses.
pub fn close_file(fd: c_int) {
    // SAFETY: no pointers.
    let _ = unsafe { call!(libc::SYS_close, fd) };
}

/// Reads from the beginning of an open file, as much as fits into the buffer.
pub fn read_at_start(fd: c_int, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    // SAFETY: the buffer is writable for its length.
    let len = unsafe { call!(libc::SYS_pread64, fd, buffer.as_mut_ptr(), buffer.len(), 0) }?;
    Ok(&buffer[..len])
}

/// Reads the beginning of a file, as much as fits into the buffer, without allocating.
pub fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let fd = open_file(path)?;
    let read = read_at_start(fd, buffer);
    close_file(fd);
    read
}

/// How long a wait takes in place of one that the kernel refuses.
const LONGEST_NAP_NS: u64 = 1_000_000;

/// Calls `poll` without waiting.
///
/// # Safety
/// `entries` is valid for reads and writes of `count` elements; for other addresses the kernel
/// returns `EFAULT`.
pub unsafe fn poll_now(entries: *mut pollfd, count: nfds_t) -> SysResult {
    let at_once = timespec(0);
    // A signal ends even a poll that does not wait.
    uninterrupted(|| {
        // SAFETY: the caller's contract; the timespec is valid.
        unsafe { call!(libc::SYS_ppoll, entries, count, &raw const at_once, 0, 0) }
    })
}

/// Waits until a descriptor has one of these events, until the deadline, or for a shorter time.
/// Without a descriptor (-1), only sleeps. Returns the events.
pub fn poll_for(fd: c_int, events: i16, deadline: Deadline) -> Result<i16, Errno> {
    let mut entry = pollfd {
        fd,
        events,
        revents: 0,
    };
    let time = timespec(deadline.left());
    // SAFETY: one entry; the timespec is valid.
    match unsafe { call!(libc::SYS_ppoll, &raw mut entry, 1, &raw const time, 0, 0) } {
        Ok(_) => Ok(entry.revents),
        Err(Errno(libc::EINTR)) => Err(Errno(libc::EINTR)),
        Err(_) => select(fd, events, time),
    }
}

/// Asks for the events by `pselect6`, where `ppoll` fails: with an `RLIMIT_NOFILE` of 0 it polls no
/// descriptor at all, and a seccomp profile may forbid it.
#[cold]
fn select(fd: c_int, events: i16, time: libc::timespec) -> Result<i16, Errno> {
    const WORDS: usize = libc::FD_SETSIZE / 64;
    let wanted = [libc::POLLIN, libc::POLLOUT].map(|event| events & event);
    let mut sets = [[0u64; WORDS]; 2];
    let number = usize::try_from(fd).ok();
    for (set, wanted) in sets.iter_mut().zip(wanted) {
        if let (Some(number), 1..) = (number, wanted) {
            let word = set.get_mut(number / 64).ok_or(Errno(libc::EINVAL))?;
            *word = 1 << (number % 64);
        }
    }
    let [read, write] = sets.each_mut().map(|set| set.as_mut_ptr());
    let count = number.map_or(0, |number| number + 1);
    // SAFETY: sets with room for the number, and a valid timespec.
    match unsafe {
        call!(
            libc::SYS_pselect6,
            count,
            read,
            write,
            0,
            &raw const time,
            0
        )
    } {
        Ok(_) => {}
        Err(Errno(libc::EBADF)) => return Ok(libc::POLLNVAL),
        Err(error) => return Err(error),
    }
    let ready = |set: &[u64; WORDS]| set.iter().any(|word| *word != 0);
    let [read, write] = [ready(&sets[0]), ready(&sets[1])].map(i16::from);
    Ok((read * libc::POLLIN) | (write * libc::POLLOUT))
}

/// Waits until a descriptor is readable, or until the deadline. Returns whether it is. Without a
/// descriptor (-1), only sleeps. May return early.
pub fn poll_until(fd: c_int, deadline: Deadline) -> bool {
    match poll_for(fd, libc::POLLIN, deadline) {
        Ok(events) => events != 0,
        Err(Errno(libc::EINTR)) => false,
        Err(_) => {
            nap(deadline.left().min(LONGEST_NAP_NS)); // The caller looks at what it waits for.
            false
        }
    }
}

/// Returns which of these events a descriptor has right now, in addition to those that are always
/// reported (`POLLERR`, `POLLHUP`, `POLLNVAL`). If the kernel does not tell, all of them: then the
/// program's own call shows it, and perhaps holds the carrier meanwhile.
pub fn events_now(fd: c_int, events: i16) -> i16 {
    const READY: i16 = libc::POLLIN | libc::POLLOUT;
    let mut entry = pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one entry.
    match unsafe { poll_now(&raw mut entry, 1) } {
        Ok(_) => entry.revents,
        Err(_) => select(fd, events, timespec(0)).unwrap_or(events & READY),
    }
}
