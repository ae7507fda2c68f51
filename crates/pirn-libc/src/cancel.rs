//! Cancellation points, and the functions of `pthread.h` about cancellation.
//!
//! A virtual thread can be cancelled if `pthread_create` has made it ([`posix`]). It then ends as
//! if it called `pthread_exit` at the point, so glibc unwinds its stack. No frame between the
//! program and that call has anything to drop: the functions that are cancellation points are
//! `extern "C-unwind"`, and call [`point`] before all else.
//!
//! A call that has had an effect is not cancelled: what it has read would be lost.
//!
//! On a platform thread of a process with such threads the functions that wait are libc's own,
//! which are cancellation points; ours call the kernel directly, and are none. Before the others
//! ([`own_point`]) libc is asked whether the thread is cancelled.

use crate::identity::is_virtual;
use crate::posix;
use crate::registry::interposed;
use core::ffi::c_int;
use libc::pthread_t;
use pirn_rt::blocking;
use pirn_rt::glibc::symbols::real;
use pirn_rt::mark;
use pirn_rt::sys;
use pirn_rt::vthread;

interposed! {
    family "Cancellation of threads" for Correctness,
        cannot "cancel a thread of `pirn::thread` (`ENOSYS`), or one whose cancellation is \
            deferred before its next cancellation point: one that reads, writes, opens, closes, \
            sends, receives, accepts, connects, polls, sleeps, joins, locks or synchronises a \
            file, or waits for a child, a signal, a semaphore or a condition variable; `msgsnd`, \
            `msgrcv`, `tcdrain`, `aio_suspend`, and reads and writes of files are points at their \
            beginning";

    Own by hand { pthread_cancel, pthread_testcancel, pthread_setcancelstate, pthread_setcanceltype }
}

/// Results that tell whether a call was ended by an interrupt.
pub(crate) trait Interruptible: Copy {
    fn is_interrupted(self) -> bool;
}

impl Interruptible for c_int {
    fn is_interrupted(self) -> bool {
        self == -1 && says_interrupted(sys::errno())
    }
}

impl Interruptible for isize {
    fn is_interrupted(self) -> bool {
        self == -1 && says_interrupted(sys::errno())
    }
}

fn says_interrupted(error: c_int) -> bool {
    error == libc::EINTR || error == blocking::INTERRUPTED.0
}

/// An error number, as the `pthread` functions return it.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(crate) c_int);

impl Interruptible for Number {
    fn is_interrupted(self) -> bool {
        says_interrupted(self.0)
    }
}

/// The result of a sleep, which may end early without an error, and has no effect that could be
/// lost.
#[derive(Clone, Copy)]
pub(crate) struct Slept<R>(pub(crate) R);

impl<R: Copy> Interruptible for Slept<R> {
    fn is_interrupted(self) -> bool {
        true
    }
}

/// Makes a call that is a cancellation point: `ours`, or `libcs` on a platform thread of a process
/// whose threads are virtual. Where they are not, this is a load and a branch, and the compiler
/// stores what `ours` owns. Both closures own their arguments (`move`), and `ours` is small enough
/// to be inlined: else more is stored, and loaded again.
///
/// # Safety
/// The caller is `extern "C-unwind"` and has nothing to drop; both calls may be made.
#[inline(always)]
pub(crate) unsafe fn point<R: Interruptible>(libcs: impl FnOnce() -> R, ours: impl Fn() -> R) -> R {
    match posix::is_on() {
        false => ours(),
        // SAFETY: the caller's contract.
        true => unsafe { point_of_posix(libcs, ours) },
    }
}

/// Makes a call that is a cancellation point, by the same function on all threads: on a platform
/// thread it is one at its beginning only.
///
/// # Safety
/// As for [`point`].
#[inline(always)]
pub(crate) unsafe fn own_point<R: Interruptible>(call: impl Fn() -> R + Copy) -> R {
    let on_platform = move || {
        // SAFETY: the caller's contract.
        unsafe { pthread_testcancel() };
        call()
    };
    // SAFETY: the caller's contract.
    unsafe { point(on_platform, call) }
}

/// # Safety
/// As for [`point`].
#[inline(never)]
unsafe fn point_of_posix<R: Interruptible>(libcs: impl FnOnce() -> R, ours: impl Fn() -> R) -> R {
    if vthread::current().is_none() {
        return libcs();
    }
    let Some(own) = posix::own().filter(|_| !mark::is_up()) else {
        return ours();
    };
    loop {
        // SAFETY: the caller's contract.
        unsafe { own.before_wait() };
        let result = ours();
        // SAFETY: the caller's contract.
        if !unsafe { own.after_wait(result.is_interrupted()) } {
            return result;
        }
    }
}

/// Begins a call that is a cancellation point at its beginning only, since it must not be made
/// twice.
///
/// # Safety
/// As for [`point`].
#[inline(always)]
pub(crate) unsafe fn beginning() {
    if posix::is_on() && !mark::is_up() {
        // SAFETY: the caller's contract.
        unsafe { pthread_testcancel() };
    }
}

/// Acts upon a cancellation at the begin of a wait that is a cancellation point.
///
/// # Safety
/// As for [`point`].
pub(super) unsafe fn before_wait() {
    if let Some(own) = posix::own() {
        // SAFETY: the caller's contract.
        unsafe { own.before_wait() };
    }
}

/// Returns whether the running thread is one that can be cancelled.
pub(crate) fn may_be_cancelled() -> bool {
    posix::own().is_some()
}

/// Ends the running thread if it is cancelled asynchronously.
///
/// # Safety
/// As for [`point`], in the thread's own code.
pub(crate) unsafe fn at_any_instruction() {
    if let Some(own) = posix::own() {
        // SAFETY: the caller's contract.
        unsafe { own.test_cancel_anywhere() };
    }
}

/// `pthread_cancel`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cancel(thread: pthread_t) -> c_int {
    let Some(record) = posix::find(thread) else {
        if is_virtual(thread) {
            return libc::ENOSYS;
        }
        // SAFETY: the caller's contract.
        return unsafe { real!(unwinding fn pthread_cancel(thread: pthread_t) -> c_int) };
    };
    // SAFETY: the caller's contract.
    unsafe { record.cancel() };
    0
}

/// `pthread_testcancel`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_testcancel() {
    // SAFETY: the caller's contract.
    unsafe {
        match posix::own() {
            Some(own) => own.test_cancel(),
            None if vthread::current().is_some() => {}
            None => real!(unwinding fn pthread_testcancel() -> ()),
        }
    }
}

/// `pthread_setcancelstate`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        match posix::own() {
            Some(own) => own.set_cancel_state(state, old),
            None => real!(
                unwinding fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int
            ),
        }
    }
}

/// `pthread_setcanceltype`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        match posix::own() {
            Some(own) => own.set_cancel_type(kind, old),
            None => {
                real!(unwinding fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int)
            }
        }
    }
}
