//! The environment, as far as it can be trusted.
//!
//! A program with more rights than its caller (set-user-ID, file capabilities) must not do what its
//! caller writes into variables: the kernel says so by `AT_SECURE`, and all variables of this
//! library are then as if they were not set.

use std::ffi::OsString;

/// Returns whether the caller of this program may set what it does.
pub fn is_trusted() -> bool {
    // SAFETY: no requirements.
    unsafe { libc::getauxval(libc::AT_SECURE) == 0 }
}

/// Returns a variable.
pub fn variable(name: &str) -> Option<OsString> {
    is_trusted().then(|| std::env::var_os(name)).flatten()
}
