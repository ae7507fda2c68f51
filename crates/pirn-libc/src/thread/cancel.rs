//! Cancellation of threads that `pthread_create` has made.
//!
//! A virtual thread's state is in its record, not in glibc's, whose bits differ by version. Who
//! cancels a thread sets a bit and interrupts it, which ends its wait if it has one; the thread
//! acts at its next cancellation point, as if it called `pthread_exit` there. So glibc unwinds the
//! stack and runs what `pthread_cleanup_push` and C++ have there.
//!
//! ```text
//!   canceller                 the thread, at a cancellation point
//!   1 PENDING                 a  PENDING, and not DISABLED?      act
//!   2 not DISABLED:           b  the call; a wait in it ends
//!     interrupt               c  ended by an interrupt?          a, and then the call again
//! ```
//!
//! A call that has had an effect is not cancelled: what it has read would be lost. The interrupt of
//! a thread that has disabled cancellation meanwhile is taken back at the next point.
//!
//! No frame between the program and [`act`] has anything to drop: the functions that are
//! cancellation points are `extern "C-unwind"`, and call [`point`] before all else.
//!
//! On a platform thread of a process with such threads the functions that wait are libc's own,
//! which are cancellation points; ours call the kernel directly, and are none. Before the others
//! ([`own_point`]) libc is asked whether the thread is cancelled.
//!
//! Asynchronous cancellation acts at cancellation points, at once in the thread itself, and where
//! the thread computes: it is [summoned](pirn_rt::vthread::summons), and so interrupted in its own
//! code ([`at_any_instruction`]). In a wait that is no cancellation point it acts after that.

use super::is_virtual;
use super::policy;
use super::pthread::{self, Pthread};
use crate::registry::interposed;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
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

const ENABLE: c_int = 0;
const DISABLE: c_int = 1;
const DEFERRED: c_int = 0;
const ASYNCHRONOUS: c_int = 1;
/// `PTHREAD_CANCELED`.
const CANCELED: *mut c_void = ptr::without_provenance_mut(usize::MAX);

/// Whether a thread is cancelled, and may be.
pub(super) struct Cancellation(AtomicU32);

impl Cancellation {
    const PENDING: u32 = 1;
    const DISABLED: u32 = 2;
    const ASYNCHRONOUS: u32 = 4;
    /// It ends already.
    const ENDING: u32 = 8;

    pub(super) const fn new() -> Cancellation {
        Cancellation(AtomicU32::new(0))
    }

    // SeqCst throughout: a canceller's bit and a thread's change of its state are in one order.

    fn is_asynchronous(&self) -> bool {
        self.0.load(SeqCst) & Cancellation::ASYNCHRONOUS != 0
    }

    fn is_pending(&self) -> bool {
        self.0.load(SeqCst) & Cancellation::PENDING != 0
    }

    /// Returns whether the thread must act.
    fn is_due(&self) -> bool {
        let stops = Cancellation::DISABLED | Cancellation::ENDING;
        self.0.load(SeqCst) & (Cancellation::PENDING | stops) == Cancellation::PENDING
    }

    /// Notes that the thread ends, and is not cancelled any more.
    pub(super) fn end(&self) {
        self.0.fetch_or(Cancellation::ENDING, SeqCst);
    }

