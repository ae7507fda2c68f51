//! Several tasks at once: all of them, or the first that succeeds.

use super::error::{InvokeAllError, InvokeAnyError, TaskError};
use super::queue::Queue;
use super::watched::{GaveUp, WaitLimit};
use super::{Task, ThreadPerTask};
use crate::thread::Panic;
use core::mem;
use std::collections::VecDeque;
use std::time::Duration;

/// Tasks that are cancelled when they are dropped: then no thread waits for them any more.
pub(super) struct Group<T>(pub(super) VecDeque<Task<T>>);

impl<T> Drop for Group<T> {
    fn drop(&mut self) {
        for task in &self.0 {
            task.cancel();
        }
    }
}

impl ThreadPerTask {
    /// Runs all tasks and waits until they have ended. The results are in the order of the tasks.
    ///
    /// If this function does not return a list, which includes a panic of `tasks`' iterator, the
    /// tasks are [cancelled](Task::cancel).
    ///
    /// # Errors
    /// [`InvokeAllError::Submit`] if a task cannot be submitted, [`InvokeAllError::Interrupted`] if
    /// the waiting thread is interrupted.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    ///
    /// let executor = ThreadPerTask::new();
    /// let lengths = executor.invoke_all(["warp", "weft", "heddle"].map(|word| move || word.len()))?;
    /// let lengths: Vec<_> = lengths.into_iter().collect::<Result<_, _>>()?;
    /// assert_eq!(lengths, [4, 4, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn invoke_all<I, F, T>(&self, tasks: I) -> Result<Vec<Result<T, TaskError>>, InvokeAllError>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.all(tasks, WaitLimit::UNTIL_INTERRUPTED)
    }

    /// Runs tasks as [`invoke_all`](Self::invoke_all) does, but cancels those that have not ended
    /// when `timeout` has passed: they are [`TaskError::Cancelled`] in the list.
    ///
    /// The timeout counts from the call. This does not wait until the cancelled tasks have ended.
    ///
    /// # Errors
    /// The same as for [`invoke_all`](Self::invoke_all).
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::{TaskError, ThreadPerTask};
    /// use pirn::thread;
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let day = Duration::from_secs(24 * 3600);
    /// let sleepers = [day, day].map(|time| move || thread::sleep_interruptible(time));
    /// let results = executor.invoke_all_timeout(sleepers, Duration::from_millis(1))?;
    /// assert!(matches!(results[..], [Err(TaskError::Cancelled), Err(TaskError::Cancelled)]));
    /// # Ok::<(), pirn::executor::InvokeAllError>(())
    /// ```
    #[track_caller]
    pub fn invoke_all_timeout<I, F, T>(
        &self,
        tasks: I,
        timeout: Duration,
    ) -> Result<Vec<Result<T, TaskError>>, InvokeAllError>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.all(tasks, WaitLimit::timeout(timeout).interruptible())
    }

    #[track_caller]
    fn all<I, F, T>(
        &self,
        tasks: I,
        limit: WaitLimit,
    ) -> Result<Vec<Result<T, TaskError>>, InvokeAllError>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let mut group = Group(VecDeque::new());
        for f in tasks {
            let task = self.submit(f).map_err(InvokeAllError::Submit)?;
            group.0.push_back(task);
        }
        let mut results = Vec::with_capacity(group.0.len());
        while let Some(task) = group.0.front() {
            match task.wait(limit) {
                Ok(result) => results.push(result),
                Err(GaveUp::Interrupted) => return Err(InvokeAllError::Interrupted),
                // Cancel all before the first result is taken, so that no task gains time
                // meanwhile.
                Err(GaveUp::TimedOut) => {
                    let rest = mem::take(&mut group.0);
                    for task in &rest {
                        task.cancel();
                    }
                    results.extend(rest.into_iter().map(Task::join));
                    break;
                }
            }
            group.0.pop_front();
        }
        Ok(results)
    }

    /// Runs all tasks, and returns the value of the first that succeeds, that is, returns `Ok`.
    ///
    /// The others are then [cancelled](Task::cancel), but not waited for; closing the executor
    /// waits for them. A task that panics has failed.
    ///
    /// # Errors
    /// * [`InvokeAnyError::Failed`], [`InvokeAnyError::Panicked`]: all tasks failed; this is the
    ///   first failure.
    /// * [`InvokeAnyError::Empty`]: there are no tasks.
    /// * [`InvokeAnyError::Submit`]: a task cannot be submitted.
    /// * [`InvokeAnyError::Interrupted`]: the waiting thread was interrupted.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread::{self, Interrupted};
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let first = executor.invoke_any([3600, 0, 7200].map(|seconds| move || {
    ///     thread::sleep_interruptible(Duration::from_secs(seconds))?;
    ///     Ok::<_, Interrupted>(seconds)
    /// }))?;
    /// assert_eq!(first, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn invoke_any<I, F, T, E>(&self, tasks: I) -> Result<T, InvokeAnyError<E>>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.any(tasks, WaitLimit::UNTIL_INTERRUPTED)
    }

    /// Runs tasks as [`invoke_any`](Self::invoke_any) does, but gives up and cancels all of them
    /// when `timeout` has passed.
    ///
    /// The timeout counts from the call.
    ///
    /// # Errors
    /// The same as for [`invoke_any`](Self::invoke_any), and [`InvokeAnyError::TimedOut`].
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::{InvokeAnyError, ThreadPerTask};
    /// use pirn::thread;
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let day = Duration::from_secs(24 * 3600);
    /// let sleepers = [day, day].map(|time| move || thread::sleep_interruptible(time));
    /// let result = executor.invoke_any_timeout(sleepers, Duration::from_millis(1));
    /// assert!(matches!(result, Err(InvokeAnyError::TimedOut)));
    /// ```
    #[track_caller]
    pub fn invoke_any_timeout<I, F, T, E>(
        &self,
        tasks: I,
        timeout: Duration,
    ) -> Result<T, InvokeAnyError<E>>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.any(tasks, WaitLimit::timeout(timeout).interruptible())
    }

    #[track_caller]
    fn any<I, F, T, E>(&self, tasks: I, limit: WaitLimit) -> Result<T, InvokeAnyError<E>>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let results = Queue::new();
        let mut group = Group(VecDeque::new());
        let mut race = Race {
            failures: 0,
            first: None,
        };
        for f in tasks {
            let task = self.submit(results.feed(f, |result| result));
            group.0.push_back(task.map_err(InvokeAnyError::Submit)?);
            // A task may have succeeded before the last one has started.
            if let Some(value) = results.poll().and_then(|result| race.came_in(result)) {
                return Ok(value);
            }
        }
        while race.failures < group.0.len() {
            let result = results.take(limit).map_err(|ended| match ended {
                GaveUp::TimedOut => InvokeAnyError::TimedOut,
                GaveUp::Interrupted => InvokeAnyError::Interrupted,
            })?;
            if let Some(value) = race.came_in(result) {
                return Ok(value);
            }
        }
        Err(race.lost())
    }
}

/// The results of the tasks of an `invoke_any` so far: only failures, or it would be over.
struct Race<E> {
    failures: usize,
    first: Option<InvokeAnyError<E>>,
}

impl<E> Race<E> {
    /// Returns the value if the result is one.
    fn came_in<T>(&mut self, result: Result<Result<T, E>, Panic>) -> Option<T> {
        let failure = match result {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => InvokeAnyError::Failed(error),
            Err(panicked) => InvokeAnyError::Panicked(panicked),
        };
        self.failures += 1;
        self.first.get_or_insert(failure);
        None
    }

    fn lost(self) -> InvokeAnyError<E> {
        self.first.unwrap_or(InvokeAnyError::Empty)
    }
}
