//! What other functions of libc do if `pthread_create` makes virtual threads.
//!
//! Such threads have what POSIX gives to threads: they are joined and cancelled by their
//! `pthread_t`, have ids, and the process ends when the last of them ends. The crate `pirn-posix`
//! makes them, and [installs](install) itself here. Only `libpirn.so` contains it, so a program
//! that is written for Pirn pays a load and a branch.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use libc::{pthread_attr_t, pthread_t};
use pirn_rt::stack::Slot;
use pirn_rt::time::Deadline;
use std::sync::OnceLock;

/// A start routine, which `pthread_exit` and cancellation may unwind.
pub type PosixRoutine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
/// A start routine in C11.
pub type C11Routine = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;

/// A start routine, of one of two kinds.
#[derive(Clone, Copy)]
pub enum Routine {
    Posix(PosixRoutine),
    C11(C11Routine),
}

/// What makes virtual threads of `pthread_create`, and counts the threads of the program.
pub trait Threads: Sync {
    /// Makes a thread. Returns libc's result; `None`: libc is to make a platform thread.
    ///
    /// # Safety
    /// As for `pthread_create`, or `thrd_create` without attributes.
    unsafe fn create(
        &self,
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        routine: Routine,
        argument: *mut c_void,
    ) -> Option<c_int>;

    /// Returns the record of a thread that it has made.
    fn find(&self, thread: pthread_t) -> Option<&dyn Record>;

    /// Returns the record of the running thread, if it has made it.
    fn own(&self) -> Option<&dyn Record>;

    /// The running platform thread calls `pthread_exit`.
    fn exits(&self);

    /// Counts anew, in the child of a fork: there is one thread.
    fn count_anew(&self);

    /// Forgets, in the child, that the running thread, which has forked, was virtual.
    fn forget_own(&self);
}

/// A virtual thread that `pthread_create` has made. A program may use a `pthread_t` until the
/// thread is joined, or detached and ended; until then its record exists.
pub trait Record: Cancellable {
    /// Joins the thread, as `pthread_join` does. If the caller has to wait, it waits until the
    /// deadline that `deadline` returns.
    ///
    /// # Safety
    /// The thread has not been joined, nor detached and ended; `value` is null or valid for a
    /// write.
    unsafe fn join(
        &self,
        value: *mut *mut c_void,
        deadline: &dyn Fn() -> Result<Deadline, c_int>,
    ) -> c_int;

    /// Returns whether this other thread, of either kind, is joining the thread.
    fn is_joined_by(&self, thread: pthread_t) -> bool;

    /// Detaches the thread, as `pthread_detach` does.
    ///
    /// # Safety
    /// As for [`join`](Self::join).
    unsafe fn detach(&self) -> c_int;

    fn is_detached(&self) -> bool;

    fn has_ended(&self) -> bool;

    /// Returns the lowest address of the stack that it can use, and the size of the guard that its
    /// creator has asked for.
    fn stack(&self, slot: Slot) -> (usize, usize);

    /// Notes the result of the running thread, which ends by `pthread_exit`.
    fn exit_with(&self, value: *mut c_void);
}

/// The part of a [`Record`] that is about cancellation.
pub trait Cancellable {
    /// Cancels the thread, as `pthread_cancel` does.
    ///
    /// # Safety
    /// As for [`join`](Record::join), and the caller may end by `pthread_exit`.
    unsafe fn cancel(&self);

    /// Enables or disables cancellation of the running thread, as `pthread_setcancelstate` does.
    ///
    /// # Safety
    /// As for [`point`](crate::cancel::point); `old` is null or valid for a write.
    unsafe fn set_cancel_state(&self, state: c_int, old: *mut c_int) -> c_int;

    /// Makes cancellation of the running thread deferred or asynchronous, as
    /// `pthread_setcanceltype` does.
    ///
    /// # Safety
    /// As for [`set_cancel_state`](Self::set_cancel_state).
    unsafe fn set_cancel_type(&self, kind: c_int, old: *mut c_int) -> c_int;

    /// Ends the running thread if it is cancelled.
    ///
    /// # Safety
    /// As for [`point`](crate::cancel::point).
    unsafe fn test_cancel(&self);

    /// Returns whether the thread is cancelled asynchronously, and has not acted yet.
    fn is_cancelled_anywhere(&self) -> bool;

    /// Ends the running thread if it is cancelled asynchronously: it may be anywhere in its own
    /// code.
    ///
    /// # Safety
    /// As for [`point`](crate::cancel::point), at any instruction.
    unsafe fn test_cancel_anywhere(&self);

    /// Ends the running thread, which is about to wait, if it is cancelled. Takes back the
    /// interrupt of a cancellation that is disabled.
    ///
    /// # Safety
    /// As for [`point`](crate::cancel::point).
    unsafe fn before_wait(&self);

    /// Ends the running thread if it is cancelled and its wait was interrupted. Returns whether
    /// only a cancellation that the thread has disabled interrupted the wait: then it begins again.
    ///
    /// # Safety
    /// As for [`point`](crate::cancel::point).
    unsafe fn after_wait(&self, was_interrupted: bool) -> bool;
}

/// Whether `pthread_create` makes virtual threads.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether the program has set default attributes of threads.
static HAS_DEFAULTS: AtomicBool = AtomicBool::new(false);

static THREADS: OnceLock<&'static dyn Threads> = OnceLock::new();

/// Installs what makes virtual threads. Only the first call has an effect.
pub fn install(threads: &'static dyn Threads) {
    let _ = THREADS.set(threads);
}

/// Lets `pthread_create` make virtual threads from now on, or platform threads again.
pub fn switch(on: bool) {
    // Relaxed: carries no other data; threads that are created meanwhile are of either kind.
    IS_ON.store(on, Relaxed);
}

/// Returns whether `pthread_create` makes virtual threads.
#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Relaxed) // Relaxed: carries no other data.
}

/// Makes a virtual thread, if `pthread_create` makes virtual threads. Returns libc's result;
/// `None`: libc must make a platform thread.
///
/// # Safety
/// As for `pthread_create`, or `thrd_create` without attributes.
pub(crate) unsafe fn create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> Option<c_int> {
    let threads = threads().filter(|_| is_on())?;
    // SAFETY: the caller's contract.
    unsafe { threads.create(thread, attributes, routine, argument) }
}

#[inline]
pub(crate) fn threads() -> Option<&'static dyn Threads> {
    THREADS.get().copied()
}

/// Returns the record of a thread, if it is a virtual one that `pthread_create` has made.
pub(crate) fn find(thread: pthread_t) -> Option<&'static dyn Record> {
    threads()?.find(thread)
}

/// Returns the record of the running thread, if `pthread_create` has made it.
pub(crate) fn own() -> Option<&'static dyn Record> {
    threads()?.own()
}

/// Notes that the program sets default attributes of threads.
pub(crate) fn note_defaults() {
    // Relaxed: a thread that is created at the same time gets either. A caller that knows of the
    // change has the store as well.
    HAS_DEFAULTS.store(true, Relaxed);
}

/// Returns whether the program has set default attributes of threads.
#[inline]
pub fn has_defaults() -> bool {
    HAS_DEFAULTS.load(Relaxed) // Relaxed: pairs with nothing, see `note_defaults`.
}
