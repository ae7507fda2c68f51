//! The dump that `SIGQUIT` asks for, on standard error.

use super::helpers;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn_rt::sys;
use pirn_rt::sys::{Errno, call};

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

fn write() {
    // Finding the names takes a second or so.
    sys::complain(&["pirn: SIGQUIT: a dump follows; another one within 2 s ends the process\n"]);
    write_all(crate::dump::dump().to_string().as_bytes());
}

/// Writes to standard error, which may be a pipe that does not block; gives up after 5 s without
/// progress.
fn write_all(mut bytes: &[u8]) {
    const NAP_NS: u64 = 10_000_000;
    let mut naps = 0;
    while !bytes.is_empty() && naps < 500 {
        // SAFETY: the bytes are readable for their length.
        match unsafe { call!(libc::SYS_write, 2, bytes.as_ptr(), bytes.len()) } {
            Ok(written) => {
                bytes = &bytes[written..];
                naps = 0;
            }
            Err(Errno(libc::EAGAIN)) => {
                sys::nap(NAP_NS);
                naps += 1;
            }
            Err(Errno(libc::EINTR)) => {}
            Err(_) => return,
        }
    }
}
