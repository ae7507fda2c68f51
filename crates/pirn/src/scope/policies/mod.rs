//! The joiners that come with the library, each in a file.

mod all_successful;
mod all_until;
mod any_successful;
mod await_all;
mod await_all_successful;
mod first_failure;
mod shutdown;

pub use all_successful::{AllSuccessful, all_successful};
pub use all_until::{AllUntil, all_until};
pub use any_successful::{AnySuccessful, any_successful};
pub use await_all::{AwaitAll, await_all};
pub use await_all_successful::{AllOk, AwaitAllSuccessful, await_all_successful};
pub use shutdown::{
    FirstFailure, FirstSuccess, ShutdownOnFailure, ShutdownOnSuccess, shutdown_on_failure,
    shutdown_on_success,
};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what no code of others is run under.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
