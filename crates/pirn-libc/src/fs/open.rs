//! Opening files.
//!
//! A file [at hand](super::cached) is opened at once. Any other open ends by itself, unless it is
//! of a [FIFO](super::fifo), which waits for the other side, or of a serial line, which waits for
//! the carrier signal. So the pool thread first looks where the path leads. The open of a serial
//! line gets a thread of its own. (If a FIFO takes a file's place between the look and the open, a
//! pool thread waits for the other side.)

use crate::fs::cached::path_at_hand;
use crate::fs::fifo;
use crate::registry::interposed;
use crate::{Path, cancel, virtual_thread};
use core::ffi::{c_char, c_int};
use libc::mode_t;
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sys::{self, SysResult, call};
use pirn_rt::vthread::awaited::Awaited;

const HERE: c_int = libc::AT_FDCWD;
const CREAT: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

interposed! {
    family "Opening files" for Correctness,
        cannot "keep a carrier free for an `open` whose path comes to lead to a FIFO or a serial \
            line while it is under way";

    // Functions with `mode` are variadic in C; `fcntl` explains why `mode` may be declared here.
    Glance as {
        fn open(path: Path, flags: c_int, mode: mode_t) -> c_int
            = open_c(HERE, path, flags, mode);
        /// `std::fs` calls this.
        fn open64(path: Path, flags: c_int, mode: mode_t) -> c_int
            = open_c(HERE, path, flags, mode);
        fn __open(path: Path, flags: c_int, mode: mode_t) -> c_int
            = open_c(HERE, path, flags, mode);
        fn __open64(path: Path, flags: c_int, mode: mode_t) -> c_int
            = open_c(HERE, path, flags, mode);
        fn openat(dir: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int
            = open_c(dir, path, flags, mode);
        fn openat64(dir: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int
            = open_c(dir, path, flags, mode);
        fn creat(path: Path, mode: mode_t) -> c_int
            = open_c(HERE, path, CREAT, mode);
        fn creat64(path: Path, mode: mode_t) -> c_int
            = open_c(HERE, path, CREAT, mode);
        /// A fortified program calls this for an `open` without a mode.
        fn __open_2(path: Path, flags: c_int) -> c_int
            = open_c(HERE, path, without_mode(flags), 0);
        fn __open64_2(path: Path, flags: c_int) -> c_int
            = open_c(HERE, path, without_mode(flags), 0);
        fn __openat_2(dir: c_int, path: Path, flags: c_int) -> c_int
            = open_c(dir, path, without_mode(flags), 0);
        fn __openat64_2(dir: c_int, path: Path, flags: c_int) -> c_int
            = open_c(dir, path, without_mode(flags), 0);
    }
    Pool then noted {
        fn mkstemp(template: *mut c_char) -> c_int;
        fn mkstemp64(template: *mut c_char) -> c_int;
        fn mkostemp(template: *mut c_char, flags: c_int) -> c_int;
        fn mkostemp64(template: *mut c_char, flags: c_int) -> c_int;
        fn mkstemps(template: *mut c_char, suffix: c_int) -> c_int;
        fn mkstemps64(template: *mut c_char, suffix: c_int) -> c_int;
        fn mkostemps(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int;
        fn mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int;
    }
    Pool {
        fn mkdtemp(template: *mut c_char) -> *mut c_char;
    }
}

/// Major number of `/dev/null` and similar devices, whose opens never wait.
const MEMORY_DEVICES: u32 = 1;

/// Opens a file.
///
/// # Safety
/// As for `openat(2)`.
pub(crate) unsafe fn open_at(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> SysResult {
    // SAFETY: the caller's contract, here and below.
    let kernel = || unsafe { call!(libc::SYS_openat, dir, path, flags, mode) };
    // SAFETY: as above.
    let result = if virtual_thread().is_none() || unsafe { is_at_hand(dir, path, flags) } {
        kernel()
    } else {
        // SAFETY: as above.
        let look = || unsafe { obstacle(dir, path, flags) };
        match pool::bounded(Awaited::call(c"open"), || {
            look().map_or_else(|| Ok(kernel()), Err)
        }) {
            Ok(result) => result,
            // SAFETY: as above.
            Err(Obstacle::Fifo) => fifo::open(flags, |flags| unsafe {
                call!(libc::SYS_openat, dir, path, flags, mode)
            }),
            Err(Obstacle::Device) => pool::dedicated(Awaited::call(c"open"), kernel),
        }
    };
    if let Ok(fd) = result {
        fds::opened(fd as c_int);
    }
    result
}

/// Returns whether the kernel can open a file, only for reading, without waiting for anything.
unsafe fn is_at_hand(dir: c_int, path: *const c_char, flags: c_int) -> bool {
    const CHANGES: c_int = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
    const FOLLOW: c_int = libc::O_NOFOLLOW | libc::O_DIRECTORY;
    flags & CHANGES == libc::O_RDONLY
        // SAFETY: the caller's contract.
        && unsafe { path_at_hand(dir, path, flags & FOLLOW) }
            .is_some_and(|mode| matches!(mode, libc::S_IFREG | libc::S_IFDIR))
}

/// Runs an open on the pool, or, if that finds an obstacle, on a thread of its own.
pub(crate) fn patiently(
    obstacle: impl FnOnce() -> Option<Obstacle>,
    open: impl Fn() -> SysResult,
) -> SysResult {
    match pool::bounded(Awaited::call(c"open"), || obstacle().is_none().then(&open)) {
        Some(result) => result,
        None => pool::dedicated(Awaited::call(c"open"), open),
    }
}

/// An object that an open may wait for.
pub(crate) enum Obstacle {
    /// The other side of a FIFO.
    Fifo,
    /// A device, perhaps a serial line.
    Device,
}

/// Returns the object, other than a disk, that an open with these flags may wait for.
///
/// # Safety
/// As for `openat(2)`.
pub(crate) unsafe fn obstacle(dir: c_int, path: *const c_char, flags: c_int) -> Option<Obstacle> {
    const NEVER: c_int = libc::O_NONBLOCK | libc::O_PATH | libc::O_DIRECTORY | libc::O_EXCL;
    if flags & NEVER != 0 {
        return None;
    }
    let follow = if flags & libc::O_NOFOLLOW != 0 {
        libc::AT_SYMLINK_NOFOLLOW
    } else {
        0
    };
    // SAFETY: the caller's path; all zeros is a valid `stat`, which the kernel fills in.
    let stat = unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        if call!(libc::SYS_newfstatat, dir, path, &raw mut stat, follow).is_err() {
            return None; // Then the open fails, or creates a file.
        }
        stat
    };
    let obstacle = match stat.st_mode & libc::S_IFMT {
        libc::S_IFIFO if flags & libc::O_ACCMODE != libc::O_RDWR => Obstacle::Fifo,
        libc::S_IFCHR if libc::major(stat.st_rdev) != MEMORY_DEVICES => Obstacle::Device,
        _ => return None,
    };
    Some(obstacle)
}

/// Aborts, as fortified programs expect, if the flags need a mode and none is given.
fn without_mode(flags: c_int) -> c_int {
    if flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE {
        sys::fatal(&["invalid open call: O_CREAT or O_TMPFILE without mode"]);
    }
    flags
}

/// Does the same as [`open_at`], for C: a cancellation point.
///
/// # Safety
/// As for `openat(2)`.
unsafe fn open_c(dir: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's contract. The functions of the table have nothing to drop.
    unsafe { cancel::own_point(move || sys::to_c(open_at(dir, path, flags, mode)) as c_int) }
}

/// Notes a descriptor that libc has made, if it has made one.
fn noted(fd: c_int) -> c_int {
    fds::opened(fd);
    fd
}
