//! `dirent.h`: directory streams.
//!
//! libc's own streams would call the kernel from inside libc, at an entry that cannot be predicted.
//! A `DIR` is opaque to programs, so Pirn has streams of its own: the kernel fills a buffer, on the
//! pool, and `readdir` hands out entries from it, which costs nothing. The kernel's records are
//! `struct dirent`s already.

use crate::forward::{args, bounded_call};
use crate::fs::open::open_at;
use crate::registry::interposed;
use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr;
use libc::{DIR, dirent, dirent64, off_t, size_t, ssize_t};
use pirn_rt::poison::locked;
use pirn_rt::sys::{self, Errno, call};
use std::sync::Mutex;

interposed! {
    family "Directories" for Correctness,
        cannot "exchange a `DIR` with code that calls libc's functions past the linker";

    Pool by hand {
        opendir,
        readdir: "only for one entry in some thousand", readdir64, readdir_r, readdir64_r,
        getdents64,
    }
    Own by hand { fdopendir, closedir, rewinddir, seekdir, telldir, dirfd }
}

/// As in glibc: enough for about a thousand entries per call.
const WORDS: usize = 4096;

/// The target of a `DIR *`.
pub(crate) struct Directory {
    fd: c_int,
    /// Threads may share a stream, which POSIX leaves open and glibc allows. This is `std`'s mutex,
    /// because a thread waits for the kernel while it holds the lock: threads that wait for it
    /// park.
    records: Mutex<Records>,
}

/// The records that the kernel has given and `readdir` has not.
struct Records {
    buffer: Box<[u64]>,
    /// The offsets of the next record and of the end of the last one, in bytes.
    next: usize,
    end: usize,
    /// Where the kernel would continue after the last record handed out.
    position: off_t,
}

impl Directory {
    /// Makes a stream that owns the descriptor.
    pub(crate) fn create(fd: c_int) -> *mut DIR {
        let records = Records {
            buffer: vec![0; WORDS].into(),
            next: 0,
            end: 0,
            position: 0,
        };
        Box::into_raw(Box::new(Directory {
            fd,
            records: Mutex::new(records),
        }))
        .cast()
    }

    /// # Safety
    /// `dir` came from [`create`](Self::create) and has not been closed.
    pub(crate) unsafe fn of<'a>(dir: *mut DIR) -> &'a Directory {
        // SAFETY: the caller's contract.
        unsafe { &*dir.cast::<Directory>() }
    }

    /// Runs `f` with the records locked.
    fn with<R>(&self, f: impl FnOnce(&mut Records) -> R) -> R {
        f(&mut locked(&self.records))
    }

    /// Returns the next entry, which stays valid until the following call; null at the end.
    pub(crate) fn next(&self) -> Result<*mut dirent64, Errno> {
        self.with(|records| {
            if records.next == records.end && !records.fill(self.fd)? {
                return Ok(ptr::null_mut());
            }
            // SAFETY: the kernel has put a record there, aligned to eight bytes.
            let entry =
                unsafe { records.buffer.as_mut_ptr().byte_add(records.next) }.cast::<dirent64>();
            // SAFETY: as above. Field by field: the record may end before the structure does.
            unsafe {
                records.next += usize::from((*entry).d_reclen);
                records.position = (*entry).d_off;
            }
            Ok(entry)
        })
    }

    fn seek(&self, position: off_t) {
        self.with(|records| {
            // SAFETY: no pointers. It sets a number: it does not block.
            let _ = unsafe { call!(libc::SYS_lseek, self.fd, position, libc::SEEK_SET) };
            (records.next, records.end, records.position) = (0, 0, position);
        });
    }
}

impl Records {
    /// Asks the kernel for more records. Returns `false` if there are no more.
    fn fill(&mut self, fd: c_int) -> Result<bool, Errno> {
        let size = size_of_val(&*self.buffer);
        let (errno, buffer) = (sys::errno(), self.buffer.as_mut_ptr());
        // SAFETY: the buffer is writable for its size.
        let read = unsafe { getdents64(fd, buffer.cast(), size) };
        let failure = Errno(sys::errno());
        sys::set_errno(Errno(errno)); // The end of a directory is no error.
        self.next = 0;
        self.end = read.max(0) as usize;
        match read {
            // A directory that has been removed has no entries: POSIX.
            -1 if failure != Errno(libc::ENOENT) => Err(failure),
            _ => Ok(self.end > 0),
        }
    }
}

