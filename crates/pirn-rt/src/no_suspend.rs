//! Sections in which a thread must not be parked, moved to another carrier, or made to run foreign
//! code. A word in its thread-local storage counts them. A thread is in a section
//!
//! * in runtime code that knows its carrier, holds a [`Lock`](crate::lock::Lock), or has told
//!   others of a wait that has not ended ([`NoSuspend`]);
//! * in a signal handler, which may have interrupted such code, or libc's ([`InHandler`]).
//!
//! In a section, interposed functions act as on a platform thread: signal handlers call them, and
//! the allocator that the runtime calls. The thread is not preempted in a section. [`NoPreempt`]
//! forbids only preemption, and nothing else.
//!
//! ```text
//!   bits 31 ... 16       15 ... 0
//!   handlers entered     sections of the runtime entered
//! ```
//!
//! A handler may be left by a jump, which drops nothing. So a thread notes the frames of its
//! handlers, and `siglongjmp` asks which of them it leaves ([`jump`]). A handler may also be left
//! unseen (`setcontext`): a noted frame is compared with addresses, and not followed.
//!
//! A handler that waits for what another thread does, as a garbage collector's does, must not run
//! in a section: the other thread may need what the section holds, or wait for the section to wake
//! it. So a signal that comes to a platform thread in a section is [put off](put_off): our handler
//! blocks all signals, and the end of the section unblocks them. The mask that is then restored is
//! a word of its own. The handler writes it after the section's first access to its count, and the
//! end of the section reads it after its last.

use crate::sys;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{Ordering, compiler_fence};

const SECTION: u32 = 1;
const HANDLER: u32 = 1 << 16;
const HANDLERS: u32 = !SECTIONS;
const SECTIONS: u32 = HANDLER - 1;
/// Set in [`PUT_OFF`] if signals are put off: the bit of `SIGKILL`, which no mask has.
const IS_PUT_OFF: u64 = 1 << (libc::SIGKILL - 1);

thread_local! {
    /// Part of each thread's TLS block, and zero in a new one.
    static COUNTS: Cell<u32> = const { Cell::new(0) };
    /// The number of sections in which the thread is not to be preempted, but may park.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// Not 0 while signals are put off: the mask of the platform thread outside of the section.
    static PUT_OFF: Cell<u64> = const { Cell::new(0) };
    /// The handlers that the thread is in, the outermost first: as many as are counted.
    static FRAMES: [Cell<HandlerFrame>; FRAMES_NOTED] = const { [const { Cell::new(HandlerFrame::NONE) }; _] };
}

/// Returns whether the running thread is in a section or a signal handler.
#[inline(always)]
pub fn is_on() -> bool {
    COUNTS.get() != 0
}

/// Returns whether the running thread is in a signal handler.
#[inline(always)]
pub fn in_handler() -> bool {
    COUNTS.get() >= HANDLER
}

/// Returns whether the running thread is in a section of the runtime.
pub fn in_section() -> bool {
    COUNTS.get() & SECTIONS != 0
}

/// Notes that the running platform thread blocks signals until the end of its section, for a
/// handler that must run then. `blocked`: the signals that it blocked until now. The last such note
/// counts, because the first may come from the handler of a fault in the section.
pub fn put_off(blocked: u64) {
    PUT_OFF.set(blocked | IS_PUT_OFF);
}

/// Returns the signals that the running platform thread blocks, apart from the ones put off.
pub fn blocked_signals() -> u64 {
    match PUT_OFF.get() {
        0 => sys::blocked_signals(),
        outside => outside & !IS_PUT_OFF,
    }
}

/// Unblocks what was [put off](put_off), unless this was an inner section. The handlers run here.
#[cold]
#[inline(never)]
fn catch_up() {
    if !in_section() {
        // No handler runs between these two: all signals are blocked.
        let outside = PUT_OFF.replace(0);
        sys::block_only(outside & !IS_PUT_OFF);
    }
}

/// Returns whether the running thread must not be preempted.
#[inline(always)]
pub(crate) fn forbids_preemption() -> bool {
    is_on() || HELD.get() != 0
}

/// Returns whether the running thread could be preempted, were it not for this section.
pub(crate) fn is_on_only_by(_: &NoSuspend) -> bool {
    COUNTS.get() == SECTION && HELD.get() == 0
}

/// A section of the runtime, until it is dropped, by the same thread.
pub struct NoSuspend(PhantomData<*const ()>);

impl NoSuspend {
    /// Begins a section.
    #[inline(always)]
    pub fn new() -> NoSuspend {
        COUNTS.with(|counts| counts.set(counts.get().wrapping_add(SECTION)));
        // Handlers run on the same thread: the compiler alone could reorder this.
        compiler_fence(Ordering::SeqCst);
        NoSuspend(PhantomData)
    }

    /// Leaves the section to code that this thread runs later and that will [adopt](Self::adopt)
    /// it.
    pub(crate) fn leave(self) {
        core::mem::forget(self);
    }

    /// Takes over a section that was [left](Self::leave) to the calling code.
    pub(crate) fn adopt() -> NoSuspend {
        NoSuspend(PhantomData)
    }
}

