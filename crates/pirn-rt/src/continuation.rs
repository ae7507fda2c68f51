//! A continuation: a stack, its saved registers and its TLS block.
//!
//! It can be resumed on any platform thread, because its thread-locals come along. This layer does
//! not know scheduling: it makes continuations, and switches from one to another. A platform
//! thread's own stack takes part as a [`Continuation`] without a slot.

use crate::arch::{self, FloatControls, LINE};
use crate::glibc::{malloc, tls};
use crate::sanitizer::{self, Ignored, Side, valgrind};
use crate::stack::Slot;
use core::cell::Cell;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr;

/// One side of a switch.
pub struct Continuation {
    /// The saved stack pointer; valid only while suspended.
    sp: Cell<*mut u8>,
    /// The thread pointer of its TLS block; 0 until it has one.
    tp: Cell<usize>,
    /// The memory of both.
    slot: Cell<Memory>,
}

/// The memory of a continuation.
#[derive(Clone, Copy)]
enum Memory {
    /// A platform thread's own stack, or none yet.
    Elsewhere,
    /// A slot, which [`take_slot`](Continuation::take_slot) returns at the end.
    Own(Slot),
    /// A slot that other code gives back, later.
    Lasting(Slot),
}

/// Where the cache lines are that a switch to a suspended continuation reads first: the saved
/// registers, and malloc's words in the TLS block. One word, for prefetching: it may be used even
/// if the memory is gone. 0: nowhere.
///
/// ```text
///   bits 16..     the TLS block's thread pointer, in lines
///   bits  0..16   how far below it the saved stack pointer is, in lines; the most if farther
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FirstLines(usize);

impl FirstLines {
    const DISTANCE: usize = (1 << 16) - 1;

    /// Returns the lines as a word.
    #[inline(always)]
    pub(crate) fn to_note(self) -> usize {
        self.0
    }

    /// Returns the lines whose word [`to_note`](Self::to_note) returned.
    #[inline(always)]
    pub(crate) fn from_note(note: usize) -> FirstLines {
        FirstLines(note)
    }

    /// Returns the addresses: of the saved registers, and of the images next to the thread pointer.
    #[inline(always)]
    fn addresses(self) -> (usize, usize) {
        let tp = (self.0 >> 16) * LINE;
        let sp = tp.wrapping_sub((self.0 & Self::DISTANCE) * LINE);
        (sp, tp.wrapping_add_signed(tls::NEAREST))
    }

    /// Makes the machine prefetch both addresses, while the program goes on.
    #[inline(always)]
    pub(crate) fn fetch(self) {
        if self.0 == 0 {
            return;
        }
        let (sp, images) = self.addresses();
        arch::prefetch(sp, 2);
        arch::prefetch(images, 1);
    }
}

impl Continuation {
    /// Returns where the lines are that a switch to this continuation reads first; nowhere if it
    /// has no stack yet.
    #[inline(always)]
    pub(crate) fn first_lines(&self) -> FirstLines {
        let (tp, sp) = (self.tp.get() / LINE, self.sp.get() as usize / LINE);
        FirstLines(tp << 16 | tp.wrapping_sub(sp).min(FirstLines::DISTANCE))
    }

    /// Where readers outside of the process find the saved stack pointer and the thread pointer.
    pub(crate) const OFFSETS: [usize; 2] =
        [offset_of!(Continuation, sp), offset_of!(Continuation, tp)];

    /// Returns a continuation that has no stack yet.
    pub(crate) const fn new() -> Continuation {
        Continuation {
            sp: Cell::new(ptr::null_mut()),
            tp: Cell::new(0),
            slot: Cell::new(Memory::Elsewhere),
        }
    }

    /// Returns the continuation of the running platform thread.
    pub(crate) fn native() -> Continuation {
        let this = Continuation::new();
        this.tp.set(arch::thread_pointer());
        this
    }

    /// Returns its memory, if it has been given any.
    #[inline]
    pub(crate) fn slot(&self) -> Option<Slot> {
        match self.slot.get() {
            Memory::Elsewhere => None,
            Memory::Own(slot) | Memory::Lasting(slot) => Some(slot),
        }
    }

    /// Returns the thread pointer of its TLS block.
    pub(crate) fn tp(&self) -> usize {
        self.tp.get()
    }

