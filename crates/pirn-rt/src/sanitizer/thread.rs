//! ThreadSanitizer.
//!
//! It has a *fiber* per virtual thread, and keeps the running one in a word of static TLS. Each
//! virtual thread has a TLS block of its own, whose word holds the thread's fiber for life; a
//! switch in the old block changes the old block's word, so it is put back afterwards.
//!
//! A switch orders nothing in the sanitizer's eyes. What does is announced: a wake happens before
//! the thread goes on, a spawn before its start, its end before a join. The locks of `pthread.h`
//! are tried and unlocked through libc's functions, which the sanitizer sees.
//!
//! Source: LLVM, `compiler-rt/lib/tsan/rtl/tsan_rtl_thread.cpp` and `tsan_rtl.h` (`cur_thread`).

use crate::arch::{self, weak};
use crate::glibc::tls;
use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicIsize, Ordering};

type GetFiber = unsafe extern "C" fn() -> *mut c_void;
type CreateFiber = unsafe extern "C" fn(c_uint) -> *mut c_void;
type SwitchFiber = unsafe extern "C" fn(*mut c_void, c_uint);
type DestroyFiber = unsafe extern "C" fn(*mut c_void);
type Ignore = unsafe extern "C" fn();
type Sync = unsafe extern "C" fn(*const c_void);

/// `__tsan_switch_to_fiber_no_sync`.
const NO_SYNC: c_uint = 1;

/// Distance of the sanitizer's word from tp; 0 until it is known.
static WORD: AtomicIsize = AtomicIsize::new(0);

struct Functions {
    current: GetFiber,
    create: CreateFiber,
    switch: SwitchFiber,
    destroy: DestroyFiber,
}

fn functions() -> Option<Functions> {
    Some(Functions {
        current: weak!("__tsan_get_current_fiber" as GetFiber)?,
        create: weak!("__tsan_create_fiber" as CreateFiber)?,
        switch: weak!("__tsan_switch_to_fiber" as SwitchFiber)?,
        destroy: weak!("__tsan_destroy_fiber" as DestroyFiber)?,
    })
}

/// Returns whether the program has this sanitizer.
pub(super) fn is_linked() -> bool {
    functions().is_some()
}

/// Finds the sanitizer's word in the static TLS of the running platform thread: the one that holds
/// the running fiber, and changes when another runs.
///
/// # Errors
/// There is no such word.
pub(crate) fn study(template: &tls::Template) -> Result<(), String> {
    let Some(tsan) = functions() else {
        return Ok(());
    };
    let tp = arch::thread_pointer();
    // SAFETY: inside the static TLS of the running thread.
    let read = |word: usize| unsafe { (word as *const *mut c_void).read_volatile() };
    // SAFETY: the fibers are the running one and a fresh one; the calls come in their order.
    let found = unsafe {
        let own = (tsan.current)();
        let words = template.images_at(tp).step_by(8);
        let first = Vec::from_iter(words.filter(|&word| read(word) == own));
        let other = (tsan.create)(0);
        (tsan.switch)(other, 0);
        let found = first.into_iter().find(|&word| read(word) == other);
        (tsan.switch)(own, 0);
        (tsan.destroy)(other);
        found
    };
    let word = found.ok_or("ThreadSanitizer keeps its thread where pirn does not find it")?;
    let distance = word.wrapping_sub(tp) as isize;
    WORD.store(distance, Ordering::Relaxed); // Relaxed: published by the end of the runtime's start.
    Ok(())
}

fn word(tp: usize) -> *mut usize {
    tp.wrapping_add_signed(WORD.load(Ordering::Relaxed)) as *mut usize // Relaxed: as in `study`.
}

/// Returns the fiber of a TLS block.
///
/// # Safety
/// `tp` is a TLS block of the running OS thread, or one that no thread uses.
pub(super) unsafe fn read(tp: usize) -> usize {
    // SAFETY: the word is in every block; the caller's contract.
    unsafe { word(tp).read_volatile() }
}

/// Replaces the fiber of a TLS block, and returns the old one.
///
/// # Safety
/// As for [`read`].
pub(super) unsafe fn replace(tp: usize, fiber: usize) -> usize {
    // SAFETY: as in `read`.
    unsafe {
        let old = read(tp);
        word(tp).write_volatile(fiber);
        old
    }
}

/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn begin(tp: usize) {
    let Some(tsan) = functions() else { return };
    // SAFETY: the caller's contract.
    unsafe { replace(tp, (tsan.create)(0) as usize) };
}

/// # Safety
/// As for [`super::end`].
#[cold]
#[inline(never)]
pub(super) unsafe fn end(tp: usize) {
    let Some(tsan) = functions() else { return };
    // SAFETY: the caller's contract: the fiber does not run any more.
    unsafe { (tsan.destroy)(replace(tp, 0) as *mut c_void) };
}

/// # Safety
/// As for [`super::leave`].
pub(super) unsafe fn leave(from: usize, to: usize) {
    if let Some(tsan) = functions() {
        // SAFETY: `from` is the running block, so its word is the running fiber; `to` is suspended.
        unsafe {
            let own = read(from);
            (tsan.switch)(read(to) as *mut c_void, NO_SYNC);
            replace(from, own);
        }
    }
}

/// Begins or ends to ignore what the running thread does, if this sanitizer is there.
#[cold]
#[inline(never)]
pub(super) fn ignore(begin: bool) {
    let function = match begin {
        true => weak!("__tsan_ignore_thread_begin" as Ignore),
        false => weak!("__tsan_ignore_thread_end" as Ignore),
    };
    if let Some(function) = function {
        // SAFETY: the caller ends what it has begun.
        unsafe { function() };
    }
}

#[cold]
#[inline(never)]
pub(super) fn release(place: *const c_void) {
    if let Some(release) = weak!("__tsan_release" as Sync) {
        // SAFETY: the address is only a name.
        unsafe { release(place) };
    }
}

#[cold]
#[inline(never)]
pub(super) fn acquire(place: *const c_void) {
    if let Some(acquire) = weak!("__tsan_acquire" as Sync) {
        // SAFETY: the address is only a name.
        unsafe { acquire(place) };
    }
}