impl Drop for NoSuspend {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst); // As in `new`.
        // Not `COUNTS.set`, which the compiler does not always inline: 19 instructions in place of
        // 1.
        COUNTS.with(|counts| counts.set(counts.get().wrapping_sub(SECTION)));
        compiler_fence(Ordering::SeqCst); // A signal that came before this has been put off.
        if PUT_OFF.with(Cell::get) != 0 {
            catch_up();
        }
    }
}

/// Keeps the running thread from being preempted until it is dropped, by the same thread. The
/// thread may park meanwhile.
pub(crate) struct NoPreempt(PhantomData<*const ()>);

impl NoPreempt {
    /// Begins such a section.
    #[inline]
    pub(crate) fn new() -> NoPreempt {
        HELD.set(HELD.get().wrapping_add(1));
        compiler_fence(Ordering::SeqCst); // As in `NoSuspend::new`.
        NoPreempt(PhantomData)
    }

    /// Ends a section whose guard has been left by a jump.
    pub(crate) fn end() {
        drop(NoPreempt(PhantomData));
    }
}

impl Drop for NoPreempt {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst); // As in `NoSuspend::new`.
        HELD.set(HELD.get().wrapping_sub(1));
    }
}

/// The number of nested handlers that a thread notes. A handler that is nested deeper counts as
/// left when one of these is left.
const FRAMES_NOTED: usize = 4;

/// Where a handler runs, and what it has interrupted.
#[derive(Clone, Copy)]
struct HandlerFrame {
    /// The address of its [`InHandler`].
    frame: usize,
    /// The size of the part of the handler's stack below the frame.
    room: u32,
    /// The number of sections at its beginning.
    sections: u16,
    signal: u16,
}

impl HandlerFrame {
    const NONE: HandlerFrame = HandlerFrame {
        frame: 0,
        room: 0,
        sections: 0,
        signal: 0,
    };

    /// The room of a stack whose lower end is unknown: all below the frame.
    const ALL: u32 = u32::MAX;

    /// Returns whether code with this stack pointer runs in the handler.
    fn contains(&self, pointer: usize) -> bool {
        let room = match self.room {
            HandlerFrame::ALL => self.frame,
            room => room as usize,
        };
        (1..=room).contains(&self.frame.wrapping_sub(pointer))
    }
}

/// Returns the number of handlers in the counts.
fn handlers(counts: u32) -> usize {
    (counts / HANDLER) as usize
}

/// A signal handler that the running thread is in, in the frame of the handler's caller.
///
/// Another signal may come at any instruction here, and its handler may leave this one by a jump.
/// So the frame is noted before the handler is counted: until then the entry belongs to the other
/// handler, which puts back what it found there.
pub struct InHandler {
    /// The counts before this handler was counted.
    before: u32,
    /// The frame that this handler's entry held before, for the drop to put back.
    hidden: HandlerFrame,
}

impl InHandler {
    /// Calls the handler of `signal`, and counts it meanwhile. `alternative` is the alternative
    /// signal stack that was in force when the signal came; empty if there was none.
    #[inline(always)]
    pub fn run(signal: u16, alternative: &Range<usize>, handler: impl FnOnce()) {
        let before = COUNTS.get();
        let depth = handlers(before);
        let mut this = InHandler {
            before,
            hidden: HandlerFrame::NONE,
        };
        FRAMES.with(|frames| {
            let Some(entry) = frames.get(depth) else {
                return;
            };
            this.hidden = entry.get();
            let frame = (&raw const this).addr();
            let outer = depth.checked_sub(1).map(|outer| frames[outer].get());
            entry.set(HandlerFrame {
                frame,
                room: room(frame, alternative, outer),
                sections: before as u16,
                signal,
            });
        });
        compiler_fence(Ordering::SeqCst); // As in `NoSuspend::new`.
        COUNTS.set(COUNTS.get().wrapping_add(HANDLER));
        compiler_fence(Ordering::SeqCst);
        handler(); // If it unwinds, `this` is dropped, as at its end.
    }
}

impl Drop for InHandler {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst); // As in `NoSuspend::new`.
        COUNTS.set(COUNTS.get() & !HANDLERS | self.before & HANDLERS);
        compiler_fence(Ordering::SeqCst);
        FRAMES.with(|frames| {
            if let Some(entry) = frames.get(handlers(self.before)) {
                entry.set(self.hidden);
            }
        });
    }
}

/// Returns the [room](HandlerFrame::room) of a handler. One on an alternative stack that is not in
/// force, because the kernel disarmed it for the `outer` handler (`SS_AUTODISARM`), shares that
/// one's.
fn room(frame: usize, alternative: &Range<usize>, outer: Option<HandlerFrame>) -> u32 {
    if alternative.contains(&frame) {
        return u32::try_from(frame - alternative.start).unwrap_or(HandlerFrame::ALL);
    }
    match outer {
        Some(outer) if outer.room != HandlerFrame::ALL && outer.contains(frame) => {
            outer.room - (outer.frame - frame) as u32
        }
        _ => HandlerFrame::ALL,
    }
}