    /// Returns the saved stack pointer.
    pub fn saved(&self) -> *mut u8 {
        self.sp.get()
    }

    /// Restores the [`saved`](Self::saved) stack pointer after a switch away and back has changed
    /// it.
    ///
    /// # Safety
    /// `saved` is the stack pointer of a frame of this continuation that is suspended and has not
    /// been resumed.
    pub(crate) unsafe fn restore(&self, saved: *mut u8) {
        self.sp.set(saved);
    }

    /// Gives it a stack and a TLS block, with `entry(argument)` as its first call, and `floats` as
    /// its floating point controls.
    ///
    /// # Safety
    /// Only the caller uses `slot`, until [`take_slot`](Self::take_slot).
    #[inline]
    pub(crate) unsafe fn prepare(
        &self,
        slot: Slot,
        entry: unsafe extern "C" fn(*mut u8) -> !,
        argument: *mut u8,
        floats: FloatControls,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            if sanitizer::switches_are_special() {
                return self.prepare_announced(slot, entry, argument, floats);
            }
            self.lay_out(slot, entry, argument, floats);
        }
    }

    /// Does what [`prepare`](Self::prepare) does, and tells the sanitizer or valgrind.
    ///
    /// # Safety
    /// As for `prepare`.
    #[cold]
    #[inline(never)]
    unsafe fn prepare_announced(
        &self,
        slot: Slot,
        entry: unsafe extern "C" fn(*mut u8) -> !,
        argument: *mut u8,
        floats: FloatControls,
    ) {
        let _ignored = Ignored::new();
        valgrind::begin(slot.frames());
        // SAFETY: the caller's contract; fresh, and the caller's alone.
        unsafe {
            self.lay_out(slot, entry, argument, floats);
            sanitizer::begin(&self.side());
        }
    }

    /// Fills in the stack and the TLS block.
    ///
    /// # Safety
    /// As for [`prepare`](Self::prepare).
    #[inline(always)]
    unsafe fn lay_out(
        &self,
        slot: Slot,
        entry: unsafe extern "C" fn(*mut u8) -> !,
        argument: *mut u8,
        floats: FloatControls,
    ) {
        let template = tls::template();
        let tp = slot.tp();
        let top = template.frames_end(tp) & !15;
        // SAFETY: everything from `bottom` to `end` of the slot is writable and ours; the
        // layout is drawn in `stack`.
        unsafe {
            template.init(tp, slot.tid());
            self.sp
                .set(arch::prepare(top as *mut u8, entry, argument, floats));
        }
        self.tp.set(tp);
        self.slot.set(Memory::Own(slot));
    }

    /// Takes the slot of a continuation that has ended, unless others [give it back](release).
    ///
    /// # Safety
    /// The continuation is suspended, and will never be resumed.
    #[inline]
    pub(crate) unsafe fn take_slot(&self) -> Option<Slot> {
        let Memory::Own(slot) = self.slot.get() else {
            return None;
        };
        self.slot.set(Memory::Elsewhere);
        // SAFETY: its TLS block was made by `prepare`, and the thread has ended.
        unsafe { release_block(slot, self.tp.get()) };
        Some(slot)
    }

    /// Leaves it to other code to [release] the slot, after the end.
    pub(crate) fn let_slot_last(&self) {
        if let Memory::Own(slot) = self.slot.get() {
            self.slot.set(Memory::Lasting(slot));
        }
    }

    /// Suspends the running continuation `self` and resumes `to`. Returns when another continuation
    /// switches back, possibly on another platform thread: never, if this is the `last` switch.
    ///
    /// # Safety
    /// `self` is the running continuation; `to` is suspended and no other code resumes it.
    #[inline(always)]
    pub(crate) unsafe fn switch(&self, to: &Continuation, last: bool) {
        // SAFETY: the caller's contract; both TLS blocks belong to this OS thread now.
        unsafe {
            if sanitizer::switches_are_special() {
                return self.switch_announced(to, last);
            }
            malloc::hand_over(self.tp.get(), to.tp.get());
            arch::switch(self.sp.as_ptr(), to.sp.get(), to.tp.get());
        }
    }

    /// Does what [`switch`](Self::switch) does, and tells the sanitizer, or switches in the way
    /// that the machine and valgrind demand.
    ///
    /// # Safety
    /// As for `switch`.
    #[cold]
    #[inline(never)]
    unsafe fn switch_announced(&self, to: &Continuation, last: bool) {
        if last {
            sanitizer::release(self.memory());
        }
        // SAFETY: as in `switch`, which follows at once.
        unsafe {
            let left = sanitizer::leave(&self.side(), &to.side(), last);
            malloc::hand_over_found(self.tp.get(), to.tp.get());
            let (save, sp, tp) = (self.sp.as_ptr(), to.sp.get(), to.tp.get());
            match arch::switches_slowly() {
                false => arch::switch(save, sp, tp),
                true => arch::switch_slowly(save, sp, tp, valgrind::way_to(sp)),
            }
            sanitizer::arrive(left);
            sanitizer::acquire(self.address());
        }
    }

    /// Returns what a sanitizer must know about this side of a switch.
    fn side(&self) -> Side {
        Side {
            tp: self.tp.get(),
            stack: self.slot().map(|slot| slot.bottom()..slot.end()),
        }
    }

    /// Tells the sanitizer that this fresh continuation, which is the running one, has begun.
    #[inline]
    pub(crate) fn begun(&self) {
        if sanitizer::switches_are_special() {
            sanitizer::arrive(ptr::null_mut());
            sanitizer::acquire(self.address());
            // What the last thread did on this stack happens before what this one does.
            sanitizer::acquire(self.memory());
        }
    }

    /// Tells the sanitizer that what the running thread has done so far happens before what this
    /// continuation does when it is resumed.
    #[inline]
    pub(crate) fn order_before(&self) {
        sanitizer::release(self.address());
    }

    /// Tells the sanitizer that what the continuation did before its end, and what came before its
    /// last resumption, happens before what the running thread does from now on.
    #[inline]
    pub(crate) fn order_after(&self) {
        sanitizer::acquire(self.address());
    }

    /// Returns the address that stands for the stack, whichever thread uses it.
    fn memory(&self) -> *const c_void {
        self.tp.get() as *const c_void
    }

    /// Returns the address that stands for the thread.
    fn address(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }
}

