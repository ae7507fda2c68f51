//! Subtasks: the handle that a fork returns, and the proofs of the join by which results are read;
//! and how a subtask runs: its thread's body, its membership in the scope, and the packet for its
//! result.

use super::sealed::Sealed;
use super::state::{Cause, Member};
use super::task_scope::Frame;
use super::{AllOk, Completed, Failure, JoinError, JoinerFor};
use crate::thread::{Builder, Panic, Thread};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use pirn_rt::sched;
use pirn_rt::sched::body::{self, Body, caught};
use pirn_rt::vthread::record::Place;
use pirn_rt::vthread::{ThreadRef, join};
use pirn_rt::write_fields;
use std::error::Error;
use std::io;

/// The state of a subtask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum State {
    /// The subtask has not completed, or not before its scope was cancelled, or it was never
    /// started.
    Unavailable,
    /// The subtask has returned `Ok`.
    Success,
    /// The subtask has returned `Err`, or panicked.
    Failed,
}

/// Why a [`Subtask`] has no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubtaskError<E> {
    /// The subtask returned this error.
    Failed(E),
    /// The subtask panicked.
    Panicked(Panic),
    /// The subtask did not complete before its scope was cancelled, or it was never started.
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
/// pirn::scope::open(|s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     subtask.get(); // not joined
///     s.join()?;
///     Ok(())
/// });
/// ```
/// The proof that another scope has been joined does not help:
/// ```compile_fail
/// pirn::scope::open(|outer| {
///     let subtask = outer.fork(|| Ok::<_, std::fmt::Error>(1));
///     pirn::scope::open(|inner| {
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
/// scope::open_with(scope::await_all(), |s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     let all = s.join()?;
///     Ok(subtask.get(&all)) // it may have failed
/// });
/// ```
/// A subtask belongs to the owner of its scope, and stays in the scope:
/// ```compile_fail,E0277
/// pirn::scope::open(|s| {
///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(1));
///     s.fork(move || { drop(subtask); Ok(()) });
///     s.join()?;
///     Ok(())
/// });
/// ```
/// ```compile_fail
/// let kept = pirn::scope::open(|s| {
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

    fn packet(&self) -> Option<&Packet<T, E>> {
        // SAFETY: the reference beside it keeps the packet, which `fork` has put there.
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
    pub fn peek<'a>(
        &'a self,
        ended: &'a impl Ended<'scope>,
    ) -> Option<Result<&'a T, &'a Failure<E>>> {
        let _ = ended;
        if self.state() == State::Unavailable {
            return None;
        }
        // SAFETY: the result is ours, since the state was seen; the handle is borrowed.
        let result = unsafe { &*self.packet()?.result.get() };
        Some(result.as_ref()?.as_ref())
    }
}

impl<T, E> Drop for Subtask<'_, T, E> {
    fn drop(&mut self) {
        if let Some((thread, _)) = &self.started {
            // The second of the two drops the result: we, or the thread at its end.
            join::detach(thread);
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
/// let result = pirn::scope::open(|s| {
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

/// The place in which a subtask leaves its result.
struct Packet<T, E> {
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
    fn new() -> Packet<T, E> {
        Packet {
            state: AtomicU8::new(State::Unavailable as u8),
            result: UnsafeCell::new(None),
        }
    }

    fn state(&self) -> State {
        // Acquire: pairs with the Release in `complete`, which publishes the result.
        match self.state.load(Ordering::Acquire) {
            1 => State::Success,
            2 => State::Failed,
            _ => State::Unavailable,
        }
    }

    /// Takes the result.
    ///
    /// # Safety
    /// The caller has the handle and has seen that the state is not `Unavailable`, or is the
    /// subtask itself and has seen that there is no handle.
    unsafe fn take(&self) -> Option<Result<T, Failure<E>>> {
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
        if frame.state.is_cancelled() || frame.state.is_left_behind() {
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
    sched::schedule(ready, sched::Cause::Start);
    Ok(Subtask {
        index,
        started: Some((thread, NonNull::from(&fork.packet))),
        scope: PhantomData,
    })
}
