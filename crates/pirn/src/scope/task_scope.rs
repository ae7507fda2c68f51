//! The scope as its owner sees it.

use super::deadline::ScopeDeadline;
use super::fork;
use super::state::{Cause, ScopeState, Until};
use super::{JoinError, Joined, Joiner, JoinerFor, Subtask, Unjoined};
use crate::thread::Builder;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::NonNull;
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::record::Place;
use pirn_rt::vthread::wait_word::Hearing;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

/// What the owner of a scope and its subtasks share, on the owner's stack.
pub(super) struct Frame<J> {
    pub(super) state: ScopeState,
    pub(super) joiner: J,
    pub(super) threads: Builder,
    /// The number of subtasks that may run at once.
    pub(super) limit: usize,
    pub(super) deadline: ScopeDeadline,
}

/// What only the owner uses.
#[derive(Default)]
struct Owner {
    forks: Cell<usize>,
    joined: Cell<bool>,
    /// Whether the owner has seen, after the last fork, that no subtask runs any more.
    alone: Cell<bool>,
}

/// An open scope: its owner forks subtasks in it and joins them.
///
/// It is made by [`pirn::scope`](crate::scope()), [`scope::with`](super::with) and
/// [`scope::Builder`](super::Builder). `'scope` is the lifetime in which subtasks may run, `'env`
/// that of the values that they may borrow.
///
/// Only the owner can fork and join. A subtask cannot:
/// ```compile_fail,E0277
/// pirn::scope(|s| {
///     s.fork(|| { s.fork(|| Ok(())); Ok::<_, std::fmt::Error>(()) });
///     s.join()?;
///     Ok(())
/// });
/// ```
/// Another thread cannot either:
/// ```compile_fail,E0277
/// pirn::scope::<std::fmt::Error, _, _>(|s| {
///     std::thread::scope(|threads| { threads.spawn(move || s.join().is_ok()); });
///     Ok(())
/// });
/// ```
/// Nothing can be forked after the join:
/// ```compile_fail,E0382
/// pirn::scope(|s| {
///     s.join()?;
///     s.fork(|| Ok::<_, std::fmt::Error>(()));
///     Ok(())
/// });
/// ```
/// There is no second join, whatever the result of the first:
/// ```compile_fail,E0382
/// pirn::scope::<std::fmt::Error, _, _>(|s| {
///     let _ = s.join();
///     s.join()?;
///     Ok(())
/// });
/// ```
/// The scope ends where its block ends, neither later nor before the scopes that were opened in it:
/// ```compile_fail,E0521
/// let mut kept = None;
/// pirn::scope::<std::fmt::Error, _, _>(|s| {
///     kept = Some(s); // to be joined later
///     Ok(())
/// });
/// ```
/// Subtasks may outlive the local variables of that block, and so cannot borrow them:
/// ```compile_fail,E0373
/// pirn::scope(|s| {
///     let local = String::from("local");
///     s.fork(|| Ok::<_, std::fmt::Error>(local.len()));
///     s.join()?;
///     Ok(())
/// });
/// ```
pub struct TaskScope<'scope, 'env: 'scope, J: Joiner> {
    /// Alive for `'scope`. Not a reference, because that would require that the subtasks' error
    /// type outlives `'scope`, and then the compiler would require the same of borrows in the
    /// scope's closure.
    frame: NonNull<Frame<J>>,
    owner: &'scope Owner,
    // Invariant in both lifetimes, like the scope of std; and bound to its thread.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
    of_this_thread: PhantomData<*const ()>,
}

/// Runs `f` with a scope, and leaves the scope when no thread is in it any more.
#[track_caller]
pub(super) fn run<'env, J, R, F>(frame: &Frame<J>, f: F) -> Result<R, JoinError<J::Error>>
where
    J: Joiner,
    F: for<'scope> FnOnce(TaskScope<'scope, 'env, J>) -> Result<R, JoinError<J::Error>>,
{
    let owner = Owner::default();
    let state = &frame.state;
    let place = Location::caller();
    let body = || {
        // SAFETY: the frame outlives this call, which calls `end` below. (It does not if the owner
        // was alone at the join; then there was no deadline.)
        unsafe { frame.deadline.begin(state, place) }?;
        f(TaskScope {
            frame: NonNull::from(frame),
            owner: &owner,
            scope: PhantomData,
            env: PhantomData,
            of_this_thread: PhantomData,
        })
    };
    let result = state.known(|| {
        let result = catch_unwind(AssertUnwindSafe(body));
        if !owner.alone.get() {
            frame.deadline.end(state);
            state.wait(Until::Unused, Deadline::NEVER, None); // Not interruptible.
        }
        result
    });
    match result {
        Ok(Ok(_)) if owner.forks.get() > 0 && !owner.joined.get() => {
            panic!("the scope's owner did not join the subtasks that it has forked")
        }
        Ok(result) => result,
        Err(payload) => resume_unwind(payload),
    }
}

