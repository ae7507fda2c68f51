//! The first and the last moments of a virtual thread.

use super::carrier::Carrier;
use super::mount::{self, After};
use super::runtime::Runtime;
use super::safepoint;
use crate::glibc::thread;
use crate::no_suspend::NoSuspend;
use crate::stack::{SizeClass, Slot};
use crate::vthread::{Core, Current, current, join, keys, set_current};
use crate::{continuation, sys};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Gives a thread its stack and its TLS block, and the floating point controls of its creator.
///
/// # Safety
/// Only the thread uses `slot`, until its end.
#[inline]
pub(super) unsafe fn prepare(core: &Core, slot: Slot) {
    let argument = ptr::from_ref(core) as *mut u8;
    // SAFETY: the caller's contract.
    unsafe {
        core.continuation
            .prepare(slot, entry, argument, core.floats)
    };
}

/// The first function on every virtual thread's stack.
///
/// # Safety
/// Called by a carrier's switch to a thread that has just been given its stack; `argument` points
/// to the thread's [`Core`].
unsafe extern "C" fn entry(argument: *mut u8) -> ! {
    let thread = argument.cast::<Core>();
    // Before other code takes this for a virtual thread: a handler must not park it.
    let section = NoSuspend::new();
    // SAFETY: `prepare` passed the core of this thread, which its own reference keeps alive.
    unsafe { set_current(thread) };
    // SAFETY: `prepare` passed the core of this thread, which its own reference keeps alive.
    let core = unsafe { Current::new(NonNull::new_unchecked(thread)) };
    core.continuation.begun();
    // SAFETY: set by `take_over`.
    unsafe { Carrier::of(&core) }.finish_switch();
    drop(section);
    // SAFETY: called once for this thread, which is us.
    unsafe { (core.vtable().run)(core.as_ptr()) };
    end(core)
}

/// Ends the running thread, still on its own stack.
fn end(core: Current) -> ! {
    safepoint::run_if_requested(); // A signal that came before the end is not lost with the thread.
    join::drop_result_if_detached(&core);
    run_destructors();
    if current().is_none() {
        end_in_child();
    }
    join::publish(&core);
    // Once more, for thread-locals that the user's code (a waker, or the result's destructor) has
    // set meanwhile.
    run_destructors();
    thread::release_dlerror();
    mount::suspend(core, After::Exit);
    sys::fatal(&["a virtual thread went on after its end"]);
}

/// Called by a thread that forked, at its end in the child; null: the process ends.
static END_IN_CHILD: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what a thread that forked does at its end in the child.
#[inline]
pub fn set_end_in_child(hook: fn()) {
    // Release: pairs with the Acquire in `end_in_child`.
    END_IN_CHILD.store(hook as *mut (), Ordering::Release);
}

/// Ends the running thread, which has forked, in the child: there it is the process's first thread,
/// and no thread waits for it.
#[cold]
fn end_in_child() -> ! {
    // Acquire: pairs with the Release in `set_end_in_child`.
    let hook = END_IN_CHILD.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: from `set_end_in_child`.
        unsafe { core::mem::transmute::<*mut (), fn()>(hook)() };
    }
    // SAFETY: equivalent to returning from the last thread of a process.
    unsafe { libc::exit(0) };
}

/// Runs the destructors of the running thread's thread-locals and pthread keys, one of which may
/// unwind the stack: nothing here needs a destructor.
#[inline]
pub fn run_destructors() {
    thread::run_destructors();
    keys::run_destructors();
}

/// Gives a new thread the slot that was reserved for it, and lays out its TLS block. The caller
/// [enters](crate::vthread::table::enter) it before it is scheduled. The slot lasts until it is
/// [given back](release_preallocated).
///
/// # Safety
/// The thread is new, and the caller's alone.
#[inline]
pub unsafe fn preallocate(core: &Core) -> Slot {
    // An opening of a library waits, in a section, until the TLS block is made: no handler may run
    // meanwhile and wait for that thread.
    let _section = NoSuspend::new();
    let slot = Runtime::of(core).stacks.take(core.class());
    // SAFETY: the slot is this thread's, and no other code has either.
    unsafe { prepare(core, slot) };
    core.continuation.let_slot_last();
    slot
}

/// Gives back the slot of a thread that has ended and been reaped, or that was never entered.
///
/// # Safety
/// From [`preallocate`], in this class and runtime; no thread uses the slot any more.
#[inline]
pub unsafe fn release_preallocated(slot: Slot, class: SizeClass, runtime: &Runtime) {
    // SAFETY: the caller's contract.
    unsafe { continuation::release(slot) };
    runtime.stacks.put(slot);
    runtime.stacks.unreserve(class, 1);
}
