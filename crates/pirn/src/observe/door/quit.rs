//! The dump that `SIGQUIT` asks for, on standard error.

use super::helpers;
use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering};

/// One dump is being written.
static WRITING: AtomicBool = AtomicBool::new(false);

/// Has the dump written by a platform thread of its own, unless one is being written.
pub(super) fn start() {
    // Acquire and Release: the next dump begins after all of this one.
    if WRITING.swap(true, Ordering::Acquire) {
        return;
    }
    let started = helpers::start("pirn-dump", || {
        write();
        WRITING.store(false, Ordering::Release);
    });
    if let Err(error) = started {
        WRITING.store(false, Ordering::Release);
        sys::complain(&["pirn: no thread for the dump: ", &error.to_string(), "\n"]);
    }
}

#[cfg(feature = "dump")]
fn write() {
    let text = crate::observe::dump::dump().to_string();
    sys::complain(&["pirn: SIGQUIT: ", &text]);
}

#[cfg(not(feature = "dump"))]
fn write() {
    sys::complain(&["pirn: SIGQUIT: ", super::WITHOUT_DUMPS, "\n"]);
}
