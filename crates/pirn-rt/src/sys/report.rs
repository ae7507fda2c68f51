//! Messages to standard error, text that is made without allocating, and ending the process.

use super::{Errno, SysResult, call, close_file};
use crate::environment;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

/// Writes a message to standard error without buffering, locking or allocating.
pub fn complain(parts: &[&str]) {
    let write = |fd: usize, part: &str| {
        // SAFETY: the buffer is valid for its length.
        unsafe { call!(libc::SYS_write, fd, part.as_ptr(), part.len()) }
    };
    for part in parts {
        // It is closed, or this thread has a table of descriptors of its own.
        if write(2, part) == Err(Errno(libc::EBADF))
            && let Ok(fd) = open_standard_error()
        {
            let _ = write(fd, part);
            close_file(fd as i32);
        }
    }
}

/// Writes a [notice](environment::notice), the first time with this flag. It neither locks nor
/// allocates: the caller may be inside the program's allocator.
#[cold]
pub fn notice_once(said: &AtomicBool, line: &str) {
    // Relaxed: no other data.
    if !said.swap(true, Ordering::Relaxed) && !environment::notices_are_off() {
        complain(&["pirn: ", line, "\n"]);
    }
}

/// Opens the standard error of the process's first thread.
fn open_standard_error() -> SysResult {
    const FLAGS: i32 = libc::O_WRONLY | libc::O_APPEND | libc::O_NOCTTY | libc::O_CLOEXEC;
    let path = c"/proc/self/fd/2".as_ptr();
    // SAFETY: a valid path.
    unsafe { call!(libc::SYS_openat, libc::AT_FDCWD as isize, path, FLAGS) }
}

/// Reports a broken invariant and ends the process.
#[cold]
pub fn fatal(parts: &[&str]) -> ! {
    complain(&["pirn: fatal: "]);
    complain(parts);
    complain(&["\n"]);
    // SAFETY: abort is always allowed.
    unsafe { libc::abort() }
}

/// A fixed buffer to format into. What does not fit is left out.
pub(crate) struct FixedText {
    bytes: [u8; 1024],
    len: usize,
}

impl FixedText {
    /// Returns an empty text.
    pub(crate) fn new() -> FixedText {
        FixedText {
            bytes: [0; 1024],
            len: 0,
        }
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        let bytes = &self.bytes[..self.len];
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            // A letter was cut off.
            Err(e) => core::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl fmt::Write for FixedText {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let take = s.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + take].copy_from_slice(&s.as_bytes()[..take]);
        self.len += take;
        Ok(())
    }
}
