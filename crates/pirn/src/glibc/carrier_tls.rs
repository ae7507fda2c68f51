//! Running a libc function on the platform thread's own TLS.
//!
//! Some functions concern the OS thread rather than the thread that calls them: glibc finds it in
//! its lists by the thread pointer. On a virtual thread these functions run with the carrier's
//! thread pointer.

use super::malloc;
use crate::arch;
use crate::sanitizer;
use crate::sys::{self, Errno};
use core::mem::MaybeUninit;

/// Calls `function` with the thread pointer of the current platform thread. `function` runs as on a
/// platform thread: if it blocks, it blocks the carrier. `errno` is carried over.
///
/// # Safety
/// `native_tp` is the thread pointer of the platform thread that carries the running virtual
/// thread. `function` does not unwind.
pub(crate) unsafe fn call<R>(native_tp: usize, function: impl FnOnce() -> R) -> R {
    struct TlsCall<F, R> {
        function: MaybeUninit<F>,
        result: MaybeUninit<R>,
        errno: i32,
    }
    unsafe extern "C" fn run<F: FnOnce() -> R, R>(call: *mut u8) {
        // SAFETY: called once, with the call below.
        unsafe {
            let call = &mut *call.cast::<TlsCall<F, R>>();
            call.result.write(call.function.assume_init_read()());
            call.errno = sys::errno();
        }
    }
    fn runner<F: FnOnce() -> R, R>(_: &TlsCall<F, R>) -> unsafe extern "C" fn(*mut u8) {
        run::<F, R>
    }
    let own = arch::thread_pointer();
    let mut call = TlsCall {
        function: MaybeUninit::new(function),
        result: MaybeUninit::uninit(),
        errno: 0,
    };
    let run = runner(&call);
    // SAFETY: both blocks are this OS thread's; nothing in `function` can suspend, because it runs
    // as a platform thread.
    unsafe {
        malloc::hand_over(own, native_tp);
        let lent = sanitizer::lend(own, native_tp);
        arch::call_with_tp(native_tp, run, (&raw mut call).cast());
        sanitizer::take_back(native_tp, lent);
        malloc::hand_over(native_tp, own);
    }
    sys::set_errno(Errno(call.errno));
    // SAFETY: written by `run`.
    unsafe { call.result.assume_init() }
}
