//! Telling sanitizers about switches.
//!
//! A sanitizer keeps data about the running thread. It does not see a switch between virtual
//! threads, so each switch tells it which stack runs next. [`address`] is for AddressSanitizer,
//! [`thread`] for ThreadSanitizer. A program has one of them at most, and its functions are weak
//! symbols: without a sanitizer a switch costs one load and one branch.

mod address;
mod thread;

pub(crate) use address::{GETSPECIFIC, KEY, note_key, seal_keys};
pub(crate) use thread::study;

use core::ffi::c_void;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicU8, Ordering};

const ADDRESS: u8 = 1;
const THREAD: u8 = 2;

/// Which sanitizer is present; 0 for none.
static PRESENT: AtomicU8 = AtomicU8::new(0);

/// Returns whether a sanitizer must be told of switches.
#[inline(always)]
pub(crate) fn present() -> bool {
    // Relaxed: written before the first virtual thread; the runtime's start is published with
    // Release.
    PRESENT.load(Ordering::Relaxed) != 0
}

#[inline]
fn is(kind: u8) -> bool {
    PRESENT.load(Ordering::Relaxed) == kind // Relaxed: as in `present`.
}

/// One side of a switch: a stack and the thread pointer of its TLS block.
pub(crate) struct Side {
    pub(crate) tp: usize,
    /// `None` for the stack of a platform thread.
    pub(crate) stack: Option<Range<usize>>,
}

/// Records the bounds of the running platform thread's own stack, which virtual threads will
/// return to.
pub(crate) fn note_platform_stack() {
    if is(ADDRESS) {
        address::note_platform_stack();
    }
}

/// Prepares a fresh stack and a fresh TLS block for the first switch to them.
///
/// # Safety
/// The block and the stack are used by the caller alone, and the running TLS block is the platform
/// thread's own.
pub(crate) unsafe fn begin(side: &Side) {
    match PRESENT.load(Ordering::Relaxed) {
        // Relaxed: as in `present`.
        ADDRESS => address::begin(side),
        // SAFETY: the caller's contract.
        THREAD => unsafe { thread::begin(side.tp) },
        _ => {}
    }
}

/// Frees the sanitizer's data about a stack that has been left for good.
///
/// # Safety
/// `tp` is the thread pointer that [`begin`] was called with.
#[inline]
pub(crate) unsafe fn end(tp: usize) {
    if present() {
        // SAFETY: the caller's contract.
        unsafe { thread::end(tp) };
    }
}

/// Announces the switch from `from`, the running side, to `to`; for good, if it is the `last` one.
/// Returns what [`arrive`] wants on the way back.
///
/// # Safety
/// The switch follows at once.
pub(crate) unsafe fn leave(from: &Side, to: &Side, last: bool) -> *mut c_void {
    match PRESENT.load(Ordering::Relaxed) {
        // Relaxed: as in `present`. SAFETY: the caller's contract.
        ADDRESS => unsafe { address::leave(to, last) },
        // SAFETY: the caller's contract.
        THREAD => unsafe { thread::leave(from.tp, to.tp) },
        _ => ptr::null_mut(),
    }
}

/// Announces that a switch is complete: on a fresh stack with null, else with the result of
/// [`leave`].
pub(crate) fn arrive(left: *mut c_void) {
    if is(ADDRESS) {
        address::arrive(left);
    }
}

/// Announces that what the running thread has done so far happens before what follows an
/// [`acquire`] of the same address.
#[inline]
pub(crate) fn release(place: *const c_void) {
    if present() {
        thread::release(place);
    }
}

/// See [`release`].
#[inline]
pub(crate) fn acquire(place: *const c_void) {
    if present() {
        thread::acquire(place);
    }
}

/// Makes the TLS block at `to` that of the running thread in the sanitizer's eyes, for a call with
/// this thread pointer. Returns what [`take_back`] wants.
///
/// # Safety
/// Both are TLS blocks of the running OS thread.
#[inline]
pub(crate) unsafe fn lend(from: usize, to: usize) -> usize {
    if present() && is(THREAD) {
        // SAFETY: the caller's contract.
        return unsafe { thread::replace(to, thread::read(from)) };
    }
    0
}

/// Ends what [`lend`] began.
///
/// # Safety
/// As for `lend`; `lent` is its result for this block.
#[inline]
pub(crate) unsafe fn take_back(to: usize, lent: usize) {
    if is(THREAD) {
        // SAFETY: the caller's contract.
        unsafe { thread::replace(to, lent) };
    }
}

/// While it lives, ThreadSanitizer ignores what the running thread does: the runtime's own work,
/// whose order the sanitizer does not see.
pub(crate) struct Ignored(bool);

impl Ignored {
    /// Begins.
    #[inline]
    pub(crate) fn new() -> Ignored {
        let ignored = present();
        if ignored {
            thread::ignore(true);
        }
        Ignored(ignored)
    }
}

impl Drop for Ignored {
    #[inline]
    fn drop(&mut self) {
        if self.0 {
            thread::ignore(false);
        }
    }
}

/// Returns the bytes of stack that the sanitizer needs for itself, of `image` bytes of TLS.
pub(crate) fn extra_stack(image: usize) -> usize {
    if is(THREAD) { image } else { 0 }
}

/// Finds out which sanitizer there is. Called by the start, before there are carriers.
pub(crate) fn find_out() {
    let kind = if address::is_linked() { ADDRESS } else { 0 };
    let kind = if thread::is_linked() { THREAD } else { kind };
    PRESENT.store(kind, Ordering::Relaxed); // Relaxed: as in `present`.
}
