//! Subtasks: what a fork gives, and what is read of it after the join.

use super::state::Cause;
use super::{AllSucceeded, Failure, Flow, Joins, task_scope::Frame};
use super::{Completed, JoinError};
use crate::thread::{Panic, Thread, detached};
use crate::vthread::ThreadRef;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What has become of a subtask.
///
/// # Examples
/// ```
/// pirn::scope(|s| {
///     s.cancel();
///     let subtask = s.fork(|| Err::<(), _>("not run"));
///     assert_eq!(subtask.state(), pirn::scope::State::Unavailable);
///     Ok(s.join()?.into_output())
/// }).unwrap_err();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// It has not completed, or not before its scope was cancelled, or was never started.
    Unavailable,
    /// It has returned `Ok`.
    Success,
    /// It has returned `Err`, or panicked.
    Failed,
}

/// Why a [`Subtask`] has no value.
///
/// # Examples
/// ```
/// let error = pirn::scope::SubtaskError::Failed("out of stock");
/// assert_eq!(error.to_string(), "the subtask failed: out of stock");
/// ```
#[derive(Debug)]
pub enum SubtaskError<E> {
    /// It returned this error.
    Failed(E),
    /// It panicked.
    Panicked(Panic),
    /// It did not complete before its scope was cancelled, or was never started.
    Unavailable,
    /// The joiner has taken its result.
    Taken,
}

impl<E> From<Failure<E>> for SubtaskError<E> {
    fn from(failure: Failure<E>) -> SubtaskError<E> {
        match failure {
            Failure::Failed(error) => SubtaskError::Failed(error),
            Failure::Panicked(panic) => SubtaskError::Panicked(panic),
        }
    }
}

impl<E: fmt::Display> fmt::Display for SubtaskError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubtaskError::Failed(error) => write!(f, "the subtask failed: {error}"),
            SubtaskError::Panicked(panic) => write!(f, "the subtask {panic}"),
            SubtaskError::Unavailable => {
                f.write_str("the subtask had not completed when its scope was cancelled")
            }
            SubtaskError::Taken => f.write_str("the joiner has taken the subtask's result"),
        }
    }
}

impl<E: Error + 'static> Error for SubtaskError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SubtaskError::Failed(error) => Some(error),
            SubtaskError::Panicked(panic) => Some(panic),
            _ => None,
        }
    }
}

/// Where a subtask leaves its result.
pub(super) struct Packet<T, E> {
    /// A [`State`]: from something else than `Unavailable` on, the result is the handle's.
    state: AtomicU8,
    result: UnsafeCell<Option<Result<T, Failure<E>>>>,
}

// SAFETY: the result is the running subtask's until the state says otherwise, and its handle's then.
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

    fn state(&self) -> State {
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

    /// Takes the result.
    ///
    /// # Safety
    /// The caller has the handle and has seen that the state is not `Unavailable`, or is the subtask itself and has seen that
    /// there is no handle.
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
    except: &super::member::Member,
    closure: F,
) where
    J: Joins<T>,
    F: FnOnce() -> Result<T, J::Error>,
{
    let body = || {
        let state = &frame.state;
        if state.is_cancelled() {
            return; // Not to be started any more: the closure is dropped.
        }
        // SAFETY: the packet is the running subtask's; the calls of `bind` are around that of the scope, which
        // waits for this thread.
        unsafe {
            let run = || packet.fill(closure);
            state.within(|| state.bindings.within(run));
        }
        if complete(frame, index, packet) == Flow::Cancel {
            state.cancel(Cause::Joiner, Some(except));
        }
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        let cause = Cause::Panicked(Panic::new(payload));
        frame.state.cancel(cause, Some(except));
    }
}

