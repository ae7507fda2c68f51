//! Messages to standard error, and ending the process.

use super::call;

/// Writes a message to standard error without buffering, locking or allocating.
pub fn complain(parts: &[&str]) {
    for part in parts {
        // SAFETY: the buffer is valid for its length.
        let _ = unsafe { call!(libc::SYS_write, 2, part.as_ptr(), part.len()) };
    }
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
