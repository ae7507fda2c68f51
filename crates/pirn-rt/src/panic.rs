//! Code that may panic: catching that, and undoing what a call has changed.

use core::any::Any;
use core::cell::Cell;
use core::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::LocalKey;

/// Calls `f`. Returns `None` if it panicked: the panic hook has written the message.
#[inline]
pub fn catch<T>(f: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(f)).map_err(discard).ok()
}

/// Drops the payload of a panic. Never panics.
pub fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another); // Its drop may panic as well.
    }
}

/// Returns the message, if the payload is a text, as `panic!` makes it.
pub fn message(payload: &(dyn Any + Send)) -> Option<&str> {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&'static str>().copied())
}

/// Calls `f` with `value` in the thread-local. Restores the previous value afterwards, also when
/// `f` panics.
#[inline]
pub fn with_local<T: Copy, R>(
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

    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(1) };
    }

    #[test]
    fn the_former_value_comes_back_also_after_a_panic() {
        let inner = with_local(&NUMBER, 2, || {
            with_local(&NUMBER, 3, || NUMBER.get()) + NUMBER.get()
        });
        assert_eq!((inner, NUMBER.get()), (5, 1));
        catch_unwind(|| with_local(&NUMBER, 2, || panic!("with another value"))).unwrap_err();
        assert_eq!(NUMBER.get(), 1);
    }
}
