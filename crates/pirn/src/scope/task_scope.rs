//! The scope as its owner sees it, and the builder that opens it.

use super::deadline::ScopeDeadline;
use super::joiners::AwaitAllSuccessful;
use super::state::{Cause, ScopeState, Until};
use super::subtask;
use super::{JoinError, Joined, Joiner, JoinerFor, Subtask, Unjoined, await_all_successful};
use crate::thread;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroUsize;
use core::panic::Location;
use core::ptr::NonNull;
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::record::Place;
use pirn_rt::vthread::wait_word::Interruptible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Configures a scope before it is opened.
///
/// # Examples
/// ```
/// use pirn::scope;
/// use std::time::Duration;
///
/// let sum = scope::Builder::new()
///     .name("sums")
///     .timeout(Duration::from_secs(60))
///     .limit(2)
///     .open_with(scope::all_successful(), |s| {
///         for i in 0..10 {
///             s.fork(move || Ok::<_, std::fmt::Error>(i * i));
///         }
///         Ok(s.join()?.into_output().iter().sum::<i32>())
///     })?;
/// assert_eq!(sum, 285);
/// # Ok::<(), scope::JoinError<std::fmt::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder opens nothing by itself"]
pub struct Builder {
    name: Option<Arc<str>>,
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    limit: usize,
    threads: thread::Builder,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Returns a builder of a scope without a name, a deadline or a limit, whose subtasks run on
    /// unnamed virtual threads.
    #[inline]
    pub fn new() -> Builder {
        Builder {
            name: None,
            deadline: None,
            timeout: None,
            limit: usize::MAX,
            threads: thread::Builder::new(),
        }
    }

    /// Names the scope, for [`Debug`](core::fmt::Debug) and [dumps](super::snapshot()).
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Cancels the scope if it has not been joined this long after it was opened. The join then
    /// fails with [`JoinError::TimedOut`], unless the joiner decides otherwise; the results of
    /// completed subtasks can still be read.
    ///
    /// An inner scope never outlives the deadline of the outer one, which is the innermost scope of
    /// the same thread or the one in which the owner was forked.
    ///
    /// # Examples
    /// ```
    /// use pirn::{scope, thread};
    /// use std::time::Duration;
    /// let partial = scope::Builder::new().timeout(Duration::from_millis(20)).open(|s| {
    ///     let quick = s.fork(|| Ok("quick"));
    ///     let slow = s.fork(|| thread::sleep_interruptible(Duration::from_secs(3600)).map(|()| "slow"));
    ///     match s.join() {
    ///         Ok(_) => unreachable!(),
    ///         Err(late) => Ok((quick.result(&late).ok(), slow.result(&late).ok())),
    ///     }
    /// })?;
    /// assert!(matches!(partial, (_, None))); // (Some("quick"), None) if 20 ms were enough for it
    /// # Ok::<(), scope::JoinError<thread::Interrupted>>(())
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Builder {
        self.timeout = Some(timeout);
        self
    }

    /// Cancels the scope as [`timeout`](Self::timeout) does, at a point in time. If both are set,
    /// the earlier one holds.
    pub fn deadline(mut self, deadline: Instant) -> Builder {
        self.deadline = Some(deadline);
        self
    }

    /// Limits the number of subtasks that run at once: a fork waits until there is room.
    ///
    /// # Panics
    /// If the limit is 0: no subtask could ever run.
    pub fn limit(mut self, subtasks: usize) -> Builder {
        let limit = NonZeroUsize::new(subtasks);
        self.limit = limit.expect("a limit of 0 subtasks lets none run").get();
        self
    }

    /// Sets the builder of the threads that run the subtasks: with names, another stack size, or
    /// another scheduler.
    pub fn threads(mut self, threads: thread::Builder) -> Builder {
        self.threads = threads;
        self
    }

