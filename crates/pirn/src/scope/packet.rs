//! Where a subtask leaves its result; and how it comes to that.

use super::member::Member;
use super::state::Cause;
use super::task_scope::Frame;
use super::{Completed, Failure, JoinerFor, State};
use crate::thread::Panic;
use core::cell::UnsafeCell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU8, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Where a subtask leaves its result.
pub(super) struct Packet<T, E> {
    /// A [`State`]: from something else than `Unavailable` on, the result is the handle's.
    state: AtomicU8,
    result: UnsafeCell<Option<Result<T, Failure<E>>>>,
}

// SAFETY: the result is the running subtask's until the state says otherwise, and its handle's
// then.
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
        // Acquire: pairs with the Release in `complete`: the result.
        match self.state.load(Ordering::Acquire) {
            1 => State::Success,
            2 => State::Failed,
            _ => State::Unavailable,
        }
    }

    /// Runs a subtask, and keeps its result, which nobody sees before the state says so.
    ///
    /// # Safety
    /// The caller is the subtask.
    unsafe fn fill(&self, closure: impl FnOnce() -> Result<T, E>) {
        let result = match catch_unwind(AssertUnwindSafe(closure)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Failure::Failed(error)),
            Err(payload) => Err(Failure::Panicked(Panic::new(payload))),
        };
        // SAFETY: the caller's contract. There is nothing in it yet.
        unsafe { self.result.get().write(Some(result)) };
    }

    /// Says that it did not run.
    ///
    /// # Safety
    /// The caller has the right to run the subtask.
    pub(super) unsafe fn fail(&self, text: &'static str) {
        let failure = Failure::Panicked(Panic::new(Box::new(text)));
        // SAFETY: as in `fill`.
        unsafe { self.result.get().write(Some(Err(failure))) };
    }

    /// A look at the result.
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

/// Runs a subtask on its thread, and tells the joiner. Does not unwind.
pub(super) fn run<T, J, F>(
    frame: &Frame<J>,
    index: usize,
    packet: &Packet<T, J::Error>,
    except: &Member,
    closure: F,
) where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error>,
{
    let body = || {
        let state = &frame.state;
        if state.is_cancelled() {
            return; // Not to be started any more: the closure is dropped.
        }
        // SAFETY: the packet is the running subtask's; the calls of `bind` are around that of the
        // scope, which waits for this thread.
        unsafe {
            let run = || packet.fill(closure);
            state.within(|| state.bindings.within(run));
        }
        // SAFETY: as above.
        let failed = matches!(unsafe { packet.peek() }, Some(Err(_)));
        // The deadline has made it fail: waits and inner scopes end at that moment too, and may be
        // sooner than the scope's own keeper.
        if failed && state.deadline.has_passed() {
            state.cancel(Cause::TimedOut, Some(except));
        }
        if complete(frame, index, packet) == ControlFlow::Break(()) {
            state.cancel(Cause::Joiner, Some(except));
        }
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        let cause = Cause::Panicked(Panic::new(payload));
        frame.state.cancel(cause, Some(except));
    }
}

/// Tells the joiner of the result in a packet, and leaves it for the handle. A subtask that comes
/// too late leaves nothing.
pub(super) fn complete<T, J: JoinerFor<T>>(
    frame: &Frame<J>,
    index: usize,
    packet: &Packet<T, J::Error>,
) -> ControlFlow<()> {
    // SAFETY: ours until the state says otherwise.
    let result = unsafe { &mut *packet.result.get() };
    if frame.state.is_cancelled() {
        *result = None;
        return ControlFlow::Continue(());
    }
    let state = match result {
        Some(Ok(_)) => State::Success,
        _ => State::Failed,
    };
    let flow = frame.joiner.on_complete(&mut Completed::new(index, result));
    // Release: pairs with the Acquire in `state`.
    packet.state.store(state as u8, Ordering::Release);
    flow
}
