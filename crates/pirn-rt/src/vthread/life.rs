//! The first and the last moments of a virtual thread, on its own stack.

use super::current::Current;
use super::mount::{self, After, current};
use super::record::{Core, Phase};
use super::{end, keys};
use crate::glibc::{destructors, dlerror};
use crate::mark::Raised;
use crate::stack::Slot;
use crate::sys;
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
    // Before this is a virtual thread to anybody: a handler must not park it.
    let mark = Raised::new();
    // SAFETY: `prepare` passed the core of this thread, which its own reference keeps alive.
    unsafe { mount::set_current(thread) };
    // SAFETY: as above.
    let core = unsafe { Current::new(NonNull::new_unchecked(thread)) };
    core.continuation.begun();
    // SAFETY: set by `take_over`.
    unsafe { &*core.carrier.get() }.finish_switch();
    drop(mark);
    // SAFETY: called once for this thread, which is us.
    unsafe { (core.vtable().run)(core.as_ptr()) };
    end(core)
}

/// Ends the running thread, still on its own stack.
fn end(core: Current) -> ! {
    end::drop_result_if_detached(&core);
    run_destructors();
    if current().is_none() {
        end_in_child();
    }
    core.set_phase(Phase::Terminated);
    end::publish(&core);
    // Once more, for thread-locals that the user's code (a waker, or the result's destructor) has
    // set meanwhile.
    run_destructors();
    dlerror::release();
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
    destructors::run();
    keys::run_destructors();
}