/// Tells the joiner of the result in a packet, and leaves it for the handle. A subtask that comes too late leaves
/// nothing.
pub(super) fn complete<T, J: Joins<T>>(
    frame: &Frame<J>,
    index: usize,
    packet: &Packet<T, J::Error>,
) -> Flow {
    // SAFETY: ours until the state says otherwise.
    let result = unsafe { &mut *packet.result.get() };
    if frame.state.is_cancelled() {
        *result = None;
        return Flow::Continue;
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

/// A subtask that was forked in a scope, to be read after the [join](super::TaskScope::join).
///
/// What gives its result asks for the proof that the scope has been joined: a [`Joined`] or an [`Unjoined`] of the same scope.
///
/// Dropping it does not end the subtask; its scope waits for it.
///
/// Nothing is read before the join:
/// ```compile_fail,E0061
/// pirn::scope(|s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     subtask.get(); // not joined
///     s.join()?;
///     Ok(())
/// });
/// ```
/// nor with the proof that another scope has been joined:
/// ```compile_fail
/// pirn::scope(|outer| {
///     let subtask = outer.fork(|| Ok::<_, std::fmt::Error>(1));
///     pirn::scope(|inner| {
///         let all = inner.join()?;
///         subtask.get(&all); // of the outer scope
///         Ok::<_, pirn::scope::JoinError<std::fmt::Error>>(())
///     });
///     outer.join()?;
///     Ok(())
/// });
/// ```
/// Not every joiner says that all have succeeded:
/// ```compile_fail,E0308
/// use pirn::scope;
/// scope::with(scope::await_all(), |s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     let all = s.join()?;
///     Ok(subtask.get(&all)) // it may have failed
/// });
/// ```
/// It is its owner's, and stays in the scope:
/// ```compile_fail,E0277
/// pirn::scope(|s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     s.fork(move || { drop(subtask); Ok(()) });
///     s.join()?;
///     Ok(())
/// });
/// ```
/// ```compile_fail
/// let kept = pirn::scope(|s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     s.join()?;
///     Ok(subtask)
/// });
/// ```
pub struct Subtask<'scope, T, E> {
    index: usize,
    /// In what `keeps` keeps; none: it was not started.
    packet: Option<NonNull<Packet<T, E>>>,
    keeps: Keeps<T, E>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

/// What keeps the packet of a subtask in its place.
pub(super) enum Keeps<T, E> {
    /// Not started.
    Nothing,
    Virtual(ThreadRef),
    Platform(#[expect(dead_code, reason = "it keeps the packet")] Arc<Packet<T, E>>),
}

impl<'scope, T, E> Subtask<'scope, T, E> {
    /// One that was not started.
    pub(super) fn unavailable(index: usize) -> Subtask<'scope, T, E> {
        Subtask {
            index,
            packet: None,
            keeps: Keeps::Nothing,
            scope: PhantomData,
        }
    }

    /// The one that leaves its result in `packet`, which `keeps` keeps in place.
    pub(super) fn new(
        index: usize,
        packet: NonNull<Packet<T, E>>,
        keeps: Keeps<T, E>,
    ) -> Subtask<'scope, T, E> {
        Subtask {
            index,
            packet: Some(packet),
            keeps,
            scope: PhantomData,
        }
    }

    fn packet(&self) -> Option<&Packet<T, E>> {
        // SAFETY: `keeps` keeps it.
        self.packet.map(|packet| unsafe { packet.as_ref() })
    }

    /// Its number, in the order of forks, from 0.
    ///
    /// # Examples
    /// ```
    /// pirn::scope(|s| {
    ///     let (first, second) = (s.fork(|| "1".parse::<u8>()), s.fork(|| "2".parse::<u8>()));
    ///     assert_eq!((first.index(), second.index()), (0, 1));
    ///     Ok(s.join()?.into_output())
    /// }).unwrap();
    /// ```
    pub fn index(&self) -> usize {
        self.index
    }

    /// What has become of it. May be asked at any time; a subtask that runs is [`Unavailable`](State::Unavailable).
    ///
    /// # Examples
    /// ```
    /// let state = pirn::scope(|s| {
    ///     let subtask = s.fork(|| "7".parse::<u8>());
    ///     s.join()?;
    ///     Ok(subtask.state())
    /// });
    /// assert_eq!(state.unwrap(), pirn::scope::State::Success);
    /// ```
    pub fn state(&self) -> State {
        self.packet().map_or(State::Unavailable, Packet::state)
    }

    /// Its thread, if it was started and is a virtual one: to [interrupt](Thread::interrupt) this subtask alone, say.
    ///
    /// # Examples
    /// ```
    /// let result = pirn::scope::with(pirn::scope::await_all(), |s| {
    ///     let parked = s.fork(pirn::thread::park_interruptible);
    ///     parked.thread().unwrap().interrupt();
    ///     Ok(parked.result(&s.join()?))
    /// });
    /// assert!(result.unwrap().is_err());
    /// ```
    pub fn thread(&self) -> Option<Thread> {
        match &self.keeps {
            Keeps::Virtual(thread) => Some(Thread::from_virtual(thread.clone())),
            _ => None,
        }
    }

    /// Its value, when all subtasks have succeeded.
    ///
    /// # Panics
    /// If it has no value all the same: when a joiner of one's own passes on the proof of another.
    ///
    /// # Examples
    /// ```
    /// let number = pirn::scope(|s| {
    ///     let number = s.fork(|| "7".parse::<u8>());
    ///     Ok(number.get(&s.join()?))
    /// });
    /// assert_eq!(number.unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn get(self, joined: &Joined<'scope, AllSucceeded>) -> T {
        match self.result(joined) {
            Ok(value) => value,
            Err(_) => panic!("a subtask has no value, though its joiner says that all succeeded"),
        }
    }

    /// Its result.
    ///
    /// # Errors
    /// Why it has none.
    ///
    /// # Examples
    /// ```
    /// let number = pirn::scope::with(pirn::scope::await_all(), |s| {
    ///     let number = s.fork(|| "seven".parse::<u8>());
    ///     Ok(number.result(&s.join()?))
    /// });
    /// assert!(number.unwrap().is_err());
    /// ```
    pub fn result(mut self, ended: &impl Ended<'scope>) -> Result<T, SubtaskError<E>> {
        let _ = ended;
        let Some(packet) = self.packet() else {
            return Err(SubtaskError::Unavailable);
        };
        if packet.state() == State::Unavailable {
            return Err(SubtaskError::Unavailable);
        }
        // SAFETY: this is the handle, and the state was seen.
        let result = unsafe { packet.take() };
        // Nothing is left that somebody would have to drop.
        self.packet = None;
        self.keeps = Keeps::Nothing;
        match result {
            Some(result) => result.map_err(SubtaskError::from),
            None => Err(SubtaskError::Taken),
        }
    }

    /// A look at its result; none if it is unavailable, or has been taken by the joiner.
    ///
    /// # Examples
    /// ```
    /// let seven = pirn::scope(|s| {
    ///     let number = s.fork(|| "7".parse::<u8>());
    ///     Ok(matches!(number.peek(&s.join()?), Some(Ok(7))))
    /// });
    /// assert!(seven.unwrap());
    /// ```
    pub fn peek<'a>(
        &'a self,
        ended: &'a impl Ended<'scope>,
    ) -> Option<Result<&'a T, &'a Failure<E>>> {
        let _ = ended;
        if self.state() == State::Unavailable {
            return None;
        }
        // SAFETY: this is the handle, borrowed, and the state was seen.
        let result = unsafe { &*self.packet()?.result.get() };
        Some(result.as_ref()?.as_ref())
    }
}

