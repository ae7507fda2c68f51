//! System calls on files and folders.

use core::ffi::{CStr, c_int};
use core::mem::zeroed;
use pirn_rt::sys::{Errno, SysResult, call, close_file};

/// A descriptor in the table of the server's threads, closed at the end.
pub(super) struct Fd(pub(super) c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        close_file(self.0);
    }
}

/// The current folder, for paths that do not begin there.
pub(super) const HERE: c_int = libc::AT_FDCWD;

/// Opens a file or folder.
pub(super) fn open(folder: c_int, path: &CStr, flags: c_int) -> Result<Fd, Errno> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: a valid path.
    let fd = unsafe { call!(libc::SYS_openat, folder as isize, path.as_ptr(), flags) };
    fd.map(|fd| Fd(fd as c_int))
}

/// Makes a folder that only its owner may enter.
pub(super) fn make_folder(folder: c_int, name: &CStr) -> SysResult {
    // SAFETY: a valid path.
    unsafe { call!(libc::SYS_mkdirat, folder as isize, name.as_ptr(), 0o700) }
}

/// Returns the attributes of an open file.
pub(super) fn attributes(fd: &Fd) -> Result<libc::stat, Errno> {
    // SAFETY: all zeros is a valid `stat`, which the kernel fills in.
    unsafe {
        let mut stat: libc::stat = zeroed();
        call!(libc::SYS_fstat, fd.0, &raw mut stat).map(|_| stat)
    }
}

/// Returns the attributes of a file in a folder.
pub(super) fn attributes_of(folder: &Fd, name: &CStr) -> Result<libc::stat, Errno> {
    // SAFETY: all zeros is a valid `stat`, which the kernel fills in; a valid path.
    unsafe {
        let mut stat: libc::stat = zeroed();
        let (place, flags) = (&raw mut stat, libc::AT_SYMLINK_NOFOLLOW);
        call!(libc::SYS_newfstatat, folder.0, name.as_ptr(), place, flags).map(|_| stat)
    }
}

/// Removes a file from a folder.
pub(super) fn remove(folder: c_int, name: &CStr) {
    // SAFETY: a valid path.
    let _ = unsafe { call!(libc::SYS_unlinkat, folder as isize, name.as_ptr(), 0) };
}

/// Renames a file within a folder, unless there is one of the new name (`EEXIST`).
///
/// Some file systems do not know `RENAME_NOREPLACE` (`EINVAL`: NFS, for one). A link does the same.
pub(super) fn rename_new(folder: &Fd, old: &CStr, new: &CStr) -> SysResult {
    let (from, to, at) = (old.as_ptr(), new.as_ptr(), folder.0);
    // SAFETY: valid paths.
    unsafe {
        match call!(
            libc::SYS_renameat2,
            at,
            from,
            at,
            to,
            libc::RENAME_NOREPLACE
        ) {
            Err(Errno(libc::EINVAL)) => {
                call!(libc::SYS_linkat, at, from, at, to, 0)?;
                call!(libc::SYS_unlinkat, at, from, 0)
            }
            result => result,
        }
    }
}

/// Reads a file to its end, but no more than `most` bytes.
pub(super) fn read_all(path: &CStr, most: usize) -> Result<Vec<u8>, Errno> {
    let fd = open(HERE, path, libc::O_RDONLY)?;
    let mut bytes = Vec::new();
    let mut chunk = [0u8; 4096];
    loop {
        // SAFETY: the buffer is writable for its length.
        let len = unsafe { call!(libc::SYS_read, fd.0, chunk.as_mut_ptr(), chunk.len()) }?;
        bytes.extend_from_slice(&chunk[..len]);
        if len == 0 || bytes.len() >= most {
            return Ok(bytes);
        }
    }
}

/// Calls `f` with the name of each file in a folder.
pub(super) fn for_each_name(folder: &Fd, mut f: impl FnMut(&CStr)) {
    /// Bytes of an entry before its name: inode, offset, its own length, type.
    const HEAD: usize = 19;
    let mut buffer = [0u64; 512];
    loop {
        let (start, len) = (buffer.as_mut_ptr(), size_of_val(&buffer));
        // SAFETY: the buffer is writable for its length.
        let Ok(filled @ 1..) = (unsafe { call!(libc::SYS_getdents64, folder.0, start, len) })
        else {
            return;
        };
        // SAFETY: the kernel has filled in this many bytes of the buffer.
        let mut rest = unsafe { core::slice::from_raw_parts(start.cast::<u8>(), filled) };
        while rest.len() > HEAD {
            let len = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
            if let Ok(name) = CStr::from_bytes_until_nul(&rest[HEAD..len]) {
                f(name);
            }
            rest = &rest[len..];
        }
    }
}
