//! The first and the last moments of a virtual thread, on its own stack.

use super::current::Current;
use super::mount::{self, After, current};
use super::record::{Core, Phase};
use super::{end, keys, summons};
use crate::glibc::destructors;
use crate::mark::Raised;
use crate::sys;
use core::ptr::NonNull;

/// The first function on every virtual thread's stack.
///
/// # Safety
/// Called by a carrier's switch to a thread that has just been given its stack; `argument` points
/// to the thread's [`Core`].
pub(super) unsafe extern "C" fn entry(argument: *mut u8) -> ! {
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
        // The child of a fork: the thread that forked was its only one, and no thread waits for it.
        // SAFETY: equivalent to returning from the last thread of a process.
        unsafe { libc::exit(0) };
    }
    if core.signals.any_pending() {
        summons::end(&core);
    }
    core.set_phase(Phase::Terminated);
    end::publish(&core);
    // Once more, for thread-locals that the user's code (a waker, or the result's destructor) has
    // set meanwhile.
    run_destructors();
    mount::suspend(core, After::Exit);
    sys::fatal(&["a virtual thread went on after its end"]);
}

/// Runs the destructors of the running thread's thread-locals and pthread keys, one of which may
/// unwind the stack: nothing here needs a destructor.
pub(crate) fn run_destructors() {
    destructors::run();
    keys::run_destructors();
}
