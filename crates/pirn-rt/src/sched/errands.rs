//! What signal handlers request and cannot do themselves: a thread of the inspection server
//! (`pirn-observe/server/starter.rs`) does it, and sleeps until there is a request.

use crate::sys;
use crate::time::Deadline;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// A tool outside of the process wants to look inside.
pub const LET_IN: u32 = 1;
/// The dump is to be written to standard error.
pub const DUMP: u32 = 2;

/// The errands that the starter has not begun yet.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// Has the starter do an errand; before it runs, the errand waits for it. For signal handlers: no
/// lock, no memory, no thread-locals.
pub fn want(errand: u32) {
    WANTED.fetch_or(errand, Release); // Release: pairs with the Acquire in `next`.
    sys::futex_wake(&WANTED, 1);
}

/// Returns the errands that are wanted; sleeps until there are some. The starter's alone.
pub fn next() -> u32 {
    loop {
        // Acquire: pairs with the Release in `want`: what the handler did before it.
        match WANTED.swap(0, Acquire) {
            0 => drop(sys::futex_wait(&WANTED, 0, Deadline::NEVER)),
            wanted => return wanted,
        }
    }
}

/// Forgets errands of the parent, in the child of a fork that has no runtime yet.
pub fn after_fork() {
    WANTED.store(0, Relaxed); // Relaxed: there is no starter yet.
}
