//! Stacks that a thread has before it is first mounted, and after its end.
//!
//! The address of a C program's thread (`pthread_t`) is that of its TCB, in its slot. The program
//! knows it from the thread's creation until somebody has joined the thread, so the slot is taken
//! and laid out by the thread that makes it, and is not given back by the carrier that buries it:
//!
//! ```text
//!   ordinary    spawn ........ [mount  slot  end] bury
//!   here        create [slot .. mount ...... end .. bury ...] last owner: joiner or the thread
//! ```

use super::life;
use super::record::Core;
use crate::continuation;
use crate::runtime::Runtime;
use crate::stack::{SizeClass, Slot};

/// Gives a new thread the slot that was reserved for it, and lays out its TLS block. Its first
/// mount does the rest. The slot lasts until it is [given back](give_back).
///
/// # Safety
/// The thread is new, and the caller's alone.
#[inline]
pub unsafe fn give_slot(core: &Core) -> Slot {
    let slot = core.runtime().stacks.take(core.class());
    // SAFETY: the slot is this thread's, and nobody else knows either.
    unsafe { life::prepare(core, slot) };
    core.continuation.let_slot_last();
    slot
}

/// Gives back the slot of a thread that has ended and been buried.
///
/// # Safety
/// From [`give_slot`], in this class and runtime; nobody uses the slot any more.
#[inline]
pub unsafe fn give_back(slot: Slot, class: SizeClass, runtime: &Runtime) {
    // SAFETY: the caller's contract.
    unsafe { continuation::release(slot) };
    runtime.stacks.put(slot);
    runtime.stacks.unreserve(class, 1);
}
