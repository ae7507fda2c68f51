//! Configuring a scope.

use super::deadline::ScopeDeadline;
use super::joiners::AwaitAllSuccessful;
use super::state::ScopeState;
use super::task_scope::{self, Frame, TaskScope};
use super::{JoinError, Joiner, await_all_successful};
use crate::thread;
use core::num::NonZeroUsize;
use pirn_rt::time::Deadline;
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
    ///
    /// # Examples
    /// ```
    /// use pirn::{scope, thread};
    /// use std::time::{Duration, Instant};
    /// let deadline = Instant::now() + Duration::from_millis(1); // when the caller wants the answer
    /// let result = scope::Builder::new().deadline(deadline).open(|s| {
    ///     s.fork(|| thread::sleep_interruptible(Duration::from_secs(3600)));
    ///     Ok(s.join()?.into_output())
    /// });
    /// assert!(matches!(result, Err(scope::JoinError::TimedOut)));
    /// ```
    pub fn deadline(mut self, deadline: Instant) -> Builder {
        self.deadline = Some(deadline);
        self
    }

    /// Limits the number of subtasks that run at once: a fork waits until there is room.
    ///
    /// # Panics
    /// If the limit is 0: no subtask could ever run.
    ///
    /// # Examples
    /// ```
    /// use pirn::scope;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// let running = AtomicU32::new(0);
    /// scope::Builder::new().limit(1).open(|s| {
    ///     for _ in 0..10 {
    ///         s.fork(|| {
    ///             assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0);
    ///             pirn::thread::yield_now();
    ///             running.fetch_sub(1, Ordering::Relaxed);
    ///             Ok(())
    ///         });
    ///     }
    ///     Ok(s.join()?.into_output())
    /// })?;
    /// # Ok::<(), scope::JoinError<std::fmt::Error>>(())
    /// ```
    pub fn limit(mut self, subtasks: usize) -> Builder {
        let limit = NonZeroUsize::new(subtasks);
        self.limit = limit.expect("a limit of 0 subtasks lets none run").get();
        self
    }

    /// Sets the builder of the threads that run the subtasks: with names, another stack size, or
    /// another scheduler.
    ///
    /// # Examples
    /// ```
    /// use pirn::{scope, thread};
    /// let workers = thread::Builder::new().name_counter("worker-", 1).stack_size(64 << 10);
    /// let name = scope::Builder::new().threads(workers).open(|s| {
    ///     let name = s.fork(|| thread::current().name().map(str::to_owned).ok_or("no name"));
    ///     let all = s.join()?;
    ///     Ok(name.get(&all))
    /// });
    /// assert_eq!(name.unwrap(), "worker-1");
    /// ```
    pub fn threads(mut self, threads: thread::Builder) -> Builder {
        self.threads = threads;
        self
    }

    /// Opens the scope, as [`pirn::scope`](crate::scope()) does.
    ///
    /// # Errors
    /// The same as for `pirn::scope`.
    ///
    /// # Panics
    /// The same as for `pirn::scope`.
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

    /// Opens the scope with a joiner, as [`scope::with`](super::with) does.
    ///
    /// # Errors
    /// The same as for `scope::with`.
    ///
    /// # Panics
    /// The same as for `scope::with`.
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
        task_scope::run(&frame, f)
    }
}
