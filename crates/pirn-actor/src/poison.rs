//! `std`'s mutexes without poisoning: no panic leaves the data that they guard half changed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whether or not a thread has panicked while it held the lock.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `is_so` returns false, without the lock.
pub(crate) fn wait_while<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    is_so: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    let waited = changed.wait_while(guard, is_so);
    waited.unwrap_or_else(PoisonError::into_inner)
}
