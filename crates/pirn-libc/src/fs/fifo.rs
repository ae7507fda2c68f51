//! Opening a FIFO, which waits until the other side is opened.
//!
//! The kernel can be told not to wait (`O_NONBLOCK`), but does not report when the other side is
//! opened: a writer that opens, and does not write, is no event. So a virtual thread [tries
//! repeatedly](Retry).
//! * For reading: the open without waiting succeeds, and counts as a reader, as one that waits
//!   does. A read that cannot take anything, because its buffer is at an invalid address, tells
//!   whether there is a writer.
//! * For writing: the open without waiting is repeated until there is a reader.
//!
//! The descriptor is made to block before the program gets it.

use core::ffi::{CStr, c_int};
use pirn_rt::blocking::retry::Retry;
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::Awaited;
use pirn_rt::vthread::wait_word::Hearing;

/// The threads that wait for the other side of any FIFO.
static LONELY: Retry = Retry::new(50_000);

/// What a thread waits for that opens a FIFO.
const OPEN: &CStr = c"open";

/// Opens a FIFO for reading or for writing, by `open(flags)`. Called on a virtual thread.
pub(super) fn open(flags: c_int, open: impl Fn(c_int) -> SysResult) -> SysResult {
    let now = || pool::bounded(Awaited::call(OPEN), || open(flags | libc::O_NONBLOCK));
    let writes = flags & libc::O_ACCMODE == libc::O_WRONLY;
    let fd = if writes {
        wait_until(|| match now() {
            Err(Errno(libc::ENXIO)) => Err(Errno(libc::EAGAIN)),
            result => result,
        })?
    } else {
        now()?
    } as c_int;
    LONELY.chance();
    let result = match writes {
        true => Ok(0),
        false => wait_until(|| has_writer(fd)),
    };
    match result.and_then(|_| let_block(fd)) {
        Ok(_) => Ok(fd as usize),
        Err(e) => {
            let _ = fds::close(fd);
            Err(e)
        }
    }
}

fn wait_until(attempt: impl Fn() -> SysResult) -> SysResult {
    LONELY.until(
        Awaited::call(OPEN),
        Deadline::NEVER,
        Some(Hearing::Always),
        attempt,
    )
}

/// Fails with `EAGAIN` if there is no writer, and has been none since the open.
fn has_writer(fd: c_int) -> SysResult {
    if sys::events_now(fd, libc::POLLIN) != 0 {
        return Ok(0); // There is something to read, or a writer has been there.
    }
    /// Where the kernel cannot write. (Valgrind would report an address without memory.)
    static CONSTANT: u8 = 0;
    // SAFETY: read-only memory: nothing is read, and nothing is lost.
    match unsafe { call!(libc::SYS_read, fd, &raw const CONSTANT, 1) } {
        Ok(_) => Err(Errno(libc::EAGAIN)), // The end: no writer.
        Err(_) => Ok(0), // `EAGAIN`: nothing from a writer; `EFAULT`: something by now.
    }
}

fn let_block(fd: c_int) -> SysResult {
    let flags = sys::status_flags(fd)? & !libc::O_NONBLOCK;
    // SAFETY: no pointers.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETFL, flags) }
}
