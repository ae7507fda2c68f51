//! The mark of code that must not be parked, moved to another carrier, or made to run foreign code.
//!
//! Each thread has a mark in its thread-local storage. It is up
//!
//! * in runtime code that knows its carrier, holds a [`Lock`](crate::lock::Lock), or has told
//!   others of a wait that has not ended ([`Raised`]);
//! * in a signal handler, which may have interrupted such code, or libc's ([`InHandler`]).
//!
//! While it is up, interposed functions act as on a platform thread. Such code may call them: a
//! handler does, and an allocator that the runtime calls. And the thread is not preempted, nor is
//! it while it is [`Held`], which forbids nothing else.
//!
//! ```text
//!   bits 31 ... 16       15 ... 0
//!   handlers entered     sections of the runtime entered
//! ```
//!
//! A handler may be left by a jump, which drops nothing. So the handlers of a thread are linked
//! through their frames, and `siglongjmp` asks which of them it leaves ([`jump`]).

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

const SECTION: u32 = 1;
const HANDLER: u32 = 1 << 16;
const HANDLERS: u32 = !(HANDLER - 1);

thread_local! {
    /// Part of each thread's TLS block, and zero in a new one.
    static MARK: Cell<u32> = const { Cell::new(0) };
    /// The number of sections in which the thread is not to be preempted, but may park.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// The innermost handler that the thread is in.
    static INNERMOST: Cell<*const InHandler> = const { Cell::new(ptr::null()) };
}

/// Returns whether the mark is up.
#[inline(always)]
pub(crate) fn is_up() -> bool {
    MARK.get() != 0
}

/// Returns whether the running thread is in a signal handler.
#[inline(always)]
pub(crate) fn in_handler() -> bool {
    MARK.get() >= HANDLER
}

/// Returns whether the running thread must not be preempted.
#[inline(always)]
pub(crate) fn forbids_preemption() -> bool {
    is_up() || HELD.get() != 0
}

/// Keeps the running thread's mark up until it is dropped, by the same thread.
pub(crate) struct Raised(PhantomData<*const ()>);

impl Raised {
    /// Raises the mark.
    #[inline(always)]
    pub(crate) fn new() -> Raised {
        MARK.set(MARK.get().wrapping_add(SECTION));
        // Handlers run on the same thread: the compiler alone could reorder this.
        compiler_fence(Ordering::SeqCst);
        Raised(PhantomData)
    }

    /// Leaves the mark up, for code that this thread runs later and that will [adopt](Self::adopt)
    /// it.
    pub(crate) fn leave_up(self) {
        core::mem::forget(self);
    }

    /// Takes over a mark that was [left up](Self::leave_up) for the calling code.
    pub(crate) fn adopt() -> Raised {
        Raised(PhantomData)
    }
}

impl Drop for Raised {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst); // As in `new`.
        MARK.set(MARK.get().wrapping_sub(SECTION));
    }
}

/// Keeps the running thread from being preempted until it is dropped, by the same thread. The
/// thread may park meanwhile.
pub(crate) struct Held(PhantomData<*const ()>);

impl Held {
    /// Begins such a section.
    #[inline]
    pub(crate) fn new() -> Held {
        HELD.set(HELD.get().wrapping_add(1));
        compiler_fence(Ordering::SeqCst); // As in `Raised::new`.
        Held(PhantomData)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst); // As in `Raised::new`.
        HELD.set(HELD.get().wrapping_sub(1));
    }
}

/// A signal handler that the running thread is in, in the frame of the handler's caller.
///
/// Another signal may come at any instruction here, and its handler may leave this one by a jump.
/// So a handler is linked before it raises the mark, and unlinked after it has lowered it, and to
/// leave it twice, or before it has raised the mark, does no harm.
pub(crate) struct InHandler {
    outer: *const InHandler,
    /// The handlers' part of the mark outside of this one.
    before: u32,
}

