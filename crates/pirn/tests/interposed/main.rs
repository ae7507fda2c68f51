//! Interposed functions by their names: those that `std` does not call, and other names of the same
//! functions that libraries call.

#[path = "../common/mod.rs"]
mod common;

mod aliases;
mod by_number;
mod callbacks;
mod children;
mod databases;
mod descriptors;
mod ipc;
mod lost_signals;
mod masks;
mod messages;
mod open_files;
mod os_thread;
mod output;
mod paths;
mod preloaded;
mod processes;
mod threads;

use crate::common::{block_then, most_carriers};

/// Runs `wait` on more virtual threads at once than there can be carriers, and then on one platform
/// thread. `release` ends the wait of one of them.
fn on_more_than_carriers(wait: impl Fn() + Sync, release: impl Fn() + Sync) {
    let count = most_carriers() + 4;
    block_then(count, |_| wait(), || (0..count).for_each(|_| release()));
    std::thread::scope(|scope| {
        scope.spawn(&wait);
        release();
    });
}

/// Runs `f` on a platform thread and on a virtual one.
fn everywhere(f: impl Fn() + Clone + Send + 'static) {
    f();
    common::on_virtual(f);
}

/// Returns an address that is not mapped.
fn nowhere<T>() -> *mut T {
    std::ptr::without_provenance_mut(64)
}

/// Returns the number that a function has returned, or the error that it has set.
fn checked<N: Into<i64> + Copy>(result: N) -> Result<N, i32> {
    common::sys::check(result).map_err(|error| error.raw_os_error().unwrap())
}
