//! The first and the last moments of a virtual thread.

use super::mount::{self, After, current};
use super::record::{Core, Phase};
use super::{Current, keys};
use crate::glibc::{destructors, dlerror};
use crate::mark::Raised;
use crate::runtime::Runtime;
use crate::stack::{SizeClass, Slot};
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
    drop_result_if_detached(&core);
    run_destructors();
    if current().is_none() {
        end_in_child();
    }
    core.set_phase(Phase::Terminated);
    publish(&core);
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

/// The end of a thread: announcing it, and dropping a result that is not wanted.
///
/// If the handle is gone, the thread itself drops its result, on its own stack. If the thread has
/// ended before, the code that drops the handle drops the result. The runtime never drops it on a
/// carrier's own stack: a destructor is the user's code and may block.
///
/// The owner of the handle may register one [`JoinWaiter`] in the thread's join cell. The waiter
/// determines what the ending thread does:
///
/// ```text
///   registered by                     the ending thread            the memory of the waiter
///   `detach`                          drops the result             is static
///   `JoinHandle::join`                claims the `Wait` behind it  stays the joiner's stack
///   a future (`thread/join_future`)   wakes the task's waker       is a box, now its own
/// ```
///
/// A waiter on the stack of its joiner cannot be taken back: the ending thread may already have the
/// pointer. So joiners that may give up (futures, joins with a timeout, joins that an interrupt
/// ends) register a boxed one.
///
/// The head of an object that waits for the end of a thread: the first field of each.
#[repr(C)]
pub struct JoinWaiter {
    /// Called by the ending thread, once, with the address that was registered.
    ended: unsafe fn(NonNull<JoinWaiter>, &Core),
}

impl JoinWaiter {
    /// Returns a waiter for which the ending thread calls `ended`.
    #[inline]
    pub const fn new(ended: unsafe fn(NonNull<JoinWaiter>, &Core)) -> JoinWaiter {
        JoinWaiter { ended }
    }
}

/// Registered once the handle is gone.
static DETACHED: JoinWaiter = JoinWaiter::new(|_, core| {
    // SAFETY: no handle exists that could take it.
    unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
});

impl Core {
    /// Returns whether the thread has ended, so that its result is there.
    #[inline]
    pub fn has_ended(&self) -> bool {
        let ended = self.join.is_done();
        if ended {
            self.continuation.order_after();
        }
        ended
    }

    /// Registers `waiter` to be called at the end of this thread. Returns `false` if the thread has
    /// ended already: then the waiter remains the caller's.
    ///
    /// # Safety
    /// The caller has the only handle of the thread, and nothing is registered. After `true`
    /// the waiter stays valid until it has been called or [`unregister`](Self::unregister)
    /// returned `true`.
    #[inline]
    #[must_use = "`false` means that nobody will call the waiter"]
    pub unsafe fn register(&self, waiter: NonNull<JoinWaiter>) -> bool {
        self.join.register(waiter.cast())
    }

    /// Takes the registered waiter back. Returns `false` if the ending thread has the waiter, and
    /// has called it or will call it.
    #[must_use = "`false` means that the waiter is still going to be called"]
    #[inline]
    pub fn unregister(&self, waiter: NonNull<JoinWaiter>) -> bool {
        self.join.unregister(waiter.cast())
    }
}

/// Records that the handle of `core` is gone.
#[inline]
pub fn detach(core: &Core) {
    core.detached.store(true, Ordering::Relaxed); // Relaxed: only an early hint; `register` decides.
    // SAFETY: the handle was the caller's, and the marker is static.
    if core.has_ended() || !unsafe { core.register(NonNull::from(&DETACHED)) } {
        // The thread has ended: the result, if `join` has not taken it, is ours. SAFETY: no other
        // handle exists.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Drops the result of the running thread, which is about to end, while its thread-locals still
/// exist, if it is known that the handle is gone.
#[inline]
pub(super) fn drop_result_if_detached(core: &Core) {
    if core.detached.load(Ordering::Relaxed) {
        // Relaxed: the storing thread gave up the handle before, and touches nothing after it.
        // SAFETY: no handle exists that could take it.
        unsafe { (core.vtable().drop_result)(NonNull::from(core)) };
    }
}

/// Publishes that a thread has ended or will never start, and calls the registered waiter.
#[inline]
pub(crate) fn publish(core: &Core) {
    core.continuation.order_before();
    if let Some(waiter) = core.join.finish() {
        let waiter = waiter.cast::<JoinWaiter>();
        // SAFETY: the contract of `register`; `JoinCell::finish` has taken it out of the cell.
        unsafe { (waiter.as_ref().ended)(waiter, core) };
    }
    // SAFETY: the thread has ended, or will never start.
    unsafe { (core.vtable().ended)(NonNull::from(core)) };
}

/// Gives a new thread the slot that was reserved for it, and lays out its TLS block. Its first
/// mount does the rest. The slot lasts until it is [given back](release_preallocated).
///
/// # Safety
/// The thread is new, and the caller's alone.
#[inline]
pub unsafe fn preallocate(core: &Core) -> Slot {
    let slot = core.runtime().stacks.take(core.class());
    // SAFETY: the slot is this thread's, and nobody else knows either.
    unsafe { prepare(core, slot) };
    core.continuation.let_slot_last();
    slot
}

/// Gives back the slot of a thread that has ended and been buried.
///
/// # Safety
/// From [`preallocate`], in this class and runtime; nobody uses the slot any more.
#[inline]
pub unsafe fn release_preallocated(slot: Slot, class: SizeClass, runtime: &Runtime) {
    // SAFETY: the caller's contract.
    unsafe { continuation::release(slot) };
    runtime.stacks.put(slot);
    runtime.stacks.unreserve(class, 1);
}
