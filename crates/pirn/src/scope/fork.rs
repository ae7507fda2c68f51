//! How a subtask runs: its thread's body, its membership in the scope, and the packet for its
//! result.

use super::state::{Cause, Member};
use super::subtask::Subtask;
use super::task_scope::Frame;
use super::{Completed, Failure, JoinerFor, State};
use crate::thread::{Builder, Panic};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use pirn_rt::sched;
use pirn_rt::vthread::body::{self, Body, caught, write_fields};
use pirn_rt::vthread::record::Place;
use std::io;

/// The place in which a subtask leaves its result.
pub(super) struct Packet<T, E> {
    /// A [`State`]. While it is `Unavailable`, the result belongs to the subtask, and afterwards to
    /// the handle.
    state: AtomicU8,
    result: UnsafeCell<Option<Result<T, Failure<E>>>>,
}

// SAFETY: the result belongs to the running subtask until the state changes, and then to its
// handle.
unsafe impl<T: Send, E: Send> Sync for Packet<T, E> {}
// SAFETY: owns the result.
unsafe impl<T: Send, E: Send> Send for Packet<T, E> {}

impl<T, E> Packet<T, E> {
    pub(super) fn new() -> Packet<T, E> {
        Packet {
            state: AtomicU8::new(State::Unavailable as u8),
            result: UnsafeCell::new(None),
        }
    }

    pub(super) fn state(&self) -> State {
        // Acquire: pairs with the Release in `complete`, which publishes the result.
        match self.state.load(Ordering::Acquire) {
            1 => State::Success,
            2 => State::Failed,
            _ => State::Unavailable,
        }
    }

    /// Returns a reference to the result.
    ///
    /// # Safety
    /// The caller has the handle, does not take the result meanwhile, and has seen that the state
    /// is not `Unavailable`.
    pub(super) unsafe fn peek(&self) -> Option<&Result<T, Failure<E>>> {
        // SAFETY: the caller's contract.
        unsafe { (*self.result.get()).as_ref() }
    }

    /// Takes the result.
    ///
    /// # Safety
    /// The caller has the handle and has seen that the state is not `Unavailable`, or is the
    /// subtask itself and has seen that there is no handle.
    pub(super) unsafe fn take(&self) -> Option<Result<T, Failure<E>>> {
        // SAFETY: the caller's contract.
        unsafe { (*self.result.get()).take() }
    }
}

/// The body of a subtask's thread: its membership, its result, and, until the subtask starts, its
/// closure.
struct Fork<T, J: JoinerFor<T>, F> {
    member: Member,
    packet: Packet<T, J::Error>,
    index: usize,
    /// On the owner's stack, for as long as the member has not left.
    frame: NonNull<Frame<J>>,
    closure: UnsafeCell<MaybeUninit<F>>,
}

impl<T, J, F> Fork<T, J, F>
where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error>,
{
    /// Calls the closure, stores its result, and tells the joiner.
    ///
    /// # Safety
    /// Called once, by the subtask, which is a member of the scope.
    unsafe fn run_closure(&self) {
        // SAFETY: the caller's contract: the owner keeps the frame while the member has not left.
        let (frame, closure) = unsafe {
            (
                self.frame.as_ref(),
                (*self.closure.get()).assume_init_read(),
            )
        };
        let state = &frame.state;
        if state.is_cancelled() {
            return; // The subtask must not start any more: the closure is dropped.
        }
        let call = || caught(closure);
        // SAFETY: the owner's calls of `bind` enclose the scope, and the scope waits for this
        // thread.
        let result = unsafe { state.within(|| state.bindings.within(call)) };
        let failed = !matches!(result, Ok(Ok(_)));
        let result = match result {
            Ok(result) => result.map_err(Failure::Failed),
            Err(payload) => Err(Failure::Panicked(Panic::new(payload))),
        };
        // SAFETY: the result is the subtask's until the state changes. It was empty.
        unsafe { self.packet.result.get().write(Some(result)) };
        // The deadline has caused the failure: waits and inner scopes end at that moment too, and
        // may end before the thread that cancels this scope runs.
        if failed && state.deadline.has_passed() {
            state.cancel(Cause::TimedOut, Some(&self.member));
        }
        self.complete(frame);
    }

    /// Tells the joiner of the result in the packet, and leaves the result to the handle. Drops the
    /// result instead if the scope is cancelled.
    fn complete(&self, frame: &Frame<J>) {
        // SAFETY: the result is the subtask's until the state changes.
        let result = unsafe { &mut *self.packet.result.get() };
        if frame.state.is_cancelled() {
            *result = None;
            return;
        }
        let state = match result {
            Some(Ok(_)) => State::Success,
            _ => State::Failed,
        };
        let flow = frame
            .joiner
            .on_complete(&mut Completed::new(self.index, result));
        // Release: publishes the result to `Packet::state`.
        self.packet.state.store(state as u8, Ordering::Release);
        if flow.is_break() {
            frame.state.cancel(Cause::Joiner, Some(&self.member));
        }
    }

    /// Calls `part`. A panic of it, by the joiner or a destructor, cancels the scope.
    ///
    /// # Safety
    /// The member has not left the scope.
    unsafe fn or_cancel(&self, part: impl FnOnce()) {
        if let Err(panic) = Panic::catch(part) {
            // SAFETY: the caller's contract: the owner keeps the frame.
            let state = unsafe { &self.frame.as_ref().state };
            state.cancel(Cause::Panicked(panic), Some(&self.member));
        }
    }
}

