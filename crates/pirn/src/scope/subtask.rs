//! Subtasks: the handle that a fork returns, and how results are read after the join.

use super::packet::Packet;
use super::{AllOk, Ended, Failure, Joined};
use crate::thread::{Panic, Thread};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use pirn_rt::vthread::{ThreadRef, life};
use std::error::Error;
use std::sync::Arc;

/// The state of a subtask.
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
///
/// # Examples
/// ```
/// let error = pirn::scope::SubtaskError::Failed("out of stock");
/// assert_eq!(error.to_string(), "the subtask failed: out of stock");
/// ```
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
    /// Points into the memory that `keeps` keeps; `None` if the subtask was not started.
    packet: Option<NonNull<Packet<T, E>>>,
    keeps: Keeps<T, E>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

/// Keeps the packet of a subtask in its place.
pub(super) enum Keeps<T, E> {
    /// Not started.
    Nothing,
    Virtual(ThreadRef),
    Platform(#[expect(dead_code, reason = "it keeps the packet")] Arc<Packet<T, E>>),
}

impl<'scope, T, E> Subtask<'scope, T, E> {
    /// Returns a subtask that was not started.
    pub(super) fn unavailable(index: usize) -> Subtask<'scope, T, E> {
        Subtask {
            index,
            packet: None,
            keeps: Keeps::Nothing,
            scope: PhantomData,
        }
    }

    /// Returns the subtask that leaves its result in `packet`, which `keeps` keeps in place.
    ///
    /// # Safety
    /// `packet` is valid for as long as `keeps` exists.
    pub(super) unsafe fn new(
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
        // SAFETY: `keeps` keeps the packet, by the contract of `new`.
        self.packet.map(|packet| unsafe { packet.as_ref() })
    }

    /// Returns the number of the subtask, in the order of forks, from 0.
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

    /// Returns the state of the subtask, at any time. A running subtask is
    /// [`Unavailable`](State::Unavailable).
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

    /// Returns the thread if the subtask was started on a virtual one, for example to
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
        match &self.keeps {
            Keeps::Virtual(thread) => Some(Thread::from_virtual(thread.clone())),
            _ => None,
        }
    }

    /// Returns the value of the subtask, once all subtasks have succeeded.
    ///
    /// # Panics
    /// If it has no value all the same, because a custom joiner passes on the proof of another.
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
        // Nothing is left for the destructor.
        self.packet = None;
        self.keeps = Keeps::Nothing;
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
        if let Keeps::Virtual(thread) = &self.keeps {
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
