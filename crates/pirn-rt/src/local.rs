//! Thread-locals that hold a value during a call.

use core::cell::Cell;
use std::thread::LocalKey;

/// Calls `f` with `value` in the thread-local. Restores the previous value afterwards, also when
/// `f` panics.
#[inline]
pub fn with<T: Copy, R>(local: &'static LocalKey<Cell<T>>, value: T, f: impl FnOnce() -> R) -> R {
    struct Restore<T: Copy + 'static>(&'static LocalKey<Cell<T>>, T);
    impl<T: Copy> Drop for Restore<T> {
        #[inline]
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _restore = Restore(local, local.replace(value));
    f()
}

#[cfg(test)]
mod tests;
