//! Telling sanitizers and valgrind about switches.
//!
//! A sanitizer keeps data about the running thread. It does not see a switch between virtual
//! threads, so each switch tells it which stack runs next. [`address`] is for AddressSanitizer,
//! [`thread`] for ThreadSanitizer, [`valgrind`] for valgrind. A program has one of them at most;
//! the functions of the first two are weak symbols. On a machine without FSGSBASE a switch is not
//! an ordinary one either. All of this costs an ordinary switch one load and one branch.

mod address;
mod thread;
pub mod valgrind;

pub use address::{GETSPECIFIC, KEY, note_key, seal_keys};
pub(crate) use thread::study;

use crate::arch;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicU8, Ordering};

const ADDRESS: u8 = 1;
const THREAD: u8 = 2;
const VALGRIND: u8 = 4;
/// Valgrind's tool memcheck; comes with [`VALGRIND`].
const MEMCHECK: u8 = 8;
/// A system call sets the thread pointer.
const SYSTEM_CALL: u8 = 16;

/// What makes a switch more than ordinary: a set of the above.
static PRESENT: AtomicU8 = AtomicU8::new(0);

/// Returns whether a switch is more than an ordinary one: a sanitizer or valgrind must be told, or
/// a system call sets the thread pointer.
#[inline(always)]
pub(crate) fn switches_are_special() -> bool {
    // Relaxed: written before the first virtual thread; the runtime's start is published with
    // Release.
    PRESENT.load(Ordering::Relaxed) != 0
}

#[inline]
fn is(kind: u8) -> bool {
    PRESENT.load(Ordering::Relaxed) & kind != 0 // Relaxed: as in `switches_are_special`.
}

/// Returns whether the program is instrumented by a sanitizer, whose own runtime calls libc.
#[inline]
pub(crate) fn is_instrumented() -> bool {
    is(ADDRESS | THREAD)
}

/// Returns whether a tool watches each instruction, and is not to be disturbed by signals: a
/// sanitizer or valgrind.
pub fn watches() -> bool {
    is(ADDRESS | THREAD | VALGRIND)
}

/// One side of a switch: a stack and the thread pointer of its TLS block.
pub(crate) struct Side {
    pub(crate) tp: usize,
    /// `None` for the stack of a platform thread.
    pub(crate) stack: Option<Range<usize>>,
}

/// Records what must be known of the running platform thread, which has become a carrier: the
/// bounds of its own stack, for instance, which virtual threads will return to.
pub(crate) fn note_carrier() {
    if is(ADDRESS) {
        address::note_platform_stack();
    }
    valgrind::note_platform_thread();
}

/// Prepares a fresh stack and a fresh TLS block for the first switch to them.
///
/// # Safety
/// The block and the stack are used by the caller alone, and the running TLS block is the platform
/// thread's own.
pub(crate) unsafe fn begin(side: &Side) {
    if is(ADDRESS) {
        address::begin(side);
    }
    if is(THREAD) {
        // SAFETY: the caller's contract.
        unsafe { thread::begin(side.tp) };
    }
}

/// Frees the sanitizer's data about a stack that has been left for good.
///
/// # Safety
/// `tp` is the thread pointer that [`begin`] was called with.
pub(crate) unsafe fn end(tp: usize) {
    if is(THREAD) {
        // SAFETY: the caller's contract.
        unsafe { thread::end(tp) };
    }
}

/// Announces the switch from `from`, the running side, to `to`; for good, if it is the `last` one.
/// Returns what [`arrive`] wants on the way back.
///
/// # Safety
/// The switch follows at once.
#[inline]
pub(crate) unsafe fn leave(from: &Side, to: &Side, last: bool) -> *mut c_void {
    if is(THREAD) {
        // SAFETY: the caller's contract.
        unsafe { thread::leave(from.tp, to.tp) };
    }
    match is(ADDRESS) {
        // SAFETY: the caller's contract.
        true => unsafe { address::leave(to, last) },
        false => ptr::null_mut(),
    }
}

/// Announces that a switch is complete: on a fresh stack with null, else with the result of
/// [`leave`].
#[inline]
pub(crate) fn arrive(left: *mut c_void) {
    if is(ADDRESS) {
        address::arrive(left);
    }
}

/// Announces that what the running thread has done so far happens before what follows an
/// [`acquire`] of the same address.
#[inline]
pub(crate) fn release(place: *const c_void) {
    if is(THREAD) {
        thread::release(place);
    }
}

/// See [`release`].
#[inline]
pub(crate) fn acquire(place: *const c_void) {
    if is(THREAD) {
        thread::acquire(place);
    }
}

/// Tells the sanitizer that the running thread uses the TLS block at `to`, for a call with this
/// thread pointer. Returns what [`take_back`] wants.
///
/// # Safety
/// Both are TLS blocks of the running OS thread.
pub unsafe fn lend(from: usize, to: usize) -> usize {
    match is(THREAD) {
        // SAFETY: the caller's contract.
        true => unsafe { thread::replace(to, thread::read(from)) },
        false => 0,
    }
}

/// Ends what [`lend`] began.
///
/// # Safety
/// As for `lend`; `lent` is its result for this block.
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
        let ignored = is(THREAD);
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
pub fn extra_stack(image: usize) -> usize {
    if is(THREAD) { image } else { 0 }
}

/// Finds out which sanitizer there is. Called by the start, before there are carriers.
pub fn find_out() {
    let mut present = 0;
    for (bit, is_there) in [
        (ADDRESS, address::is_linked()),
        (THREAD, thread::is_linked()),
        (VALGRIND, arch::on_valgrind()),
        (MEMCHECK, valgrind::is_memcheck()),
        (SYSTEM_CALL, arch::switches_slowly()),
    ] {
        present |= if is_there { bit } else { 0 };
    }
    PRESENT.store(present, Ordering::Relaxed); // Relaxed: as in `switches_are_special`.
    if is(VALGRIND) {
        arch::register_stacks();
    }
}
