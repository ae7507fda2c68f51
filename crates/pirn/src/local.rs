//! Thread-locals that hold a value for the extent of a call.

use core::cell::Cell;
use std::thread::LocalKey;

/// Calls `f` with `value` in the thread-local. What was there before comes back afterwards, also
/// when `f` panics.
#[inline]
pub(crate) fn with<T: Copy, R>(
    local: &'static LocalKey<Cell<T>>,
    value: T,
    f: impl FnOnce() -> R,
) -> R {
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
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(1) };
    }

    #[test]
    fn the_former_value_comes_back_also_after_a_panic() {
        let inner = with(&NUMBER, 2, || {
            with(&NUMBER, 3, || NUMBER.get()) + NUMBER.get()
        });
        assert_eq!((inner, NUMBER.get()), (5, 1));
        catch_unwind(|| with(&NUMBER, 2, || panic!("with another value"))).unwrap_err();
        assert_eq!(NUMBER.get(), 1);
    }
}
