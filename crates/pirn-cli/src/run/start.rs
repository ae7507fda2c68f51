//! What `std` has changed when `main` begins, and the program is to find as it was: of the
//! descriptors 0 to 2 those that are closed, which `std` opens on `/dev/null`, and `SIGPIPE`, which
//! it ignores, and gives its default action before an `exec`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// Has a look before `std` does.
#[allow(unsafe_code, reason = "only such a function runs before `std`")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// The descriptors that were closed, by their bits. Relaxed, both: there is one thread.
static CLOSED: AtomicU8 = AtomicU8::new(0);
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

#[allow(unsafe_code, reason = "as above")]
extern "C" fn look() {
    // SAFETY: queries; all zeros is a valid action.
    unsafe {
        for fd in 0..3 {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                CLOSED.fetch_or(1 << fd, Relaxed);
            }
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action);
        PIPE_WAS_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Relaxed);
    }
}

/// Has the program find it as it was.
#[allow(unsafe_code, reason = "no crate has these calls")]
pub fn restore(command: &mut Command) {
    let restore = || {
        // The kernel closes what `std` has opened when the program begins.
        // SAFETY: no pointers.
        unsafe {
            for fd in (0..3).filter(|fd| CLOSED.load(Relaxed) & 1 << fd != 0) {
                libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            }
            if PIPE_WAS_IGNORED.load(Relaxed) {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
        }
        io::Result::Ok(())
    };
    // SAFETY: it is called before an `exec`, in this process.
    unsafe { command.pre_exec(restore) };
}

/// Has the kernel load the program, its libraries and its stack at the same addresses each time: a
/// program may order or hash by address. Some containers forbid it; then a line says so.
#[allow(unsafe_code, reason = "no crate has this call")]
pub fn fix_addresses(command: &mut Command) {
    let fix = || {
        // SAFETY: no pointers.
        let old = unsafe { libc::personality(0xffff_ffff) };
        // SAFETY: no pointers.
        if unsafe {
            libc::personality(old as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong)
        } < 0
        {
            super::say("addresses differ from run to run: the system forbids to fix them");
        }
        Ok(())
    };
    // SAFETY: it is called before an `exec`, in this process.
    unsafe { command.pre_exec(fix) };
}
