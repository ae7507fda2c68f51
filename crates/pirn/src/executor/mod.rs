//! Executors: run each task on its own thread, and wait for all of them at the end.
//!
//! Virtual threads are not pooled: each task has its own. Compared with [`thread::spawn`], an
//! executor can cancel one task, interrupt all, wait for all, take the first that succeeds, or map
//! over an iterator with bounded concurrency. It leaves no task running: an executor that goes out
//! of scope waits for its tasks.
//!
//! If the tasks belong to one operation, and the failure of one is the failure of all, use a
//! structured scope instead. An executor is for tasks that come one by one from many places, such
//! as a server's requests.
//!
//! ```
//! use pirn::executor::ThreadPerTask;
//!
//! let executor = ThreadPerTask::new();
//! let tasks: Vec<_> = (0..1000)
//!     .map(|i| executor.submit(move || 2 * i))
//!     .collect::<Result<_, _>>()?;
//! let mut sum = 0;
//! for task in tasks {
//!     sum += task.join()?;
//! }
//! assert_eq!(sum, 999_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod error;
mod invoke;
mod lifecycle;
mod map;
mod queue;
mod task;
mod watched;

pub use error::{InvokeAllError, InvokeAnyError, MapError, SubmitError, TaskError};
pub use map::{Map, MapUnordered};
pub use task::{Task, TaskFuture};

use crate::thread::{self, Builder, Interrupted};
use cell::{Interrupt, TaskCell};
use core::fmt;
use core::panic::Location;
use lifecycle::{Lifecycle, Membership};
use pirn_rt::vthread::record::Place;
use std::sync::Arc;
use std::time::Duration;
use watched::{GaveUp, WaitLimit};

/// Runs each task on its own virtual thread.
///
/// There is no limit to the number of tasks, and no queue: a submitted task starts at once.
///
/// To share it among threads, lend it (`&ThreadPerTask`) in a scope, or put it into an [`Arc`].
///
/// # The end
/// A *shut down* executor takes no new tasks. It is *terminated* when, after that, all its tasks
/// have ended; their threads may then still be busy destroying their thread-locals.
///
/// Dropping an executor [closes](Self::close) it: shuts it down and waits for its tasks, also
/// during a panic. Call [`shutdown_now`](Self::shutdown_now) first to interrupt the tasks.
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::sync::Arc;
///
/// let count = Arc::new(AtomicU32::new(0));
/// {
///     let executor = ThreadPerTask::new();
///     for _ in 0..100 {
///         let count = Arc::clone(&count);
///         let _ = executor.submit(move || count.fetch_add(1, Ordering::Relaxed))?;
///     }
/// } // Waits for all.
/// assert_eq!(count.load(Ordering::Relaxed), 100);
/// # Ok::<(), pirn::executor::SubmitError>(())
/// ```
pub struct ThreadPerTask {
    threads: Builder,
    lifecycle: Arc<Lifecycle>,
}