/// Frees what the TLS block in a slot holds.
///
/// # Safety
/// The slot was to [last](Continuation::let_slot_last); its continuation has ended.
pub(crate) unsafe fn release(slot: Slot) {
    // SAFETY: the caller's contract.
    unsafe { release_block(slot, slot.tp()) };
}

/// Frees what the TLS block at `tp`, in `slot`, holds.
///
/// # Safety
/// `prepare` made it; the continuation is suspended, and will never be resumed.
#[inline(always)]
unsafe fn release_block(slot: Slot, tp: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        if sanitizer::switches_are_special() {
            end_announced(slot, tp);
        }
        tls::Template::release(tp);
    }
}

/// Tells the sanitizer or valgrind that a continuation will never be resumed.
///
/// # Safety
/// The continuation will never be resumed.
#[cold]
#[inline(never)]
unsafe fn end_announced(slot: Slot, tp: usize) {
    valgrind::end(slot.frames());
    // SAFETY: `prepare` began with this thread pointer.
    unsafe { sanitizer::end(tp) };
}

#[cfg(test)]
mod tests {
    use super::{Continuation, FirstLines, LINE};
    use crate::glibc::tls::NEAREST;
    use core::ptr;

    fn addresses(tp: usize, sp: usize) -> (usize, usize) {
        let continuation = Continuation::new();
        continuation.tp.set(tp);
        continuation.sp.set(ptr::without_provenance_mut(sp));
        let note = continuation.first_lines().to_note();
        FirstLines::from_note(note).addresses()
    }

    #[test]
    fn a_note_has_both_places() {
        let tp = 0x7fff_1234_5680_usize;
        for below in [0x7c0, 0x7c8, 0x7f8, 0x800, (1 << 20) + 24] {
            let sp = tp - below;
            let images = tp.wrapping_add_signed(NEAREST);
            assert_eq!(addresses(tp, sp), (sp & !(LINE - 1), images), "{below:#x}");
        }
        // Farther than a note can say.
        let images = tp.wrapping_add_signed(NEAREST);
        assert_eq!(addresses(tp, tp - (64 << 20)).1, images);
    }

    #[test]
    fn a_thread_without_a_stack_has_no_lines() {
        assert_eq!(Continuation::new().first_lines().to_note(), 0);
    }
}
