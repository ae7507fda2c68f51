//! Opening files.
//!
//! A file [at hand](super::cached) is opened at once. Any other open ends by itself, unless it is
//! of a [FIFO](open_fifo), which waits for the other side, or of a serial line, which waits for
//! the carrier signal. So the pool thread first looks where the path leads. The open of a serial
//! line gets a thread of its own. (If a FIFO takes a file's place between the look and the open, a
//! pool thread waits for the other side.)

use crate::fs::cached::path_at_hand;
use crate::registry::interposed;
use crate::{Path, cancel, simulated, virtual_thread};
use core::ffi::{CStr, c_char, c_int};
use libc::mode_t;
use pirn_rt::blocking::retry::Retry;
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::WaitReason;
use pirn_rt::vthread::wait_word::Interruptible;

const HERE: c_int = libc::AT_FDCWD;
const CREAT: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

interposed! {
    family "Opening files" for Correctness,
        cannot "keep a carrier free for an `open` whose path comes to lead to a FIFO or a serial \
            line while it is under way";

    // Functions with `mode` are variadic in C; `fcntl` explains why `mode` may be declared here.
    Cached as {
        fn open(path: Path, flags: c_int, mode: mode_t) -> c_int = openat(HERE, path, flags, mode);
        fn openat(dir: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int
            = cancel::own_point(move || sys::to_c(open_at(dir, path, flags, mode)) as c_int);
        fn creat(path: Path, mode: mode_t) -> c_int = openat(HERE, path, CREAT, mode);
        /// A fortified program calls this for an `open` without a mode.
        fn __open_2(path: Path, flags: c_int) -> c_int = open(path, without_mode(flags), 0);
        fn __openat_2(dir: c_int, path: Path, flags: c_int) -> c_int
            = openat(dir, path, without_mode(flags), 0);
    }
    // `std::fs` calls `open64`.
    Cached alias {
        open64 = open, __open = open, __open64 = open, openat64 = openat, creat64 = creat,
        __open64_2 = __open_2, __openat64_2 = __openat_2,
    }
    Pool then noted {
        fn mkstemp(template: *mut c_char) -> c_int;
        fn mkostemp(template: *mut c_char, flags: c_int) -> c_int;
        fn mkstemps(template: *mut c_char, suffix: c_int) -> c_int;
        fn mkostemps(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int;
    }
    Pool alias {
        mkstemp64 = mkstemp, mkostemp64 = mkostemp, mkstemps64 = mkstemps, mkostemps64 = mkostemps,
    }
    Pool {
        fn mkdtemp(template: *mut c_char) -> *mut c_char;
    }
}

/// What dumps show of a thread that opens a file.
const OPEN: &CStr = c"open";
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
    // SAFETY: the caller's contract.
    let simulated = unsafe {
        let args = [dir as usize, path.addr(), flags as usize, mode as usize];
        simulated::call(libc::SYS_openat, args)
    };
    if let Some(result) = simulated {
        return result.inspect(|&fd| fds::opened(fd as c_int));
    }
    // SAFETY: the caller's contract, here and below.
    let kernel = || unsafe { call!(libc::SYS_openat, dir, path, flags, mode) };
    // SAFETY: the caller's contract.
    let result = if virtual_thread().is_none() || unsafe { is_at_hand(dir, path, flags) } {
        kernel()
    } else {
        // SAFETY: the caller's contract.
        let look = || unsafe { obstacle(dir, path, flags) };
        match pool::bounded(WaitReason::call(OPEN), || {
            look().map_or_else(|| Ok(kernel()), Err)
        }) {
            Ok(result) => result,
            // SAFETY: the caller's contract.
            Err(Obstacle::Fifo) => open_fifo(flags, |flags| unsafe {
                call!(libc::SYS_openat, dir, path, flags, mode)
            }),
            Err(Obstacle::Device) => pool::dedicated(WaitReason::call(OPEN), kernel),
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
    match pool::bounded(WaitReason::call(OPEN), || obstacle().is_none().then(&open)) {
        Some(result) => result,
        None => pool::dedicated(WaitReason::call(OPEN), open),
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

/// Notes a descriptor that libc has made, if it has made one.
fn noted(fd: c_int) -> c_int {
    fds::opened(fd);
    simulated::opened(fd, false);
    fd
}

/// The threads that wait for the other side of any FIFO.
static LONELY: Retry = Retry::new(50_000);

/// Opens a FIFO for reading or for writing, by `open(flags)`. Called on a virtual thread.
///
/// The kernel can be told not to wait (`O_NONBLOCK`), but does not report when the other side is
/// opened: a writer that opens, and does not write, causes no event. So the thread [tries
/// repeatedly](Retry).
/// * For reading: the open without waiting succeeds, and the kernel counts the thread as a reader,
///   as it counts one that waits. A read that cannot take anything, because its buffer is at an
///   invalid address, tells whether there is a writer.
/// * For writing: the open without waiting is repeated until there is a reader.
///
/// The descriptor is made to block before the program gets it.
fn open_fifo(flags: c_int, open: impl Fn(c_int) -> SysResult) -> SysResult {
    let now = || pool::bounded(WaitReason::call(OPEN), || open(flags | libc::O_NONBLOCK));
    let writes = flags & libc::O_ACCMODE == libc::O_WRONLY;
    let fd = if writes {
        wait_for_other_side(|| match now() {
            Err(Errno(libc::ENXIO)) => Err(Errno(libc::EAGAIN)),
            result => result,
        })?
    } else {
        now()?
    } as c_int;
    LONELY.chance();
    let result = match writes {
        true => Ok(0),
        false => wait_for_other_side(|| has_writer(fd)),
    };
    match result.and_then(|_| let_block(fd)) {
        Ok(_) => Ok(fd as usize),
        Err(e) => {
            let _ = fds::close(fd);
            Err(e)
        }
    }
}

fn wait_for_other_side(attempt: impl Fn() -> SysResult) -> SysResult {
    LONELY.until(
        WaitReason::call(OPEN),
        Deadline::NEVER,
        Interruptible::Always,
        attempt,
    )
}

/// Fails with `EAGAIN` if there is no writer, and has been none since the open.
fn has_writer(fd: c_int) -> SysResult {
    if sys::events_now(fd, libc::POLLIN) != 0 {
        return Ok(0); // There is something to read, or a writer has been there.
    }
    /// Where the kernel cannot write. (Valgrind would report an address without memory.)
    static CONSTANT: u8 = 0;
    // SAFETY: read-only memory: nothing is read, and nothing is lost.
    match unsafe { call!(libc::SYS_read, fd, &raw const CONSTANT, 1) } {
        Ok(_) => Err(Errno(libc::EAGAIN)), // The end: no writer.
        Err(_) => Ok(0), // `EAGAIN`: nothing from a writer; `EFAULT`: something by now.
    }
}

fn let_block(fd: c_int) -> SysResult {
    let flags = sys::status_flags(fd)? & !libc::O_NONBLOCK;
    // SAFETY: no pointers.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETFL, flags) }
}