impl ThreadPerTask {
    /// Returns an executor whose threads have no names and the default stack size.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| pirn::thread::current().is_virtual())?;
    /// assert!(task.join()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[expect(
        clippy::new_without_default,
        reason = "dropping one waits: not a mere value"
    )]
    pub fn new() -> ThreadPerTask {
        ThreadPerTask::with(Builder::new())
    }

    /// Returns an executor whose tasks run on threads of this builder.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread;
    ///
    /// let builder = thread::Builder::new().name_counter("request-", 1).stack_size(64 << 10);
    /// let executor = ThreadPerTask::with(builder);
    /// assert_eq!(executor.submit(|| ())?.thread().name(), Some("request-1"));
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn with(threads: Builder) -> ThreadPerTask {
        ThreadPerTask {
            threads,
            lifecycle: Arc::new(Lifecycle::new()),
        }
    }

    /// Starts a thread that calls `f`, and returns the task.
    ///
    /// # Errors
    /// [`SubmitError::Shutdown`] if the executor has been shut down, [`SubmitError::Spawn`] if the
    /// thread cannot be created. `f` is then dropped.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::{SubmitError, ThreadPerTask};
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| 1 + 1)?;
    /// executor.shutdown();
    /// assert!(matches!(executor.submit(|| ()), Err(SubmitError::Shutdown)));
    /// assert_eq!(task.join()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn submit<F, T>(&self, f: F) -> Result<Task<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_at(Location::caller(), f)
    }

    /// Submits a task on behalf of `place`.
    fn submit_at<F, T>(&self, place: Place, f: F) -> Result<Task<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let cell = Arc::new(TaskCell::new());
        let task = Arc::clone(&cell) as Arc<dyn Interrupt>;
        let membership = Membership::enter(&self.lifecycle, task).ok_or(SubmitError::Shutdown)?;

        let on_thread = Arc::clone(&cell);
        let run = move || {
            let membership = membership; // Dropped last, also when a destructor panics.
            let _own = membership.adopt_thread();
            // A virtual thread may get here before `submit` has its handle.
            on_thread.attach(thread::current());
            on_thread.run(f);
            drop(on_thread);
        };
        let handle = self.threads.clone().spawn_at(place, run);
        cell.attach(handle.map_err(SubmitError::Spawn)?.thread().clone());
        Ok(Task::new(cell))
    }

    /// Shuts the executor down: it takes no new tasks. Submitted tasks go on.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| 7)?;
    /// executor.shutdown();
    /// assert!(executor.submit(|| 8).is_err());
    /// assert_eq!(task.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self) {
        self.lifecycle.shut_down();
    }

    /// Shuts the executor down, and [interrupts](crate::thread::Thread::interrupt) the threads of
    /// all its tasks.
    ///
    /// A task that has not started yet starts with the flag set. No task is
    /// [cancelled](Task::cancel): each ends with the result that it then returns. Another call
    /// interrupts again the tasks that still run.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread::{self, Interrupted};
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| thread::sleep_interruptible(Duration::from_secs(3600)))?;
    /// executor.shutdown_now();
    /// assert_eq!(task.join()?, Err(Interrupted));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown_now(&self) {
        self.lifecycle.stop();
    }

    /// Returns whether the executor has been shut down.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    ///
    /// let executor = ThreadPerTask::new();
    /// assert!(!executor.is_shutdown());
    /// executor.shutdown();
    /// assert!(executor.is_shutdown());
    /// ```
    pub fn is_shutdown(&self) -> bool {
        self.lifecycle.is_shut_down()
    }

    /// Returns whether the executor has been shut down and all its tasks have ended.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let executor = ThreadPerTask::new();
    /// let (sender, receiver) = mpsc::channel::<()>();
    /// let _task = executor.submit(move || receiver.recv())?;
    /// executor.shutdown();
    /// assert!(!executor.is_terminated()); // the task still waits
    /// drop(sender);
    /// assert!(executor.await_termination(Duration::from_secs(10)) && executor.is_terminated());
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn is_terminated(&self) -> bool {
        self.lifecycle.is_terminated()
    }

    /// Waits until the executor is terminated, at most for `timeout`, and returns whether it is.
    ///
    /// Does not shut the executor down. An interrupt does not end this wait.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// assert!(!executor.await_termination(Duration::ZERO));
    /// executor.shutdown();
    /// assert!(executor.await_termination(Duration::from_secs(10)));
    /// ```
    pub fn await_termination(&self, timeout: Duration) -> bool {
        let limit = WaitLimit::timeout(timeout);
        self.lifecycle.await_termination(limit).is_ok()
    }

    /// Waits as [`await_termination`](Self::await_termination) does, unless the waiting thread is
    /// interrupted.
    ///
    /// # Errors
    /// [`Interrupted`], if the executor is not terminated and the thread has been interrupted. The
    /// flag stays set.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread::{self, Interrupted};
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// thread::current().interrupt();
    /// let ended = executor.await_termination_interruptible(Duration::from_secs(3600));
    /// assert_eq!(ended, Err(Interrupted));
    /// ```
    pub fn await_termination_interruptible(&self, timeout: Duration) -> Result<bool, Interrupted> {
        let limit = WaitLimit::timeout(timeout).interruptible();
        match self.lifecycle.await_termination(limit) {
            Ok(()) => Ok(true),
            Err(GaveUp::TimedOut) => Ok(false),
            Err(GaveUp::Interrupted) => Err(Interrupted),
        }
    }

    /// Shuts the executor down and waits until all its tasks have ended, as dropping it does.
    ///
    /// If the waiting thread is interrupted, before or during the wait, so are all tasks, as by
    /// [`shutdown_now`](Self::shutdown_now). The wait goes on, and the thread's flag is still set
    /// afterwards.
    ///
    /// On the thread of one of the executor's own tasks this does not wait, because it would wait
    /// for itself. That happens when tasks share the executor in an [`Arc`] and one of them drops
    /// the last reference.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| 7)?;
    /// executor.close();
    /// assert!(task.is_done());
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for ThreadPerTask {
    fn drop(&mut self) {
        self.lifecycle.close();
    }
}

/// Shows the number of tasks that have not ended.
impl fmt::Debug for ThreadPerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.is_terminated(), self.is_shutdown()) {
            (true, _) => "terminated",
            (false, true) => "shut down",
            (false, false) => "open",
        };
        f.debug_struct("ThreadPerTask")
            .field("threads", &self.threads)
            .field("state", &format_args!("{state}"))
            .field("running", &self.lifecycle.running())
            .finish()
    }
}