impl<'scope, 'env, J: Joiner> TaskScope<'scope, 'env, J> {
    /// Forks a subtask: starts a thread that runs `f`, which may borrow from outside the scope.
    ///
    /// While the number of running subtasks is at the scope's [limit](super::Builder::limit), this
    /// waits until one has ended. If the scope is cancelled, or the owner is interrupted while it
    /// waits here, the subtask is not started and stays [unavailable](super::State::Unavailable).
    /// The same holds if its thread cannot be started (for lack of memory for its stack, for
    /// example): that cancels the scope, and the join fails with [`JoinError::Fork`].
    ///
    /// # Panics
    /// If [scoped values](crate::ScopedValue) that have been bound since the scope was opened are
    /// still in force: the subtask could outlive them. Bind before opening the scope, or in the
    /// subtask.
    ///
    /// # Examples
    /// ```
    /// let words = ["warp", "weft"];
    /// let total = pirn::scope(|s| {
    ///     let lengths: Vec<_> = words
    ///         .iter()
    ///         .map(|word| s.fork(|| Ok::<_, std::fmt::Error>(word.len())))
    ///         .collect();
    ///     let all = s.join()?;
    ///     Ok(lengths.into_iter().map(|length| length.get(&all)).sum::<usize>())
    /// })?;
    /// assert_eq!(total, 8);
    /// # Ok::<(), pirn::scope::JoinError<std::fmt::Error>>(())
    /// ```
    #[track_caller]
    pub fn fork<T, F>(&self, f: F) -> Subtask<'scope, T, J::Error>
    where
        J: JoinerFor<T>,
        F: FnOnce() -> Result<T, J::Error> + Send + 'scope,
        T: Send + 'scope,
        J::Error: 'scope,
    {
        self.fork_at(Location::caller(), f)
    }

    /// Forks a subtask on behalf of `place`.
    #[track_caller]
    pub(super) fn fork_at<T, F>(&self, place: Place, f: F) -> Subtask<'scope, T, J::Error>
    where
        J: JoinerFor<T>,
        F: FnOnce() -> Result<T, J::Error> + Send + 'scope,
        T: Send + 'scope,
        J::Error: 'scope,
    {
        let frame = self.frame();
        let state = &frame.state;
        assert!(
            crate::scoped_value::Bindings::current() == state.bindings,
            "a subtask was forked while scoped values are bound that were not when its scope was opened: it could \
             outlive them; bind them before opening the scope, or in the subtask"
        );
        let index = self.owner.forks.replace(self.owner.forks.get() + 1);
        // If there is room, the wait succeeds even for an interrupted owner: the join reports that.
        if frame.limit != usize::MAX
            && state.wait(
                Until::Room(frame.limit - 1),
                Deadline::NEVER,
                Some(Hearing::Always),
            ) == Outcome::Interrupted
        {
            state.cancel(Cause::Interrupted, None);
        }
        // Told about every fork, including those that never run.
        if frame.joiner.on_fork(index).is_break() {
            state.cancel(Cause::Joiner, None);
        }
        if state.is_cancelled() {
            return Subtask::unavailable(index);
        }
        let forked = fork::fork(&frame.threads, place, frame, index, f);
        forked.unwrap_or_else(|error| {
            state.cancel(Cause::Fork(error), None);
            Subtask::unavailable(index)
        })
    }

    /// Waits until all subtasks have completed or the scope is cancelled, and returns the joiner's
    /// result.
    ///
    /// The joiner can cancel the scope, as can its [timeout](super::Builder::timeout) and an
    /// interrupt of the owner while it waits here; then running subtasks are interrupted. They may
    /// still be running when this returns, but not when the scope is left.
    ///
    /// # Errors
    /// The joiner's error, or the reason for which the scope was cancelled. Subtasks can be read
    /// all the same, with the [`Unjoined`] as the proof.
    ///
    /// # Examples
    /// ```
    /// use pirn::scope::JoinError;
    /// let sum = pirn::scope(|s| {
    ///     let (digit, word) = (s.fork(|| "7".parse::<u8>()), s.fork(|| "seven".parse::<u8>()));
    ///     let all = s.join()?; // leaves the scope here
    ///     Ok(digit.get(&all) + word.get(&all))
    /// });
    /// assert!(matches!(sum, Err(JoinError::Failed(_))));
    /// ```
    pub fn join(self) -> Result<Joined<'scope, J::Output>, Unjoined<'scope, J::Error>> {
        self.join_by(Deadline::NEVER)
    }

