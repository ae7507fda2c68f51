//! The part of a virtual thread that depends on types: the closure that it runs, and its result.

use super::{counters, magazines, processor, recorded};
use crate::panic;
use crate::vthread::record::{Attributes, VTable};
use crate::vthread::{Core, Ready, ThreadRef};
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The code that a thread runs, kept in the thread's allocation.
pub trait Body {
    /// Runs the body. Does not unwind.
    ///
    /// # Safety
    /// Called once by the thread itself, unless [`abandon`](Self::abandon) is called instead.
    unsafe fn run(&self);

    /// Drops the closure of a thread that never runs.
    ///
    /// # Safety
    /// Called once, instead of [`run`](Self::run).
    unsafe fn abandon(&self);

    /// Drops the result if there is one. May unwind.
    ///
    /// # Safety
    /// The thread has ended, or is about to, and no other code will take the result.
    unsafe fn drop_result(&self);

    /// Returns the name of the code that the thread runs.
    fn code() -> &'static str;

    /// Announces the end of the thread. The last thing it does.
    ///
    /// # Safety
    /// Called once, at the end.
    unsafe fn ended(&self) {}
}

/// The whole allocation of a thread.
#[repr(C)]
struct Allocation<B> {
    core: Core,
    body: B,
}

impl<B: Body> Allocation<B> {
    const VTABLE: VTable = VTable {
        run: Self::run,
        abandon: Self::abandon,
        drop_result: Self::drop_result,
        ended: Self::ended,
        code: B::code,
        free: Self::free,
        body: core::mem::offset_of!(Self, body),
    };

    unsafe fn run(core: NonNull<Core>) {
        // SAFETY: the core is the start of the allocation; the caller's contract.
        unsafe {
            let this = core.cast::<Self>().as_ref();
            this.body.run();
        }
    }

    unsafe fn abandon(core: NonNull<Core>) {
        // SAFETY: as in `run`.
        unsafe {
            let this = core.cast::<Self>().as_ref();
            this.body.abandon();
        }
    }

    unsafe fn drop_result(core: NonNull<Core>) {
        let drop = || {
            // SAFETY: as in `run`.
            unsafe { core.cast::<Self>().as_ref().body.drop_result() }
        };
        // As in std: a panic while a result is dropped cannot be passed on to any caller.
        if panic::catch(drop).is_none() {
            crate::sys::fatal(&["a virtual thread's result panicked while it was dropped"]);
        }
    }

    unsafe fn ended(core: NonNull<Core>) {
        // SAFETY: as in `run`.
        unsafe { core.cast::<Self>().as_ref().body.ended() };
    }

    unsafe fn free(core: NonNull<Core>) {
        let this = core.cast::<Self>();
        // SAFETY: from `allocate`; this is the last reference.
        unsafe {
            this.drop_in_place();
            magazines::free(this.cast(), Layout::new::<Self>());
        }
    }
}

/// Makes a thread that has not started, with two references: the caller's and the thread's own.
/// Returns the caller's reference, the right to run the thread, and the place of its body, which
/// `write` must write there. Returns `None` without calling `write` if there is no memory.
///
/// # Safety
/// `write` writes the whole body.
#[inline]
pub unsafe fn allocate<B: Body>(
    attributes: Attributes,
    write: impl FnOnce(*mut B),
) -> Option<(ThreadRef, Ready, NonNull<B>)> {
    let memory = magazines::allocate(Layout::new::<Allocation<B>>())?.cast::<Allocation<B>>();
    let place = memory.as_ptr();
    // SAFETY: fresh memory of the right layout, and the first reference to the core in it.
    unsafe {
        let (id, vtable) = (processor::next_id(), &Allocation::<B>::VTABLE);
        Core::write(&raw mut (*place).core, id, attributes, vtable);
        let body = &raw mut (*place).body;
        write(body);
        (*place).core.continuation.order_before();
        Some((
            ThreadRef::from_new(memory.cast()),
            Ready::new(memory.cast()),
            NonNull::new_unchecked(body),
        ))
    }
}

/// The body of a thread that returns `T`. `F` comes last, so that a handle that knows only `T`
/// finds the result.
#[repr(C)]
pub struct ClosureBody<T, F = ()> {
    result: UnsafeCell<Option<std::thread::Result<T>>>,
    closure: UnsafeCell<MaybeUninit<F>>,
}

impl<T, F: FnOnce() -> T> ClosureBody<T, F> {
    /// Returns the body of a thread that will call `closure`.
    #[inline]
    pub fn new(closure: F) -> ClosureBody<T, F> {
        ClosureBody {
            result: UnsafeCell::new(None),
            closure: UnsafeCell::new(MaybeUninit::new(closure)),
        }
    }

    /// Returns whether the closure has panicked.
    ///
    /// # Safety
    /// Called by the thread itself, between [`run`](Body::run) and its end.
    #[inline]
    pub unsafe fn has_panicked(&self) -> bool {
        // SAFETY: only this thread accesses the result before the end.
        matches!(unsafe { &*self.result.get() }, Some(Err(_)))
    }

    /// Makes a thread that has not started: a reference to it, and the right to run it. Returns
    /// `None` if there is no memory.
    #[inline]
    pub fn allocate(attributes: Attributes, closure: F) -> Option<(ThreadRef, Ready)> {
        let body = ClosureBody::new(closure);
        // SAFETY: writes the whole body.
        let allocated = unsafe { allocate(attributes, |place: *mut Self| place.write(body)) };
        allocated.map(|(thread, ready, _)| (thread, ready))
    }
}

/// Calls code of the program, as `catch_unwind` does. A panic on a virtual thread is counted and
/// recorded.
///
/// [`panic::catch`] would not do, because it drops the payload, which is part of the result.
pub fn caught<T>(f: impl FnOnce() -> T) -> std::thread::Result<T> {
    let result = catch_unwind(AssertUnwindSafe(f));
    if result.is_err() {
        counters::note_panic();
        recorded::panicked();
    }
    result
}

impl<T, F: FnOnce() -> T> Body for ClosureBody<T, F> {
    fn code() -> &'static str {
        core::any::type_name::<F>()
    }

    unsafe fn run(&self) {
        // SAFETY: called once, by the thread itself; the result is published by its end.
        unsafe {
            let closure = (*self.closure.get()).assume_init_read();
            *self.result.get() = Some(caught(closure));
        }
    }

    unsafe fn abandon(&self) {
        // SAFETY: called instead of `run`: the closure is there and no other code will touch it.
        unsafe {
            (*self.closure.get()).assume_init_drop();
            *self.result.get() = Some(Err(Box::new(
                "the scheduler dropped this virtual thread before it ran",
            )));
        }
    }

    unsafe fn drop_result(&self) {
        // SAFETY: no other code will take it.
        let result = unsafe { (*self.result.get()).take() };
        drop(result);
    }
}

impl<T> ClosureBody<T> {
    /// Takes the result of a thread that has ended.
    ///
    /// # Safety
    /// The thread behind `thread` returns `T`, its end has been seen (by `join.is_done()` or a wake
    /// at the end), and the caller holds its only handle.
    pub unsafe fn take_result(thread: &ThreadRef) -> Option<std::thread::Result<T>> {
        // SAFETY: the body is there, and is a `ClosureBody<T, F>`; by `repr(C)` the result is at
        // the same place whatever the closure's type.
        unsafe {
            let body = thread
                .as_ptr()
                .byte_add(thread.vtable().body)
                .cast::<Self>();
            (*body.as_ref().result.get()).take()
        }
    }
}
