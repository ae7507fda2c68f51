//! Cancellation points, and the functions of `pthread.h` about cancellation.
//!
//! A virtual thread can be cancelled if `pthread_create` has made it ([`posix`]). It then ends as
//! if it called `pthread_exit` at the point, so glibc unwinds its stack. No frame between the
//! program and that call has anything to drop: the functions that are cancellation points are
//! `extern "C-unwind"`, and call [`point`] before all else.
//!
//! A call that has had an effect is not cancelled: what it has read would be lost.
//!
//! On a platform thread of a process with such threads, the functions that wait call libc's own,
//! which are cancellation points: ours call the kernel directly, and are no cancellation points
//! there. The other functions ([`own_point`]) first ask libc whether the thread is cancelled.

use crate::identity::is_virtual;
use crate::posix;
use crate::registry::interposed;
use core::ffi::c_int;
use libc::pthread_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking;
use pirn_rt::no_suspend;
use pirn_rt::sched::simulation::{self, Point};
use pirn_rt::sys;
use pirn_rt::vthread;
use pirn_rt::vthread::wait_word;

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
pub(crate) trait CallResult: Copy {
    fn is_interrupted(self) -> bool;
}

impl CallResult for c_int {
    fn is_interrupted(self) -> bool {
        self == -1 && says_interrupted(sys::errno())
    }
}

impl CallResult for isize {
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

impl CallResult for Number {
    fn is_interrupted(self) -> bool {
        says_interrupted(self.0)
    }
}

/// The result of a sleep, which may end early without an error, and has no effect that could be
/// lost.
#[derive(Clone, Copy)]
pub(crate) struct Slept<R>(pub(crate) R);

impl<R: Copy> CallResult for Slept<R> {
    fn is_interrupted(self) -> bool {
        true
    }
}

/// Makes a call that is a cancellation point: `ours`, or `libcs` on a platform thread of a process
/// whose threads are virtual. In other processes this costs a load and a branch, and the compiler
/// stores what `ours` owns. Both closures own their arguments (`move`), and `ours` is small enough
/// to be inlined: otherwise the compiler would store more, and load it again.
///
/// # Safety
/// The caller is `extern "C-unwind"` and has nothing to drop; both calls may be made.
#[inline(always)]
pub(crate) unsafe fn point<R: CallResult>(libcs: impl FnOnce() -> R, ours: impl Fn() -> R) -> R {
    simulation::point(Point::Call);
    match posix::is_on() {
        false => ours(),
        // SAFETY: the caller's contract.
        true => unsafe { point_of_posix(libcs, ours) },
    }
}

/// Makes a call that is a cancellation point, by the same function on all threads: on a platform
/// thread the call is a cancellation point at its beginning only.
///
/// # Safety
/// As for [`point`].
#[inline(always)]
pub(crate) unsafe fn own_point<R: CallResult>(call: impl Fn() -> R + Copy) -> R {
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
unsafe fn point_of_posix<R: CallResult>(libcs: impl FnOnce() -> R, ours: impl Fn() -> R) -> R {
    if vthread::current().is_none() {
        return libcs();
    }
    let Some(own) = posix::own().filter(|_| !no_suspend::is_on()) else {
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
    simulation::point(Point::Call);
    if posix::is_on() && !no_suspend::is_on() {
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

/// Returns how an interrupt ends a wait that only a cancellation may end.
pub(crate) fn interruptible() -> wait_word::Interruptible {
    match posix::own() {
        Some(_) => wait_word::Interruptible::OnceInFutex,
        None => wait_word::Interruptible::Never,
    }
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

/// Returns whether the running thread is cancelled asynchronously.
pub(crate) fn is_due_anywhere() -> bool {
    posix::own().is_some_and(|own| own.is_cancelled_anywhere())
}

#[libc_fn]
pub unsafe fn pthread_cancel(thread: pthread_t) -> c_int {
    let Some(record) = posix::find(thread) else {
        if is_virtual(thread) {
            return libc::ENOSYS;
        }
        return libcs!();
    };
    record.cancel();
    0
}

#[libc_fn]
pub unsafe fn pthread_testcancel() {
    match posix::own() {
        Some(own) => own.test_cancel(),
        None if vthread::current().is_some() => {}
        None => libcs!(),
    }
}

#[libc_fn]
pub unsafe fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int {
    match posix::own() {
        Some(own) => own.set_cancel_state(state, old),
        None => libcs!(),
    }
}

#[libc_fn]
pub unsafe fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int {
    match posix::own() {
        Some(own) => own.set_cancel_type(kind, old),
        None => libcs!(),
    }
}