/// `getdents64`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getdents64(fd: c_int, buffer: *mut c_void, size: size_t) -> ssize_t {
    // SAFETY: the caller's contract.
    unsafe {
        bounded_call(
            c"getdents64",
            libc::SYS_getdents64,
            args([fd as usize, buffer as usize, size]),
        )
    }
}

fn or_null<T>(result: Result<*mut T, Errno>) -> *mut T {
    result.unwrap_or_else(|e| {
        sys::set_errno(e);
        ptr::null_mut()
    })
}

/// The flags with which directories are opened.
pub(crate) const OPEN: c_int =
    libc::O_RDONLY | libc::O_NONBLOCK | libc::O_DIRECTORY | libc::O_CLOEXEC;

/// `opendir`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    // SAFETY: the caller's contract.
    or_null(
        unsafe { open_at(libc::AT_FDCWD, path, OPEN, 0) }.map(|fd| Directory::create(fd as c_int)),
    )
}

/// `fdopendir`.
#[unsafe(no_mangle)]
pub extern "C" fn fdopendir(fd: c_int) -> *mut DIR {
    or_null(check_directory(fd).map(|()| Directory::create(fd)))
}

fn check_directory(fd: c_int) -> Result<(), Errno> {
    let flags = sys::status_flags(fd)?;
    if crate::fs::cached::file_type(fd) != Some(libc::S_IFDIR) {
        return Err(Errno(libc::ENOTDIR));
    }
    if flags & libc::O_ACCMODE == libc::O_WRONLY {
        return Err(Errno(libc::EINVAL));
    }
    Ok(())
}

/// `closedir`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closedir(dir: *mut DIR) -> c_int {
    if dir.is_null() {
        return sys::to_c(Err(Errno(libc::EINVAL))) as c_int;
    }
    // SAFETY: the caller's contract; it was boxed by `create`.
    let stream = unsafe { Box::from_raw(dir.cast::<Directory>()) };
    // SAFETY: our own definition; no pointers.
    unsafe { libc::close(stream.fd) }
}

/// `readdir`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir(dir: *mut DIR) -> *mut dirent {
    // SAFETY: the caller's contract.
    or_null(unsafe { Directory::of(dir) }.next()).cast()
}

/// `readdir64`: what `std::fs::read_dir` calls.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir64(dir: *mut DIR) -> *mut dirent64 {
    // SAFETY: the caller's contract.
    or_null(unsafe { Directory::of(dir) }.next())
}

/// `readdir_r`. Returns an error number.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir_r(
    dir: *mut DIR,
    entry: *mut dirent,
    result: *mut *mut dirent,
) -> c_int {
    // SAFETY: the caller's contract; the two structures are one on this machine.
    unsafe { readdir64_r(dir, entry.cast(), result.cast()) }
}

/// `readdir64_r`. Returns an error number.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir64_r(
    dir: *mut DIR,
    entry: *mut dirent64,
    result: *mut *mut dirent64,
) -> c_int {
    // SAFETY: the caller's contract; a record is copied as long as it is, into a structure that is
    // longer.
    unsafe {
        *result = ptr::null_mut();
        let record = match Directory::of(dir).next() {
            Ok(record) if record.is_null() => return 0,
            Ok(record) => record,
            Err(e) => return e.0,
        };
        let length = usize::from((*record).d_reclen);
        if length > size_of::<dirent64>() {
            return libc::ENAMETOOLONG;
        }
        ptr::copy_nonoverlapping(record.cast::<u8>(), entry.cast::<u8>(), length);
        *result = entry;
        0
    }
}

/// `rewinddir`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rewinddir(dir: *mut DIR) {
    // SAFETY: the caller's contract.
    unsafe { Directory::of(dir) }.seek(0);
}

/// `seekdir`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn seekdir(dir: *mut DIR, position: c_long) {
    // SAFETY: the caller's contract.
    unsafe { Directory::of(dir) }.seek(position);
}

/// `telldir`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telldir(dir: *mut DIR) -> c_long {
    // SAFETY: the caller's contract.
    unsafe { Directory::of(dir) }.with(|records| records.position)
}

/// `dirfd`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dirfd(dir: *mut DIR) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { Directory::of(dir) }.fd
}
