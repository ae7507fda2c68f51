//! Dumps, for C.

use core::ffi::c_int;
use core::mem::ManuallyDrop;
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;

use virtual_threads::thread::Panic;

/// `pirn_dump`: writes what all virtual threads do, as text. Returns 0 or an error number.
#[unsafe(no_mangle)]
pub extern "C" fn pirn_dump(fd: c_int) -> c_int {
    if fd < 0 {
        return libc::EBADF;
    }
    // SAFETY: the file is not closed here; the kernel checks the descriptor.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    // A dump panics where no thread can be made for it; nothing unwinds into C.
    let text = Panic::catch(|| virtual_threads::dump::take().to_string());
    let Ok(text) = text else { return libc::EAGAIN };
    match file.write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}
