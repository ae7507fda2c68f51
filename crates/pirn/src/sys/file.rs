//! Flags of descriptors, options of sockets, small files.

use super::{Errno, SysResult, call};
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

/// Returns a descriptor's status flags and access mode.
pub(crate) fn status_flags(fd: c_int) -> Result<c_int, Errno> {
    // SAFETY: no pointers.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFL) }.map(|flags| flags as c_int)
}

/// Returns an option of a socket, of level `SOL_SOCKET`.
///
/// # Safety
/// `T` is the type of this option's value.
pub(crate) unsafe fn socket_option<T>(fd: c_int, option: c_int) -> Result<T, Errno> {
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

/// Returns whether a descriptor is a TCP socket, with no other protocol on top of TCP.
pub(crate) fn is_plain_tcp(fd: c_int) -> bool {
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

/// Reads the beginning of a file, as much as fits into the buffer, without allocating.
pub(crate) fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    const FLAGS: c_int = libc::O_RDONLY | libc::O_CLOEXEC;
    let here = libc::AT_FDCWD as isize;
    // SAFETY: a valid path; the buffer is writable for its length.
    let len: SysResult = unsafe {
        let fd = call!(libc::SYS_openat, here, path.as_ptr(), FLAGS)?;
        let len = call!(libc::SYS_read, fd, buffer.as_mut_ptr(), buffer.len());
        let _ = call!(libc::SYS_close, fd);
        len
    };
    Ok(&buffer[..len?])
}