impl<T, E> Drop for Subtask<'_, T, E> {
    fn drop(&mut self) {
        if let Keeps::Virtual(thread) = &self.keeps {
            // Whoever comes second drops the result: we, or the thread at its end.
            detached::detach(thread);
        }
    }
}

impl<T, E> fmt::Debug for Subtask<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subtask")
            .field("index", &self.index)
            .field("state", &self.state())
            .field("thread", &self.thread())
            .finish()
    }
}

mod sealed {
    pub trait Sealed {}
}

/// The proof that a scope has been joined.
///
/// # Examples
/// ```
/// use pirn::scope::{Ended, Subtask};
/// fn or_zero<'scope, E>(subtask: Subtask<'scope, u8, E>, joined_or_not: &impl Ended<'scope>) -> u8 {
///     subtask.result(joined_or_not).unwrap_or(0)
/// }
/// ```
pub trait Ended<'scope>: sealed::Sealed {}

impl<O> sealed::Sealed for Joined<'_, O> {}
impl<'scope, O> Ended<'scope> for Joined<'scope, O> {}
impl<E> sealed::Sealed for Unjoined<'_, E> {}
impl<'scope, E> Ended<'scope> for Unjoined<'scope, E> {}

/// A scope that has been joined, with what its joiner gave.
///
/// # Examples
/// ```
/// use pirn::scope::{AllSucceeded, Joined, Subtask};
/// fn sum<'scope, E>(subtasks: Vec<Subtask<'scope, u8, E>>, all: &Joined<'scope, AllSucceeded>) -> u8 {
///     subtasks.into_iter().map(|subtask| subtask.get(all)).sum()
/// }
/// ```
#[derive(Debug)]
pub struct Joined<'scope, O> {
    output: O,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, O> Joined<'scope, O> {
    pub(super) fn new(output: O) -> Joined<'scope, O> {
        Joined {
            output,
            scope: PhantomData,
        }
    }

    /// What the joiner gave.
    ///
    /// # Examples
    /// ```
    /// let count = pirn::scope::with(pirn::scope::all_successful(), |s| {
    ///     s.fork(|| "7".parse::<u8>());
    ///     Ok(s.join()?.output().len())
    /// });
    /// assert_eq!(count.unwrap(), 1);
    /// ```
    pub fn output(&self) -> &O {
        &self.output
    }

    /// What the joiner gave.
    ///
    /// # Examples
    /// ```
    /// let numbers = pirn::scope::with(pirn::scope::all_successful(), |s| {
    ///     s.fork(|| "7".parse::<u8>());
    ///     Ok(s.join()?.into_output())
    /// });
    /// assert_eq!(numbers.unwrap(), [7]);
    /// ```
    pub fn into_output(self) -> O {
        self.output
    }
}

