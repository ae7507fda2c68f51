//! Flags of descriptors, options of sockets, small files.

use super::{Errno, SysResult, call};
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

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
    // SAFETY: the buffer is writable for its length.
    let len: SysResult = unsafe { call!(libc::SYS_read, fd, buffer.as_mut_ptr(), buffer.len()) };
    close_file(fd);
    Ok(&buffer[..len?])
}