/// Uncounts the handlers that a jump to the stack pointer `target` leaves. Returns
/// whether there are any.
///
/// # Errors
/// A signal whose handler has interrupted the runtime and would be left: the runtime would not end
/// what it has begun there.
pub fn jump(target: usize) -> Result<bool, u16> {
    let counts = COUNTS.get();
    let noted = handlers(counts).min(FRAMES_NOTED);
    let frames: [HandlerFrame; FRAMES_NOTED] =
        FRAMES.with(|frames| frames.each_ref().map(Cell::get));
    let mut stay = noted;
    while stay > 0 && !frames[stay - 1].contains(target) {
        stay -= 1;
    }
    if stay == noted {
        return Ok(false);
    }
    let outside = stay
        .checked_sub(1)
        .map_or(0, |inner| frames[inner].sections);
    let left = &frames[stay..noted];
    if let Some(handler) = left.iter().find(|handler| handler.sections > outside) {
        return Err(handler.signal);
    }
    COUNTS.set(counts & !HANDLERS | (stay as u32 * HANDLER));
    compiler_fence(Ordering::SeqCst); // As in `NoSuspend::new`.
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_handlers_nest() {
        assert!(!is_on());
        let section = NoSuspend::new();
        InHandler::run(1, &(0..0), || {
            drop(NoSuspend::new());
            InHandler::run(1, &(0..0), || assert!(is_on()));
            assert!(is_on());
        });
        assert!(is_on());
        drop(section);
        assert!(!is_on());
    }

    /// Pretends that the thread is in these handlers, the innermost last. Returns how many of them
    /// remain after a jump.
    fn after_jump(handlers: &[HandlerFrame], target: usize) -> Result<u32, u16> {
        FRAMES.with(|frames| {
            for (entry, handler) in frames.iter().zip(handlers) {
                entry.set(*handler);
            }
        });
        COUNTS.set(handlers.len() as u32 * HANDLER);
        let result = jump(target);
        let left = COUNTS.replace(0) / HANDLER;
        result.map(|_| left)
    }

    fn handler(frame: usize, room: u32) -> HandlerFrame {
        HandlerFrame {
            frame,
            room,
            ..HandlerFrame::NONE
        }
    }

    #[test]
    fn a_jump_leaves_the_handlers_with_newer_frames() {
        let both = [
            handler(0x5000, HandlerFrame::ALL),
            handler(0x4000, HandlerFrame::ALL),
        ];
        assert_eq!(after_jump(&both, 0x3ff8), Ok(2));
        assert_eq!(after_jump(&both, 0x4008), Ok(1));
        assert_eq!(after_jump(&both, 0x5008), Ok(0));
        // From the alternative stack to the thread's own, wherever that is.
        let alternative = [handler(0x5000, 0x1800), handler(0x4000, 0x800)];
        assert_eq!(after_jump(&alternative, 0x3800), Ok(2));
        assert_eq!(after_jump(&alternative, 0x3000), Ok(0));
        assert_eq!(after_jump(&alternative, 0x9000), Ok(0));
        let mixed = [handler(0x5000, HandlerFrame::ALL), handler(0x9000, 0x800)];
        assert_eq!(after_jump(&mixed, 0x8900), Ok(2));
        assert_eq!(after_jump(&mixed, 0x4ff0), Ok(1));
        assert_eq!(after_jump(&mixed, 0x5008), Ok(0));
    }

    #[test]
    fn handlers_that_are_nested_too_deep_are_left_with_others() {
        let four = [0x5000, 0x4000, 0x3000, 0x2000].map(|frame| handler(frame, HandlerFrame::ALL));
        let all = [four.as_slice(), &[handler(0x1000, HandlerFrame::ALL)]].concat();
        assert_eq!(after_jump(&all, 0x1008), Ok(5));
        assert_eq!(after_jump(&all, 0x2008), Ok(3));
    }

    #[test]
    fn a_handler_on_a_disarmed_stack_has_the_room_of_the_outer_one() {
        let outer = handler(0x5000, 0x1800);
        assert_eq!(room(0x5000, &(0x3800..0x6000), None), 0x1800);
        assert_eq!(room(0x4000, &(0..0), Some(outer)), 0x800);
        assert_eq!(room(0x3000, &(0..0), Some(outer)), HandlerFrame::ALL);
        assert_eq!(room(0x4000, &(0..0), None), HandlerFrame::ALL);
    }

    #[test]
    fn a_handler_that_has_interrupted_a_section_is_not_left() {
        let mut both = [
            handler(0x5000, HandlerFrame::ALL),
            handler(0x4000, HandlerFrame::ALL),
        ];
        both[1].sections = 1;
        both[1].signal = 10;
        assert_eq!(after_jump(&both, 0x3ff8), Ok(2));
        assert_eq!(after_jump(&both, 0x4008), Err(10));
        assert_eq!(after_jump(&both, 0x5008), Err(10));
        // The section is outside of the inner handler.
        both[0].sections = 1;
        assert_eq!(after_jump(&both, 0x4008), Ok(1));
    }
}
