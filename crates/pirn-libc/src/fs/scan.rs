//! `scandir`: a directory's entries as an array.
//!
//! The program's functions that choose and order the entries must run on the program's thread. So
//! libc's `scandir` cannot run on the pool as a whole; this one reads with our
//! [`readdir64`](crate::fs::dir::readdir64).

use crate::Path;
use crate::fs::dir::{self, Directory, OPEN};
use crate::fs::open::open_at;
use crate::registry::interposed;
use core::ffi::{c_int, c_void};
use core::ptr;
use libc::{DIR, dirent64};
use pirn_rt::sys::{self, Errno, SysResult};

type FoundEntries = *mut *mut *mut dirent64;
type Filter = Option<unsafe extern "C" fn(*const dirent64) -> c_int>;
type Compare = Option<unsafe extern "C" fn(*mut *const dirent64, *mut *const dirent64) -> c_int>;

interposed! {
    family "Directories as arrays" for Scaling;

    // `struct dirent` and `dirent64` are the same on this machine.
    Pool as {
        fn scandir(path: Path, list: FoundEntries, filter: Filter, compare: Compare) -> c_int
            = sys::to_c(scan(libc::AT_FDCWD, path, list, filter, compare)) as c_int;
        fn scandirat(at: c_int, path: Path, list: FoundEntries, filter: Filter, compare: Compare) -> c_int
            = sys::to_c(scan(at, path, list, filter, compare)) as c_int;
        fn scandir64(path: Path, list: FoundEntries, filter: Filter, compare: Compare) -> c_int
            = sys::to_c(scan(libc::AT_FDCWD, path, list, filter, compare)) as c_int;
        fn scandirat64(at: c_int, path: Path, list: FoundEntries, filter: Filter, compare: Compare) -> c_int
            = sys::to_c(scan(at, path, list, filter, compare)) as c_int;
    }
}

/// Closes a stream at the end of a block.
struct Opened(*mut DIR);

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed only here.
        unsafe { dir::closedir(self.0) };
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
    let dir = Opened(Directory::create(
        unsafe { open_at(at, path, OPEN, 0) }? as c_int
    ));
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