    /// Sets or clears a bit. Returns what it was.
    fn change(&self, bit: u32, on: bool) -> c_int {
        let before = match on {
            true => self.0.fetch_or(bit, SeqCst),
            false => self.0.fetch_and(!bit, SeqCst),
        };
        c_int::from(before & bit != 0)
    }
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
    match policy::is_on() {
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
    let Some(own) = pthread::own().filter(|_| !mark::is_up()) else {
        return ours();
    };
    loop {
        // SAFETY: the caller's contract.
        unsafe { own.before_wait() };
        let result = ours();
        if !own.cancellation.is_pending() || !result.is_interrupted() {
            return result;
        }
        // SAFETY: as above.
        unsafe { own.act_if_due() };
        if vthread::current().is_none_or(|core| !core.wait.take()) {
            return result; // Interrupted by something else.
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
    if policy::is_on() && !mark::is_up() {
        // SAFETY: the caller's contract.
        unsafe { pthread_testcancel() };
    }
}

impl Pthread {
    /// Acts upon a cancellation, or makes sure that one that may not act does not disturb waits.
    ///
    /// # Safety
    /// As for [`point`].
    unsafe fn before_wait(&self) {
        if self.cancellation.is_pending() {
            // SAFETY: the caller's contract.
            unsafe { self.act_if_due() };
            if let Some(core) = vthread::current() {
                core.wait.take();
            }
        }
    }

    /// Ends the running thread, whose record this is, if it is cancelled.
    ///
    /// # Safety
    /// As for [`point`].
    unsafe fn act_if_due(&self) {
        if self.cancellation.is_due() {
            // SAFETY: the caller's contract.
            unsafe { act(self) }
        }
    }
}

/// Acts upon a cancellation at the begin of a wait that is a cancellation point.
///
/// # Safety
/// As for [`point`].
pub(super) unsafe fn before_wait() {
    if let Some(own) = pthread::own() {
        // SAFETY: the caller's contract.
        unsafe { own.before_wait() };
    }
}

/// Ends the running thread.
///
/// # Safety
/// As for [`point`].
#[cold]
unsafe fn act(own: &Pthread) -> ! {
    own.cancellation.end();
    if let Some(core) = vthread::current() {
        core.wait.take(); // Cleanup handlers may wait.
    }
    let value = CANCELED;
    own.exit_with(value);
    // SAFETY: the caller's contract.
    unsafe { real!(unwinding fn pthread_exit(value: *mut c_void) -> !) }
}

/// Returns whether the running thread is cancelled, so that a wait that an interrupt has ended must
/// not be begun again.
pub(super) fn is_due() -> bool {
    pthread::own().is_some_and(|own| own.cancellation.is_due())
}

/// Returns whether the running thread is one that can be cancelled.
pub(crate) fn may_be_cancelled() -> bool {
    pthread::own().is_some()
}

/// `pthread_cancel`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cancel(thread: pthread_t) -> c_int {
    let Some(record) = pthread::find(thread) else {
        if is_virtual(thread) {
            return libc::ENOSYS;
        }
        // SAFETY: the caller's contract.
        return unsafe { real!(unwinding fn pthread_cancel(thread: pthread_t) -> c_int) };
    };
    let state = &record.cancellation;
    let again = state.change(Cancellation::PENDING, true) != 0;
    let is_own = pthread::own().is_some_and(|own| ptr::eq(own, record));
    if is_own && state.is_asynchronous() {
        // SAFETY: the caller's contract.
        unsafe { record.act_if_due() };
    }
    if !again && !is_own && state.is_due() && !record.has_ended() {
        // SAFETY: the caller's contract: the program may still use the thread's `pthread_t`.
        unsafe {
            record.interrupt();
            if state.is_asynchronous() {
                record.summon();
            }
        }
    }
    0
}

/// Ends the running thread if it is cancelled asynchronously.
///
/// # Safety
/// As for [`point`], in the thread's own code.
pub(crate) unsafe fn at_any_instruction() {
    if let Some(own) = pthread::own()
        && own.cancellation.is_asynchronous()
    {
        // SAFETY: the caller's contract.
        unsafe { own.act_if_due() };
    }
}

/// `pthread_testcancel`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_testcancel() {
    // SAFETY: the caller's contract.
    unsafe {
        match pthread::own() {
            Some(own) => own.act_if_due(),
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
    let Some(own) = pthread::own() else {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(unwinding fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int)
        };
    };
    if !matches!(state, ENABLE | DISABLE) {
        return libc::EINVAL;
    }
    let before = own
        .cancellation
        .change(Cancellation::DISABLED, state == DISABLE);
    // SAFETY: the caller's contract.
    unsafe { changed(own, before, old) }
}

/// `pthread_setcanceltype`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int {
    let Some(own) = pthread::own() else {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(unwinding fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int)
        };
    };
    if !matches!(kind, DEFERRED | ASYNCHRONOUS) {
        return libc::EINVAL;
    }
    let before = own
        .cancellation
        .change(Cancellation::ASYNCHRONOUS, kind == ASYNCHRONOUS);
    // SAFETY: the caller's contract.
    unsafe { changed(own, before, old) }
}

/// Returns the earlier state, and acts at once if cancellation is asynchronous now.
///
/// # Safety
/// As for [`point`]; `old` is null or valid for a write.
unsafe fn changed(own: &Pthread, before: c_int, old: *mut c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        if !old.is_null() {
            *old = before;
        }
        if own.cancellation.is_asynchronous() {
            own.act_if_due();
        }
    }
    0
}