/// A scope whose join failed. Its subtasks can still be [asked](Subtask::result) what they have come to.
///
/// Becomes the [`JoinError`] with `?`.
///
/// # Examples
/// ```
/// let result = pirn::scope(|s| {
///     let order = s.fork(|| Err::<(), _>("out of stock"));
///     Ok(order.result(&s.join().unwrap_err()))
/// });
/// let taken = pirn::scope::SubtaskError::<&str>::Taken; // by the joiner: it is the error of the join
/// assert_eq!(result.unwrap().unwrap_err().to_string(), taken.to_string());
/// ```
#[derive(Debug)]
pub struct Unjoined<'scope, E> {
    error: JoinError<E>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, E> Unjoined<'scope, E> {
    pub(super) fn new(error: JoinError<E>) -> Unjoined<'scope, E> {
        Unjoined {
            error,
            scope: PhantomData,
        }
    }

    /// Why it failed.
    ///
    /// # Examples
    /// ```
    /// let text = pirn::scope(|s| {
    ///     s.fork(|| Err::<(), _>("out of stock"));
    ///     Ok(s.join().unwrap_err().error().to_string())
    /// });
    /// assert_eq!(text.unwrap(), "a subtask failed: out of stock");
    /// ```
    pub fn error(&self) -> &JoinError<E> {
        &self.error
    }

    /// Why it failed.
    ///
    /// # Examples
    /// ```
    /// let error = pirn::scope(|s| {
    ///     s.fork(|| Err::<(), _>("out of stock"));
    ///     Ok(s.join().unwrap_err().into_error())
    /// });
    /// assert!(matches!(error.unwrap(), pirn::scope::JoinError::Failed("out of stock")));
    /// ```
    pub fn into_error(self) -> JoinError<E> {
        self.error
    }
}

impl<E> From<Unjoined<'_, E>> for JoinError<E> {
    fn from(unjoined: Unjoined<'_, E>) -> JoinError<E> {
        unjoined.error
    }
}
