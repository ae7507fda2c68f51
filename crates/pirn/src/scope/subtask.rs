//! Subtasks: the handle that a fork returns, and the proofs of the join by which results are read.

use super::fork::Packet;
use super::sealed::Sealed;
use super::{AllOk, Failure, JoinError};
use crate::thread::{Panic, Thread};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use pirn_rt::vthread::{ThreadRef, life};
use std::error::Error;

/// The state of a subtask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum State {
    /// It has not completed, or not before its scope was cancelled, or it was never started.
    Unavailable,
    /// It has returned `Ok`.
    Success,
    /// It has returned `Err`, or panicked.
    Failed,
}

/// Why a [`Subtask`] has no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubtaskError<E> {
    /// It returned this error.
    Failed(E),
    /// It panicked.
    Panicked(Panic),
    /// It did not complete before its scope was cancelled, or it was never started.
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

/// A subtask that was forked in a scope, to be read after the [join](super::TaskScope::join).
///
/// The methods that return its result require the proof that the scope has been joined: a
/// [`Joined`] or an [`Unjoined`](super::Unjoined) of the same scope.
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
/// The proof that another scope has been joined does not help:
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
/// Not every joiner guarantees that all subtasks have succeeded:
/// ```compile_fail,E0308
/// use pirn::scope;
/// scope::with(scope::await_all(), |s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     let all = s.join()?;
///     Ok(subtask.get(&all)) // it may have failed
/// });
/// ```
/// A subtask belongs to the owner of its scope, and stays in the scope:
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
    /// The thread, and the packet in its allocation, which the reference keeps; `None` if the
    /// subtask was not started, or its result has been taken.
    started: Option<(ThreadRef, NonNull<Packet<T, E>>)>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, T, E> Subtask<'scope, T, E> {
    /// Returns a subtask that was not started.
    pub(super) fn unavailable(index: usize) -> Subtask<'scope, T, E> {
        Subtask {
            index,
            started: None,
            scope: PhantomData,
        }
    }

    /// Returns the subtask on `thread`, which leaves its result in `packet`.
    ///
    /// # Safety
    /// `packet` is in the thread's allocation, and this is the only handle of the thread.
    pub(super) unsafe fn new(
        index: usize,
        packet: NonNull<Packet<T, E>>,
        thread: ThreadRef,
    ) -> Subtask<'scope, T, E> {
        Subtask {
            index,
            started: Some((thread, packet)),
            scope: PhantomData,
        }
    }

    fn packet(&self) -> Option<&Packet<T, E>> {
        // SAFETY: the reference beside it keeps the packet, by the contract of `new`.
        let packet = |(_, packet): &(_, NonNull<_>)| unsafe { packet.as_ref() };
        self.started.as_ref().map(packet)
    }

    /// Returns the number of the subtask, in the order of forks, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the state of the subtask, at any time. A running subtask is
    /// [`Unavailable`](State::Unavailable).
    pub fn state(&self) -> State {
        self.packet().map_or(State::Unavailable, Packet::state)
    }

    /// Returns the thread if the subtask was started, for example to
    /// [interrupt](Thread::interrupt) this subtask alone.
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
        let (thread, _) = self.started.as_ref()?;
        Some(Thread::from_virtual(thread.clone()))
    }

    /// Returns the value of the subtask, once all subtasks have succeeded.
    ///
    /// # Panics
    /// If it has no value all the same, because a custom joiner passes on the proof of another.
    #[track_caller]
    pub fn get(self, joined: &Joined<'scope, AllOk>) -> T {
        match self.result(joined) {
            Ok(value) => value,
            Err(_) => panic!("a subtask has no value, though its joiner says that all succeeded"),
        }
    }

    /// Returns the result of the subtask.
    ///
    /// # Errors
    /// The reason for which it has no value.
    pub fn result(mut self, ended: &impl Ended<'scope>) -> Result<T, SubtaskError<E>> {
        let _ = ended;
        if self.state() == State::Unavailable {
            return Err(SubtaskError::Unavailable); // The destructor detaches the thread.
        }
        let Some((_keeps_packet, packet)) = self.started.take() else {
            return Err(SubtaskError::Unavailable);
        };
        // SAFETY: this is the handle, and the state was seen.
        let result = unsafe { packet.as_ref().take() };
        match result {
            Some(result) => result.map_err(SubtaskError::from),
            None => Err(SubtaskError::Taken),
        }
    }

    /// Returns a reference to the result; `None` if it is unavailable, or the joiner has taken it.
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
        let result = unsafe { self.packet()?.peek() };
        Some(result?.as_ref())
    }
}

impl<T, E> Drop for Subtask<'_, T, E> {
    fn drop(&mut self) {
        if let Some((thread, _)) = &self.started {
            // The second of the two drops the result: we, or the thread at its end.
            life::detach(thread);
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

/// The proof that a scope has been joined.
pub trait Ended<'scope>: Sealed {}

impl<O> Sealed for Joined<'_, O> {}
impl<'scope, O> Ended<'scope> for Joined<'scope, O> {}
impl<E> Sealed for Unjoined<'_, E> {}
impl<'scope, E> Ended<'scope> for Unjoined<'scope, E> {}

/// A scope that has been joined, with the result of its joiner.
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

    /// Returns a reference to the joiner's result.
    pub fn output(&self) -> &O {
        &self.output
    }

    /// Returns the joiner's result.
    pub fn into_output(self) -> O {
        self.output
    }
}

/// A scope whose join failed. The [results](super::Subtask::result) of its subtasks can still be
/// read.
///
/// `?` converts it to the [`JoinError`].
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

    /// Returns a reference to the error of the join.
    pub fn error(&self) -> &JoinError<E> {
        &self.error
    }

    /// Returns the error of the join.
    pub fn into_error(self) -> JoinError<E> {
        self.error
    }
}

impl<E> From<Unjoined<'_, E>> for JoinError<E> {
    fn from(unjoined: Unjoined<'_, E>) -> JoinError<E> {
        unjoined.error
    }
}