impl<T, J, F> Body for Fork<T, J, F>
where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error>,
{
    fn code() -> &'static str {
        core::any::type_name::<F>()
    }

    unsafe fn run(&self) {
        // SAFETY: called once, by the subtask; its member entered the scope before the start and
        // leaves it in `ended`.
        unsafe { self.or_cancel(|| self.run_closure()) };
    }

    unsafe fn abandon(&self) {
        let tell = || {
            let failure = Panic::new(Box::new(
                "the scheduler dropped this virtual thread before it ran",
            ));
            // SAFETY: called instead of `run`: the closure has not run and never will, and the
            // caller has the right to write the result. The frame is there: the member has entered,
            // or the owner is still in its `fork`.
            unsafe {
                (*self.closure.get()).assume_init_drop();
                let result = Some(Err(Failure::Panicked(failure)));
                self.packet.result.get().write(result);
                self.complete(self.frame.as_ref());
            }
        };
        // SAFETY: the member has entered the scope and not left it, or the owner is in its `fork`.
        unsafe { self.or_cancel(tell) };
    }

    unsafe fn drop_result(&self) {
        // SAFETY: the caller's contract: there is no handle.
        drop(unsafe { self.packet.take() });
    }

    unsafe fn ended(&self) {
        // SAFETY: called once; the member can have entered only its own scope, in `fork`.
        unsafe { self.member.leave() };
    }
}

/// Forks a subtask. It is not started if the scope is cancelled.
///
/// # Errors
/// The thread could not be made.
pub(super) fn fork<'scope, T, J, F>(
    builder: &Builder,
    place: Place,
    frame: &Frame<J>,
    index: usize,
    closure: F,
) -> io::Result<Subtask<'scope, T, J::Error>>
where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error> + Send + 'scope,
    T: Send + 'scope,
{
    let write = |place: *mut Fork<T, J, F>| {
        // Unsafe: `allocate` passes memory that is valid for writes.
        write_fields!(unsafe place => Fork {
            member: Member::new(&frame.state),
            packet: Packet::new(),
            index: index,
            frame: NonNull::from(frame),
            closure: UnsafeCell::new(MaybeUninit::new(closure)),
        });
    };
    let (thread, ready, fork) =
        // SAFETY: `write` writes the whole body.
        builder.make(place, |attributes| unsafe { body::allocate(attributes, write) })?;
    // SAFETY: the body is in the thread's allocation, of which we have a reference.
    let fork = unsafe { fork.as_ref() };
    thread.set_scope(frame.state.id);
    // SAFETY: the member is new, and its thread's own reference keeps it until it leaves in
    // `ended`.
    if !unsafe { frame.state.enter(&fork.member, thread.as_ptr()) } {
        // We have the right to run it and give it up: its closure is dropped, and its resources are
        // freed.
        sched::abandon(ready);
        return Ok(Subtask::unavailable(index));
    }
    sched::start(ready);
    let packet = NonNull::from(&fork.packet);
    // SAFETY: the packet is in the thread's allocation, which `thread` keeps.
    Ok(unsafe { Subtask::new(index, packet, thread) })
}
