//! Where a subtask leaves its result, and how the subtask runs.

use super::member::Member;
use super::state::Cause;
use super::task_scope::Frame;
use super::{Completed, Failure, JoinerFor, State};
use crate::thread::Panic;
use core::cell::UnsafeCell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU8, Ordering};
use pirn_rt::vthread::body::caught;

/// The place in which a subtask leaves its result.
pub(super) struct Packet<T, E> {
    /// A [`State`]. Once it is not `Unavailable`, the result belongs to the handle.
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
        // Acquire: pairs with the Release in `complete`, for the result.
        match self.state.load(Ordering::Acquire) {
            1 => State::Success,
            2 => State::Failed,
            _ => State::Unavailable,
        }
    }

    /// Runs a subtask and stores its result, which nobody reads before the state changes.
    ///
    /// # Safety
    /// The caller is the subtask.
    unsafe fn fill(&self, closure: impl FnOnce() -> Result<T, E>) {
        let result = match caught(closure) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Failure::Failed(error)),
            Err(payload) => Err(Failure::Panicked(Panic::new(payload))),
        };
        // SAFETY: the caller's contract. The result is empty until now.
        unsafe { self.result.get().write(Some(result)) };
    }

    /// Records that the subtask did not run.
    ///
    /// # Safety
    /// The caller has the right to run the subtask.
    pub(super) unsafe fn fail(&self, text: &'static str) {
        let failure = Failure::Panicked(Panic::new(Box::new(text)));
        // SAFETY: as in `fill`.
        unsafe { self.result.get().write(Some(Err(failure))) };
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

/// Runs a subtask on its thread and tells the joiner. Does not unwind.
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
            return; // Must not start any more: the closure is dropped.
        }
        // SAFETY: the packet belongs to the running subtask; the calls of `bind` enclose that of
        // the scope, which waits for this thread.
        unsafe {
            let run = || packet.fill(closure);
            state.within(|| state.bindings.within(run));
        }
        // SAFETY: as above.
        let failed = matches!(unsafe { packet.peek() }, Some(Err(_)));
        // The deadline has caused the failure: waits and inner scopes end at that moment too, and
        // may end before the scope's own keeper runs.
        if failed && state.deadline.has_passed() {
            state.cancel(Cause::TimedOut, Some(except));
        }
        if complete(frame, index, packet) == ControlFlow::Break(()) {
            state.cancel(Cause::Joiner, Some(except));
        }
    };
    if let Err(panic) = Panic::catch(body) {
        frame.state.cancel(Cause::Panicked(panic), Some(except));
    }
}

/// Tells the joiner of the result in a packet, and leaves the result for the handle. Drops the
/// result instead if the scope is cancelled already.
pub(super) fn complete<T, J: JoinerFor<T>>(
    frame: &Frame<J>,
    index: usize,
    packet: &Packet<T, J::Error>,
) -> ControlFlow<()> {
    // SAFETY: the result is ours until the state changes.
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
