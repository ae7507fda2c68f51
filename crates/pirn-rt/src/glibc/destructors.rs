//! The destructors of `thread_local!`s.

use super::symbols;
use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Runs the destructors that `__cxa_thread_atexit_impl` has registered for the running thread.
pub(crate) fn run() {
    type CallDestructors = unsafe extern "C-unwind" fn();
    // Relaxed: a code address needs no ordering, and a second lookup gives the same answer.
    static ADDRESS: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let mut address = ADDRESS.load(Relaxed);
    if address.is_null() {
        address = match symbols::find(c"__call_tls_dtors") {
            Ok(address) => address,
            Err(text) => sys::fatal(&[&text]),
        };
        ADDRESS.store(address, Relaxed);
    }
    // SAFETY: glibc's function, without arguments; it works on the running TLS block.
    unsafe { core::mem::transmute::<*mut c_void, CallDestructors>(address)() };
}