impl InHandler {
    /// Calls `handler` with the mark up.
    #[inline(always)]
    pub(crate) fn run(handler: impl FnOnce()) {
        let this = InHandler {
            outer: INNERMOST.get(),
            before: MARK.get() & HANDLERS,
        };
        compiler_fence(Ordering::SeqCst); // As in `Raised::new`.
        INNERMOST.set(&this);
        compiler_fence(Ordering::SeqCst);
        MARK.set(MARK.get().wrapping_add(HANDLER));
        compiler_fence(Ordering::SeqCst);
        handler(); // If it unwinds, `this` is dropped, as at its end.
    }

    /// Notes that this handler, the innermost, has been left.
    fn leave(&self) {
        compiler_fence(Ordering::SeqCst); // As in `Raised::new`.
        MARK.set(MARK.get() & !HANDLERS | self.before);
        compiler_fence(Ordering::SeqCst);
        INNERMOST.set(self.outer);
    }
}

impl Drop for InHandler {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Lowers the mark by the handlers that a jump to the stack pointer `target` leaves: those with
/// newer frames, and, if the target is elsewhere, all on the `alternative` signal stack.
#[inline]
pub(crate) fn jump(target: usize, alternative: impl FnOnce() -> Range<usize>) {
    if !INNERMOST.get().is_null() {
        leave_newer(target, &alternative());
    }
}

#[cold]
fn leave_newer(target: usize, alternative: &Range<usize>) {
    // SAFETY: a handler's frame is valid until `leave` unlinks it.
    while let Some(handler) = unsafe { INNERMOST.get().as_ref() } {
        let frame = ptr::from_ref(handler) as usize;
        let same_stack = alternative.contains(&frame) == alternative.contains(&target);
        if same_stack && target < frame || !same_stack && alternative.contains(&target) {
            return;
        }
        handler.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_handlers_nest() {
        assert!(!is_up());
        let section = Raised::new();
        InHandler::run(|| {
            drop(Raised::new());
            InHandler::run(|| assert!(is_up()));
            assert!(is_up());
        });
        assert!(is_up());
        drop(section);
        assert!(!is_up());
    }

    /// Pretends that the thread is in these handlers, the innermost first. Returns how many of them
    /// remain after a jump.
    fn after_jump(handlers: &mut [InHandler], target: usize, alternative: Range<usize>) -> u32 {
        let mut outer = ptr::null();
        for (before, handler) in (0..).zip(handlers.iter_mut().rev()) {
            handler.outer = outer;
            handler.before = before * HANDLER;
            outer = handler;
        }
        INNERMOST.set(outer);
        MARK.set(handlers.len() as u32 * HANDLER);
        jump(target, || alternative);
        INNERMOST.set(ptr::null());
        MARK.replace(0) / HANDLER
    }

    #[test]
    fn a_jump_leaves_the_handlers_with_newer_frames() {
        let handler = || {
            let (outer, before) = (ptr::null(), 0);
            core::mem::ManuallyDrop::new(InHandler { outer, before })
        };
        let mut handlers = [handler(), handler()];
        // SAFETY: the same layout.
        let handlers = unsafe { &mut *(&raw mut handlers).cast::<[InHandler; 2]>() };
        let inner = handlers.as_ptr() as usize;
        let outer = inner + size_of::<InHandler>();
        assert_eq!(after_jump(handlers, inner - 8, 0..0), 2);
        assert_eq!(after_jump(handlers, inner + 4, 0..0), 1);
        assert_eq!(after_jump(handlers, outer + 8, 0..0), 0);
        // From the alternative stack to the thread's own, wherever that is.
        assert_eq!(after_jump(handlers, inner - 8000, inner..outer + 8), 0);
        assert_eq!(after_jump(handlers, inner - 8000, inner..outer), 1);
        // Within the alternative stack, where the inner handler is not.
        assert_eq!(
            after_jump(handlers, outer + 80, outer + 64..outer + 4096),
            2
        );
    }
}