    /// Joins until a deadline.
    fn join_by(
        self,
        deadline: Deadline,
    ) -> Result<Joined<'scope, J::Output>, Unjoined<'scope, J::Error>> {
        self.owner.joined.set(true);
        let state = &self.frame().state;
        match state.wait(Until::Room(0), deadline, Some(Hearing::Always)) {
            // The time may be that of the call around the scope, which interrupts the owner.
            Outcome::Interrupted if state.deadline.has_passed() => {
                state.cancel(Cause::TimedOut, None)
            }
            Outcome::Interrupted => state.cancel(Cause::Interrupted, None),
            Outcome::TimedOut => state.cancel(Cause::TimedOut, None),
            Outcome::Closed => state.cancel(Cause::Owner, None),
            _ => {
                let alone = !state.is_cancelled() && state.deadline.is_never();
                self.owner.alone.set(alone);
            }
        }
        let joiner = &self.frame().joiner;
        let result = match state.take_cause() {
            None | Some(Cause::Joiner) => joiner.result(),
            Some(Cause::TimedOut) => joiner.timed_out(),
            Some(Cause::Interrupted) => Err(JoinError::Interrupted),
            Some(Cause::Fork(error)) => Err(JoinError::Fork(error)),
            Some(Cause::Panicked(panic)) => Err(JoinError::Panicked(panic)),
            Some(Cause::Owner) => Err(JoinError::Cancelled),
        };
        result.map(Joined::new).map_err(Unjoined::new)
    }

    /// [Joins](Self::join), and cancels the scope if it is not over by `deadline`.
    ///
    /// The scope's own deadline, if it has one, still applies.
    ///
    /// # Errors
    /// The same as for `join`; [`JoinError::TimedOut`] unless the joiner decides otherwise.
    ///
    /// # Examples
    /// ```
    /// use pirn::{scope::JoinError, thread};
    /// use std::time::{Duration, Instant};
    /// let result = pirn::scope(|s| {
    ///     let _sleeper = s.fork(|| thread::sleep_interruptible(Duration::from_secs(3600)));
    ///     s.join_until(Instant::now() + Duration::from_millis(1))?;
    ///     Ok(())
    /// });
    /// assert!(matches!(result, Err(JoinError::TimedOut)));
    /// ```
    pub fn join_until(
        self,
        deadline: Instant,
    ) -> Result<Joined<'scope, J::Output>, Unjoined<'scope, J::Error>> {
        self.join_by(Deadline::at(deadline))
    }

    /// Cancels the scope: no more subtasks are started, running subtasks are interrupted, and the
    /// join fails with [`JoinError::Cancelled`], unless the scope was cancelled before for another
    /// reason.
    ///
    /// # Examples
    /// ```
    /// use pirn::scope::{self, JoinError, State};
    /// let result = pirn::scope(|s| {
    ///     s.cancel();
    ///     let subtask = s.fork(|| Ok::<_, std::fmt::Error>(())); // not started
    ///     assert_eq!(subtask.state(), State::Unavailable);
    ///     s.join()?;
    ///     Ok(())
    /// });
    /// assert!(matches!(result, Err(JoinError::Cancelled)));
    /// ```
    pub fn cancel(&self) {
        self.frame().state.cancel(Cause::Owner, None);
    }

    /// Returns whether the scope has been cancelled.
    ///
    /// # Examples
    /// ```
    /// pirn::scope::<std::fmt::Error, _, _>(|s| {
    ///     assert!(!s.is_cancelled());
    ///     s.cancel();
    ///     assert!(s.is_cancelled());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), pirn::scope::JoinError<std::fmt::Error>>(())
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.frame().state.is_cancelled()
    }

    /// Returns the joiner.
    ///
    /// # Examples
    /// ```
    /// # use pirn::scope::{self, Completed, JoinError, Joiner, JoinerFor};
    /// # use pirn::thread;
    /// # use std::ops::ControlFlow;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// /// A joiner that counts the subtasks that have completed.
    /// struct Done(AtomicU32);
    /// # impl Joiner for Done {
    /// #     type Error = std::fmt::Error;
    /// #     type Output = ();
    /// #     fn result(&self) -> Result<(), JoinError<std::fmt::Error>> {
    /// #         Ok(())
    /// #     }
    /// # }
    /// # impl<T> JoinerFor<T> for Done {
    /// #     fn on_complete(&self, _: &mut Completed<'_, T, std::fmt::Error>) -> ControlFlow<()> {
    /// #         self.0.fetch_add(1, Ordering::Relaxed);
    /// #         ControlFlow::Continue(())
    /// #     }
    /// # }
    /// scope::with(Done(AtomicU32::new(0)), |s| {
    ///     s.fork(|| Ok(7));
    ///     while s.joiner().0.load(Ordering::Relaxed) < 1 {
    ///         thread::yield_now(); // or show the progress
    ///     }
    ///     Ok(s.join()?.into_output())
    /// })?;
    /// # Ok::<(), JoinError<std::fmt::Error>>(())
    /// ```
    pub fn joiner(&self) -> &J {
        &self.frame().joiner
    }

    fn frame(&self) -> &Frame<J> {
        // SAFETY: `run` keeps the frame for longer than `'scope`.
        unsafe { self.frame.as_ref() }
    }
}

impl<J: Joiner> Drop for TaskScope<'_, '_, J> {
    /// Cancels a scope that is left without a join: by `?`, a panic, or by mistake.
    fn drop(&mut self) {
        if !self.owner.joined.get() {
            self.frame().state.cancel(Cause::Owner, None);
        }
    }
}

/// Shows the scope's name, its owner, and the running subtasks.
impl<J: Joiner> fmt::Debug for TaskScope<'_, '_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::tree::ScopeInfo::of(&self.frame().state).fmt(f)
    }
}
