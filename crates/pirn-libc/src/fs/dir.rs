//! `dirent.h`: directory streams.
//!
//! libc's own streams would call the kernel from inside libc, at an entry that cannot be predicted.
//! A `DIR` is opaque to programs, so Pirn has streams of its own: the kernel fills a buffer, on the
//! pool, and `readdir` hands out entries from it, which costs nothing. The kernel's records are
//! `struct dirent`s already.
//!
//! The program's functions that choose and order the entries of `scandir` must run on the program's
//! thread. So libc's `scandir` cannot run on the pool as a whole; ours reads a stream.

use crate::fs::open::open_at;
use crate::registry::interposed;
use crate::{Path, reserved, zeros};
use core::ffi::{c_int, c_long, c_void};
use core::ptr;
use libc::{DIR, dirent64, off_t, size_t, ssize_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::poison::locked;
use pirn_rt::sys::{self, Errno, SysResult, call};
use std::sync::Mutex;

interposed! {
    family "Directories" for Correctness,
        cannot "exchange a `DIR` with code that calls libc's functions past the linker";

    Pool by hand {
        readdir: "only for one entry in some thousand", readdir_r,
    }
    // `struct dirent` and `dirent64` are the same on this machine.
    Pool as {
        fn opendir(path: Path) -> *mut DIR
            = or_null(Directory::open(libc::AT_FDCWD, path));
        fn scandir(path: Path, list: FoundEntries, filter: Filter, compare: Compare) -> c_int
            = scandirat(libc::AT_FDCWD, path, list, filter, compare);
        fn scandirat(at: c_int, path: Path, list: FoundEntries, filter: Filter, compare: Compare) -> c_int
            = sys::to_c(scan(at, path, list, filter, compare)) as c_int;
    }
    Pool alias {
        readdir64 = readdir, readdir64_r = readdir_r, scandir64 = scandir, scandirat64 = scandirat,
    }
    Pool {
        fn getdents64(fd: c_int, buffer: *mut c_void, size: size_t) -> ssize_t
            = SYS_getdents64(fd, buffer, size);
    }
    Own as {
        fn fdopendir(fd: c_int) -> *mut DIR
            = or_null(check_directory(fd).and_then(|()| Directory::create(fd)));
        fn rewinddir(dir: *mut DIR) -> () = Directory::of(dir).seek(0);
        fn seekdir(dir: *mut DIR, position: c_long) -> () = Directory::of(dir).seek(position);
        fn telldir(dir: *mut DIR) -> c_long = Directory::of(dir).with(|records| records.position);
        fn dirfd(dir: *mut DIR) -> c_int = Directory::of(dir).fd;
    }
    Own by hand { closedir }
}

type FoundEntries = *mut *mut *mut dirent64;
type Filter = Option<unsafe extern "C" fn(*const dirent64) -> c_int>;
type Compare = Option<unsafe extern "C" fn(*mut *const dirent64, *mut *const dirent64) -> c_int>;

/// As in glibc: enough for about a thousand entries per call.
const WORDS: usize = 4096;

/// The target of a `DIR *`.
struct Directory {
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
    /// # Safety
    /// As for `openat(2)`.
    unsafe fn open(at: c_int, path: Path) -> Result<*mut DIR, Errno> {
        // SAFETY: the caller's contract.
        let fd = unsafe { open_at(at, path, OPEN, 0) }? as c_int;
        Self::create(fd).inspect_err(|_| {
            // SAFETY: our own definition; no pointers.
            unsafe { libc::close(fd) };
        })
    }

    /// Makes a stream that owns the descriptor. It stays the caller's if there is no memory.
    fn create(fd: c_int) -> Result<*mut DIR, Errno> {
        let records = Records {
            buffer: zeros(WORDS)?.into(),
            next: 0,
            end: 0,
            position: 0,
        };
        let mut directory = reserved(1)?;
        directory.push(Directory {
            fd,
            records: Mutex::new(records),
        });
        Ok(Box::into_raw(directory.into_boxed_slice()).cast())
    }

    /// # Safety
    /// `dir` came from [`create`](Self::create) and has not been closed.
    unsafe fn of<'a>(dir: *mut DIR) -> &'a Directory {
        // SAFETY: the caller's contract.
        unsafe { &*dir.cast::<Directory>() }
    }

    /// Runs `f` with the records locked.
    fn with<R>(&self, f: impl FnOnce(&mut Records) -> R) -> R {
        f(&mut locked(&self.records))
    }

    /// Returns the next entry, which stays valid until the following call; null at the end.
    fn next(&self) -> Result<*mut dirent64, Errno> {
        self.with(|records| {
            if records.next == records.end && !records.fill(self.fd)? {
                return Ok(ptr::null_mut());
            }
            // SAFETY: the kernel has put a record there, aligned to eight bytes.
            let entry =
                unsafe { records.buffer.as_mut_ptr().byte_add(records.next) }.cast::<dirent64>();
            // SAFETY: the kernel has put a record there, aligned to eight bytes. Field by field:
            // the record may end before the structure does.
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
        sys::set_errno(Errno(errno)); // The end of a directory is not an error.
        self.next = 0;
        self.end = read.max(0) as usize;
        match read {
            // A directory that has been removed has no entries: POSIX.
            -1 if failure != Errno(libc::ENOENT) => Err(failure),
            _ => Ok(self.end > 0),
        }
    }
}

fn or_null<T>(result: Result<*mut T, Errno>) -> *mut T {
    result.unwrap_or_else(|e| {
        sys::set_errno(e);
        ptr::null_mut()
    })
}

/// The flags with which directories are opened.
const OPEN: c_int = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_DIRECTORY | libc::O_CLOEXEC;

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

#[libc_fn]
pub unsafe fn closedir(dir: *mut DIR) -> c_int {
    if dir.is_null() {
        return sys::to_c(Err(Errno(libc::EINVAL))) as c_int;
    }
    // SAFETY: the caller's contract; it was boxed by `create`.
    let stream = unsafe { Box::from_raw(dir.cast::<Directory>()) };
    // SAFETY: our own definition; no pointers.
    unsafe { libc::close(stream.fd) }
}

#[libc_fn]
pub unsafe fn readdir(dir: *mut DIR) -> *mut dirent64 {
    or_null(Directory::of(dir).next())
}

/// Returns an error number.
#[libc_fn]
pub unsafe fn readdir_r(dir: *mut DIR, entry: *mut dirent64, result: *mut *mut dirent64) -> c_int {
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

/// Closes a stream at the end of a block.
struct Opened(*mut DIR);

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed only here.
        unsafe { closedir(self.0) };
    }
}

/// Entries allocated with `malloc`, as their receiver expects.
struct Entries(Vec<*mut dirent64>);

impl Drop for Entries {
    fn drop(&mut self) {
        for &entry in &self.0 {
            // SAFETY: from `malloc`, and not passed on.
            unsafe { libc::free(entry.cast()) };
        }
    }
}

/// Returns a copy of `bytes` bytes, allocated with `malloc`.
///
/// # Safety
/// `source` has `bytes` bytes.
unsafe fn copied<T>(source: *const T, bytes: usize) -> Result<*mut T, Errno> {
    // SAFETY: the caller's source has that many bytes, and so has the copy.
    unsafe {
        let copy = libc::malloc(bytes.max(1)).cast::<T>();
        if copy.is_null() {
            return Err(Errno(libc::ENOMEM));
        }
        ptr::copy_nonoverlapping(source.cast::<u8>(), copy.cast::<u8>(), bytes);
        Ok(copy)
    }
}

/// Returns the entries that `filter` accepts.
///
/// # Safety
/// As for `scandirat(3)`.
unsafe fn collect(at: c_int, path: Path, filter: Filter) -> Result<Entries, Errno> {
    // SAFETY: the caller's contract.
    let dir = Opened(unsafe { Directory::open(at, path) }?);
    // SAFETY: open until the end of this function.
    let stream = unsafe { Directory::of(dir.0) };
    let mut entries = Entries(Vec::new());
    loop {
        let record = stream.next()?;
        if record.is_null() {
            return Ok(entries);
        }
        // SAFETY: the program's function, and a record as long as it says.
        unsafe {
            if filter.is_none_or(|wants| wants(record) != 0) {
                entries
                    .0
                    .push(copied(record, usize::from((*record).d_reclen))?);
            }
        }
    }
}

/// # Safety
/// As for `scandirat(3)`.
unsafe fn scan(
    at: c_int,
    path: Path,
    list: FoundEntries,
    filter: Filter,
    compare: Compare,
) -> SysResult {
    // SAFETY: the caller's contract.
    let mut entries = unsafe { collect(at, path, filter) }?;
    let (start, count) = (entries.0.as_mut_ptr(), entries.0.len());
    if let Some(compare) = compare {
        type Comparison = unsafe extern "C" fn(*const c_void, *const c_void) -> c_int;
        // SAFETY: `qsort` calls it with pointers to elements, which is what it takes.
        unsafe {
            let order =
                core::mem::transmute::<unsafe extern "C" fn(_, _) -> _, Comparison>(compare);
            libc::qsort(start.cast(), count, size_of::<*mut dirent64>(), Some(order));
        }
    }
    // SAFETY: the array, and the caller's pointer.
    unsafe { *list = copied(start, count * size_of::<*mut dirent64>())? };
    entries.0.clear(); // The caller owns them now.
    Ok(count)
}
