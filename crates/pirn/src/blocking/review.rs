//! A second look at descriptors that threads have been waiting for.
//!
//! A number may change its open file by system calls that nobody sees: `close` and `dup2` made
//! inline, as `rustix` makes them. epoll then knows nothing of the new file, and its waiters would
//! wait for ever. A question to the kernel before each wait would cost a system call per wait. So
//! once, about a second after the first thread began to wait for a descriptor, an idle carrier
//! registers it again and learns from the answer what the number means:
//!
//! | answer | meaning | what is done |
//! |---|---|---|
//! | `EEXIST` | the same file as before | nothing, unless it does not block any more: as next |
//! | success | another file | the waiters try again |
//! | `EBADF` | no file | the waiters wake with `EBADF` |

use super::readiness::Event;
use super::{fds, readiness, status_flags};
use crate::runtime;
use crate::sys::Errno;
use crate::time::{self, Deadline};
use core::sync::atomic::{AtomicU64, Ordering};

const AFTER_NS: u64 = 1_000_000_000;

/// When the next review is due; 0: nobody has begun to wait since the last one.
static DUE: AtomicU64 = AtomicU64::new(0);

/// Notes that a thread has begun to wait for a descriptor.
pub(super) fn expect() {
    // Relaxed: the time orders nothing else. The next review sees a mark that this one misses.
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

/// Reviews the descriptors if a review is due.
pub(super) fn run_if_due() {
    let due = due();
    if !due.has_passed() {
        return;
    }
    // Relaxed: as above. Before the marks are read: a thread that sets one later expects a review.
    let mine = DUE.compare_exchange(due.nanos(), 0, Ordering::Relaxed, Ordering::Relaxed);
    if mine.is_ok() {
        fds::for_each_unreviewed(review);
    }
}

fn review(fd: i32, entry: &fds::Entry) {
    let generation = entry.generation();
    if !entry.readiness.is_awaited() {
        return;
    }
    let Some(runtime) = runtime::get() else {
        return;
    };
    match runtime.poller.register(fd, generation) {
        Ok(_) => {
            readiness::report(fd, generation, Event::ALL);
        }
        Err(Errno(libc::EBADF)) => entry.end_life(generation),
        Err(Errno(libc::EEXIST)) if status_flags::is_nonblocking(fd) => {
            readiness::report(fd, generation, Event::ALL);
        }
        Err(_) => {}
    }
}
