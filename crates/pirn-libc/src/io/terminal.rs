//! `termios.h`: waiting until a terminal has sent its output.

use crate::cancel;
use crate::forward::from_c;
use crate::io::tty;
use crate::registry::interposed;
use core::ffi::c_int;
use libc::termios;
use pirn_rt::blocking::pool;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys;
use pirn_rt::vthread::awaited::Awaited;

interposed! {
    family "Terminals" for Scaling;

    Dedicated as {
        fn tcdrain(fd: c_int) -> c_int = cancel::own_point(move || {
            let drain = || from_c(real!(fn tcdrain(fd: c_int) -> c_int));
            sys::to_c(pool::dedicated(Awaited::call(c"tcdrain"), drain)) as c_int
        });
    }
    Dedicated {
        fn tcsendbreak(fd: c_int, duration: c_int) -> c_int;
    }
    Dedicated by hand { tcsetattr: "unless it is to act at once" }
}

/// `tcsetattr`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcsetattr(fd: c_int, when: c_int, settings: *const termios) -> c_int {
    // SAFETY: the caller's contract.
    let set = || unsafe {
        from_c(real!(fn tcsetattr(fd: c_int, when: c_int, settings: *const termios) -> c_int))
    };
    let result = if when == libc::TCSANOW {
        tty::in_foreground(fd, libc::SIGTTOU, set)
    } else {
        pool::dedicated(Awaited::call(c"tcsetattr"), set)
    };
    sys::to_c(result) as c_int
}