    /// Opens the scope, as [`scope::open`](crate::scope::open) does.
    ///
    /// # Errors
    /// The same as for `scope::open`.
    ///
    /// # Panics
    /// The same as for `scope::open`.
    #[track_caller]
    #[inline]
    pub fn open<'env, E, R, F>(self, f: F) -> Result<R, JoinError<E>>
    where
        E: Send,
        F: for<'scope> FnOnce(
            TaskScope<'scope, 'env, AwaitAllSuccessful<E>>,
        ) -> Result<R, JoinError<E>>,
    {
        self.open_with(await_all_successful(), f)
    }

    /// Opens the scope with a joiner, as [`scope::open_with`](super::open_with) does.
    ///
    /// # Errors
    /// The same as for `scope::open_with`.
    ///
    /// # Panics
    /// The same as for `scope::open_with`.
    #[track_caller]
    #[inline]
    pub fn open_with<'env, J, R, F>(self, joiner: J, f: F) -> Result<R, JoinError<J::Error>>
    where
        J: Joiner,
        F: for<'scope> FnOnce(TaskScope<'scope, 'env, J>) -> Result<R, JoinError<J::Error>>,
    {
        let deadline = self.deadline.map_or(Deadline::NEVER, Deadline::at);
        let timeout = self.timeout.map_or(Deadline::NEVER, Deadline::after);
        let frame = Frame {
            state: ScopeState::new(self.name, deadline.min(timeout)),
            joiner,
            threads: self.threads,
            limit: self.limit,
            deadline: ScopeDeadline::new(),
        };
        run(&frame, f)
    }
}

/// What the owner of a scope and its subtasks share, on the owner's stack.
pub(super) struct Frame<J> {
    pub(super) state: ScopeState,
    pub(super) joiner: J,
    pub(super) threads: thread::Builder,
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
/// [`scope::open`](crate::scope::open), [`scope::open_with`](super::open_with) and
/// [`scope::Builder`](super::Builder) make it. `'scope` is the lifetime in which subtasks may run,
/// `'env` the lifetime of the values that they may borrow.
///
/// Only the owner can fork and join. A subtask cannot:
/// ```compile_fail,E0277
/// pirn::scope::open(|s| {
///     s.fork(|| { s.fork(|| Ok(())); Ok::<_, std::fmt::Error>(()) });
///     s.join()?;
///     Ok(())
/// });
/// ```
/// Another thread cannot either:
/// ```compile_fail,E0277
/// pirn::scope::open::<std::fmt::Error, _, _>(|s| {
///     std::thread::scope(|threads| { threads.spawn(move || s.join().is_ok()); });
///     Ok(())
/// });
/// ```
/// Nothing can be forked after the join:
/// ```compile_fail,E0382
/// pirn::scope::open(|s| {
///     s.join()?;
///     s.fork(|| Ok::<_, std::fmt::Error>(()));
///     Ok(())
/// });
/// ```
/// There is no second join, whatever the result of the first:
/// ```compile_fail,E0382
/// pirn::scope::open::<std::fmt::Error, _, _>(|s| {
///     let _ = s.join();
///     s.join()?;
///     Ok(())
/// });
/// ```
/// The scope ends where its block ends, neither later nor before the scopes that were opened in it:
/// ```compile_fail,E0521
/// let mut kept = None;
/// pirn::scope::open::<std::fmt::Error, _, _>(|s| {
///     kept = Some(s); // to be joined later
///     Ok(())
/// });
/// ```
/// Subtasks may outlive the local variables of that block, and so cannot borrow them:
/// ```compile_fail,E0373
/// pirn::scope::open(|s| {
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
fn run<'env, J, R, F>(frame: &Frame<J>, f: F) -> Result<R, JoinError<J::Error>>
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
            state.wait(Until::Unused, Deadline::NEVER, Interruptible::Never); // Not interruptible.
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
    /// let total = pirn::scope::open(|s| {
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
                Interruptible::Always,
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
        let forked = subtask::fork(&frame.threads, place, frame, index, f);
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
    /// let sum = pirn::scope::open(|s| {
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
        match state.wait(Until::Room(0), deadline, Interruptible::Always) {
            // The call around the scope may have a deadline, which interrupts the owner.
            Outcome::Interrupted if state.deadline.has_passed() => {
                state.cancel(Cause::TimedOut, None)
            }
            Outcome::Interrupted => state.cancel(Cause::Interrupted, None),
            Outcome::TimedOut => state.cancel(Cause::TimedOut, None),
            Outcome::Closed => return Err(Unjoined::new(JoinError::Cancelled)),
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
    pub fn join_until(
        self,
        deadline: Instant,
    ) -> Result<Joined<'scope, J::Output>, Unjoined<'scope, J::Error>> {
        self.join_by(Deadline::at(deadline))
    }

    /// Cancels the scope: no more subtasks are started, running subtasks are interrupted, and the
    /// join fails with [`JoinError::Cancelled`], unless the scope was cancelled before for another
    /// reason.
    pub fn cancel(&self) {
        self.frame().state.cancel(Cause::Owner, None);
    }

    /// Returns whether the scope has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.frame().state.is_cancelled()
    }

    /// Returns the joiner.
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
