//! Panics of code that the runtime calls.

use core::any::Any;
use core::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// Returns the message, if the payload is a text, as that of `panic!` is.
pub fn message(payload: &(dyn Any + Send)) -> Option<&str> {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&'static str>().copied())
}
