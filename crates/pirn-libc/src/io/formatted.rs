//! `dprintf`: formatted output to a descriptor.
//!
//! libc's `dprintf` would write from inside libc. On a virtual thread these functions format into
//! memory and write the result with our [`write`](crate::io::rw::write).

use crate::io::rw;
use crate::registry::interposed;
use crate::{Text, virtual_thread};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use pirn_rt::arch::forward_variadic;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{self, Errno};

/// A `va_list`, which on this machine is passed as a pointer.
type Arguments = *mut c_void;

unsafe extern "C" {
    fn vasprintf(text: *mut *mut c_char, format: Text, arguments: Arguments) -> c_int;
    fn __vasprintf_chk(
        text: *mut *mut c_char,
        flag: c_int,
        format: Text,
        arguments: Arguments,
    ) -> c_int;
}

interposed! {
    family "Formatted output to descriptors" for Scaling;

    Parks by hand { dprintf, __dprintf_chk }
    Parks as {
        fn vdprintf(fd: c_int, format: Text, arguments: Arguments) -> c_int
            = print(
                fd,
                || real!(fn vdprintf(fd: c_int, format: Text, arguments: Arguments) -> c_int),
                |text| vasprintf(text, format, arguments),
            );
        fn __vdprintf_chk(fd: c_int, flag: c_int, format: Text, arguments: Arguments) -> c_int
            = print(
                fd,
                || real!(
                    fn __vdprintf_chk(fd: c_int, flag: c_int, format: Text, arguments: Arguments)
                        -> c_int
                ),
                |text| __vasprintf_chk(text, flag, format, arguments),
            );
    }
}

forward_variadic! {
    /// `dprintf`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    dprintf(2 named) => vdprintf
}

forward_variadic! {
    /// `__dprintf_chk`, which a fortified program calls for `dprintf`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    __dprintf_chk(3 named) => __vdprintf_chk
}

/// Runs libc's function on a platform thread; on a virtual thread, writes the text that `format`
/// leaves in memory. Returns the number of bytes, or -1.
fn print(
    fd: c_int,
    libc_print: impl FnOnce() -> c_int,
    format: impl FnOnce(*mut *mut c_char) -> c_int,
) -> c_int {
    if virtual_thread().is_none() {
        return libc_print();
    }
    let mut text = ptr::null_mut();
    let length = format(&mut text);
    let Ok(total) = usize::try_from(length) else {
        return -1;
    };
    // SAFETY: `vasprintf` has written so many bytes.
    let written = unsafe { write_all(fd, text, total) };
    let errno = sys::errno();
    // SAFETY: from `vasprintf`, and not used again.
    unsafe { libc::free(text.cast()) };
    sys::set_errno(Errno(errno));
    if written { length } else { -1 }
}

/// Returns whether all of the text was written; if not, `errno` says why.
///
/// # Safety
/// `text` points to `total` bytes.
unsafe fn write_all(fd: c_int, text: *const c_char, total: usize) -> bool {
    let mut done = 0;
    while done < total {
        // SAFETY: the caller's contract: the text has `total` bytes.
        match unsafe { rw::write(fd, text.add(done).cast(), total - done) } {
            -1 => return false,
            count => done += count as usize,
        }
    }
    true
}
