//! Running a libc function on the platform thread's own TLS.
//!
//! Some functions concern the OS thread rather than the thread that calls them: glibc finds it in
//! its lists by the thread pointer. On a virtual thread these functions run with the carrier's
//! thread pointer.

use crate::arch;
use crate::glibc::malloc;
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
        if sanitizer::switches_are_special() {
            call_announced(own, native_tp, run, (&raw mut call).cast());
        } else {
            malloc::hand_over(own, native_tp);
            arch::call_with_tp_by_instruction(native_tp, run, (&raw mut call).cast());
            malloc::hand_over(native_tp, own);
        }
    }
    sys::set_errno(Errno(call.errno));
    // SAFETY: written by `run`.
    unsafe { call.result.assume_init() }
}

/// Calls `run(data)` with the thread pointer `native_tp`, and tells the sanitizer.
///
/// # Safety
/// As for [`call`]; `own` is the running thread pointer.
#[cold]
#[inline(never)]
unsafe fn call_announced(
    own: usize,
    native_tp: usize,
    run: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) {
    // SAFETY: the caller's contract.
    unsafe {
        malloc::hand_over_found(own, native_tp);
        let lent = sanitizer::lend(own, native_tp);
        arch::call_with_tp(native_tp, run, data);
        sanitizer::take_back(native_tp, lent);
        malloc::hand_over_found(native_tp, own);
    }
}
