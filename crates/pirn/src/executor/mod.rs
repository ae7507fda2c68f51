//! Executors: run tasks on threads, and see to the end of them all.
//!
//! Virtual threads are not pooled: each task has its own. What an executor adds to
//! [`thread::spawn`] is what is needed to have many of them in hand: cancel one, interrupt all,
//! wait for all, take the first that succeeds, map over an iterator with bounded concurrency. And
//! nothing is left running: an executor that goes out of scope waits for its tasks.
//!
//! Where the tasks of one operation belong together, and one's failure is that of all, a structured
//! scope says it better. An executor is for tasks that come one by one from many places: a server's
//! requests, say.
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

use crate::thread::{self, Interrupted, Threads};
use cell::{Interrupt, TaskCell};
use core::fmt;
use lifecycle::{Lifecycle, Membership};
use std::sync::Arc;
use std::time::Duration;
use watched::{GaveUp, WaitLimit};

/// Runs each task on a thread of its own, virtual unless said otherwise.
///
/// There is no limit to the number of tasks, and no queue: a submitted task starts at once.
///
/// To share it among threads, lend it (`&ThreadPerTask`) in a scope, or have it in an [`Arc`].
///
/// # The end
/// A *shut down* executor takes no new tasks. It is *terminated* when, after that, all its tasks
/// have ended; their threads may then still be busy destroying their thread-locals.
///
/// Dropping an executor [closes](Self::close) it: shuts it down and waits for its tasks, also when
/// the thread panics. Call [`shutdown_now`](Self::shutdown_now) before to interrupt them.
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
    threads: Threads,
    lifecycle: Arc<Lifecycle>,
}

impl ThreadPerTask {
    /// Returns an executor with virtual threads, unnamed and of the default stack size.
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
        ThreadPerTask::with(Threads::default())
    }

    /// Returns an executor with threads as given: virtual ones by a
    /// [`Builder`](thread::Builder), or [`PlatformThreads`](thread::PlatformThreads) for tasks that
    /// compute for long or use what depends on the kernel's threads.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread::{self, PlatformThreads};
    ///
    /// let builder = thread::Builder::new().name_counter("request-", 1).stack_size(64 << 10);
    /// let executor = ThreadPerTask::with(builder);
    /// assert_eq!(executor.submit(|| ())?.thread().name(), Some("request-1"));
    ///
    /// let executor = ThreadPerTask::with(PlatformThreads::new().name_counter("cruncher-", 1));
    /// assert!(!executor.submit(|| ())?.thread().is_virtual());
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn with(threads: impl Into<Threads>) -> ThreadPerTask {
        ThreadPerTask {
            threads: threads.into(),
            lifecycle: Arc::new(Lifecycle::new()),
        }
    }

    /// Starts a thread that calls `f`.
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
    pub fn submit<F, T>(&self, f: F) -> Result<Task<T>, SubmitError>
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
            // A virtual one may be here before `submit` has its handle.
            on_thread.attach(thread::current());
            on_thread.run(f);
            drop(on_thread);
        };
        let thread = self.threads.start(run).map_err(SubmitError::Spawn)?;
        if let Some(thread) = thread {
            cell.attach(thread);
        }
        Ok(Task::new(cell))
    }

    /// Shuts the executor down: it takes no new tasks. Those it has go on.
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
    /// A task that has not started yet starts with the flag set. None is [cancelled](Task::cancel):
    /// each ends with the result it then gives. Can be called again, to interrupt again those that
    /// still run.
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

    /// Waits until the executor is terminated, for `timeout` at most, and returns whether it is.
    ///
    /// Does not shut it down. Is not ended by an interrupt.
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
    /// If the waiting thread is interrupted, before or meanwhile, so are all tasks, as by
    /// [`shutdown_now`](Self::shutdown_now). It goes on waiting then, and its flag is still set
    /// afterwards.
    ///
    /// On the thread of one of its own tasks this does not wait, for it would wait for itself. That
    /// happens when tasks share the executor in an [`Arc`] and one of them is the last to let go of
    /// it.
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

/// Shows how many tasks have not ended.
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
