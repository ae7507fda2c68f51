//! Requests that signal handlers cannot carry out themselves. The thread `pirn-server`
//! (`pirn-observe/server/mod.rs`) does, and sleeps until there is one.

use crate::sys::Sleeper;
use crate::time::Deadline;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// A tool outside of the process wants to connect: start the listener.
pub const LISTEN: u32 = 1;
/// Write the dump to standard error.
pub const DUMP: u32 = 2;

/// The requests that the server's thread has not taken yet.
static REQUESTED: AtomicU32 = AtomicU32::new(0);
static SERVER: Sleeper = Sleeper(AtomicU32::new(0));

/// Requests something of the server's thread; the request waits if there is no such thread yet.
/// Async-signal-safe.
pub fn request(what: u32) {
    REQUESTED.fetch_or(what, Release); // Release: publishes what the handler did to `next`.
    SERVER.wake();
}

/// Takes all requests; sleeps until there are some. For the server's thread only.
pub fn next() -> u32 {
    loop {
        // Acquire: pairs with the Release in `request`.
        match REQUESTED.swap(0, Acquire) {
            // Relaxed: the swap follows.
            0 => SERVER.sleep_unless(Deadline::NEVER, || REQUESTED.load(Relaxed) != 0),
            requests => return requests,
        }
    }
}

/// Forgets the requests of the parent, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    REQUESTED.store(0, Relaxed); // Relaxed: there is one thread.
    SERVER.0.store(0, Relaxed);
}
