//! A second look at descriptors that somebody has been awaiting for a while.
//!
//! A number may come to mean another open file by system calls that nobody sees: `close` and `dup2`
//! made inline, as `rustix` makes them. epoll then knows nothing of the new file, and whoever waits
//! for it would wait for ever. To ask before each wait would cost each wait a system call; so about
//! a second after somebody began to wait for a descriptor, once, an idle carrier registers it again
//! and learns from the answer what the number means:
//!
//! | answer | meaning | what is done |
//! |---|---|---|
//! | `EEXIST` | the same file as ever | nothing, unless it does not block any more: as next |
//! | success | another file | whoever waits tries again |
//! | `EBADF` | none | whoever waits wakes with `EBADF` |

use super::{fds, readiness, status_flags};
use crate::runtime;
use crate::sys::Errno;
use crate::time::{self, Deadline};
use core::sync::atomic::{AtomicU64, Ordering};

const AFTER_NS: u64 = 1_000_000_000;

/// When the next review is due; 0: nobody has begun to wait since the last.
static DUE: AtomicU64 = AtomicU64::new(0);

/// Notes that somebody has begun to wait for a descriptor.
pub(super) fn expect() {
    // Relaxed: the time means nothing but itself. A mark that one review misses, the next sees.
    if DUE.load(Ordering::Relaxed) == 0 {
        DUE.store(time::now() + AFTER_NS, Ordering::Relaxed);
    }
}

/// Returns when the next review is due.
pub(super) fn due() -> Deadline {
    match DUE.load(Ordering::Relaxed) {
        0 => Deadline::NEVER, // Relaxed: as above.
        due => Deadline::from_nanos(due),
    }
}

/// Reviews the descriptors, if it is time.
pub(super) fn run_if_due() {
    let due = due();
    if !due.has_passed() {
        return;
    }
    // Relaxed: as above. Before the marks are looked at: whoever sets one later expects a review.
    let mine = DUE.compare_exchange(due.nanos(), 0, Ordering::Relaxed, Ordering::Relaxed);
    if mine.is_ok() {
        fds::for_each_unreviewed(review);
    }
}

fn review(fd: i32, entry: &fds::Entry) {
    let generation = entry.generation();
    if !readiness::is_awaited(entry) {
        return;
    }
    let Some(runtime) = runtime::get() else {
        return;
    };
    match runtime.poller.register(fd, generation) {
        Ok(_) => {
            readiness::report(fd, generation, true, true);
        }
        Err(Errno(libc::EBADF)) => readiness::close_all(entry, generation),
        Err(Errno(libc::EEXIST)) if status_flags::is_nonblocking(fd) => {
            readiness::report(fd, generation, true, true);
        }
        Err(_) => {}
    }
}
