//! Executors: each task on a thread of its own, and waiting for all of them at the end.
//!
//! Virtual threads are not pooled. Compared with [`thread::spawn`], an executor can cancel one
//! task, interrupt all, wait for all, or map an iterator with bounded concurrency. It leaves no
//! task running: an executor that goes out of scope waits for its tasks.
//!
//! If the tasks belong to one operation, and the failure of one is the failure of all, use a
//! [scope](mod@crate::scope): [`scope::all`](crate::scope::all) and
//! [`scope::any`](crate::scope::any) run several tasks and return all values, or the first. An
//! executor is for tasks that come one by one from many places, such as a server's requests.
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
//! # Ok::<(), pirn::executor::TaskError>(())
//! ```

use crate::thread::scoped::{Member, allocate_member};
use crate::thread::{self, Builder, Interrupted, JoinFuture, JoinHandle, Panic, Semaphore, Thread};
use core::fmt;
use core::iter::FusedIterator;
use core::panic::Location;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use core::task::{Context, Poll};
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::poison::locked;
use pirn_rt::sched::body::caught;
use pirn_rt::sched::{self, Cause};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::record::Place;
use pirn_rt::vthread::wait_word::Interruptible;
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Runs each task on its own virtual thread.
///
/// There is no limit to the number of tasks, and no queue: a submitted task starts at once.
///
/// To share it among threads, lend it (`&ThreadPerTask`) in a scope, or put it into an [`Arc`].
///
/// # The end
/// A *shut down* executor takes no new tasks. It is *terminated* when, after that, the threads of
/// all its tasks have ended.
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
/// # Ok::<(), pirn::executor::TaskError>(())
/// ```
pub struct ThreadPerTask {
    threads: Builder,
    tasks: Arc<Tasks>,
}

impl ThreadPerTask {
    /// Returns an executor whose threads have no names and the default stack size.
    #[expect(
        clippy::new_without_default,
        reason = "dropping one waits: not a mere value"
    )]
    pub fn new() -> ThreadPerTask {
        ThreadPerTask::with(Builder::new())
    }

    /// Returns an executor whose tasks run on threads of this builder.
    pub fn with(threads: Builder) -> ThreadPerTask {
        ThreadPerTask {
            threads,
            tasks: Arc::new(Tasks::default()),
        }
    }

    /// Starts a thread that calls `f`, and returns the task.
    ///
    /// # Errors
    /// [`TaskError::Shutdown`] if the executor has been shut down, [`TaskError::Spawn`] if the
    /// thread cannot be created. `f` is then dropped.
    #[track_caller]
    pub fn submit<F, T>(&self, f: F) -> Result<Task<T>, TaskError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_at(Location::caller(), f)
    }

    /// Submits a task on behalf of `place`.
    fn submit_at<F, T>(&self, place: Place, f: F) -> Result<Task<T>, TaskError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let entered = Entered::new(&self.tasks).ok_or(TaskError::Shutdown)?;
        let flag = Arc::new(Flag::default());
        let of_thread = Arc::clone(&flag);
        let run = move || {
            if of_thread.is_cancelled() {
                return Err(TaskError::Cancelled);
            }
            // Caught here: the thread's body does not know that a payload may panic when it is
            // dropped, and `Panic` does.
            let result = caught(f).map_err(|payload| TaskError::Panicked(Panic::new(payload)));
            match of_thread.set(RETURNED) {
                true => result,
                false => Err(TaskError::Cancelled),
            }
        };
        let member = Membership {
            tasks: Arc::clone(&self.tasks),
            flag: Arc::clone(&flag),
        };
        let made = self
            .threads
            .make(place, |attributes| allocate_member(attributes, run, member));
        let (thread, ready) = made.map_err(TaskError::Spawn)?;
        core::mem::forget(entered); // The member leaves.
        let handle = JoinHandle::new(thread);
        self.tasks.insert(&flag, handle.thread().clone());
        sched::schedule(ready, Cause::Start);
        Ok(Task { handle, flag })
    }

    /// Calls `f` on each item, each on its own thread, at most `limit` at a time. The results are
    /// in the order of the items.
    ///
    /// The iterator is lazy. Each [`next`](Iterator::next) first takes items and starts threads
    /// until there are `limit` of them, counting those that have ended but whose results have not
    /// been returned. Then it waits for the first of them. So at most `limit` items and results are
    /// in memory, and one slow item holds up the others.
    ///
    /// Dropping the iterator early [cancels](Task::cancel) the running tasks, but does not wait for
    /// them; closing the executor does that.
    ///
    /// The error of an item is [`TaskError::Panicked`]; the iteration goes on after it. Any other
    /// error ends the iteration. [`TaskError::Interrupted`] is returned if the thread is
    /// interrupted while it waits in `next`, and cancels the running tasks.
    ///
    /// # Panics
    /// If `limit` is 0.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    ///
    /// let executor = ThreadPerTask::new();
    /// let squares = executor.map(1..=4, 2, |n| n * n);
    /// let squares: Vec<i32> = squares.collect::<Result<_, _>>()?;
    /// assert_eq!(squares, [1, 4, 9, 16]);
    ///
    /// // Different tasks, all at once:
    /// let tasks: [fn() -> usize; 2] = [|| "warp".len(), || "shuttle".len()];
    /// let lengths: Vec<_> = executor.map(tasks, usize::MAX, |task| task()).collect();
    /// assert!(matches!(lengths[..], [Ok(4), Ok(7)]));
    /// # Ok::<(), pirn::executor::TaskError>(())
    /// ```
    #[doc(alias("invokeAll", "mapConcurrent"))]
    #[track_caller]
    pub fn map<I, F, T>(&self, items: I, limit: usize, f: F) -> Map<'_, I::IntoIter, F, T>
    where
        I: IntoIterator,
        I::Item: Send + 'static,
        F: Fn(I::Item) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        assert!(limit > 0, "with a limit of 0 threads nothing can be mapped");
        Map {
            executor: self,
            place: Location::caller(),
            items: Some(items.into_iter()),
            limit,
            f: Arc::new(f),
            running: VecDeque::new(),
            refused: None,
        }
    }

    /// Shuts the executor down: it takes no new tasks. Submitted tasks go on.
    pub fn shutdown(&self) {
        self.tasks.shut_down();
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
    /// # Ok::<(), pirn::executor::TaskError>(())
    /// ```
    pub fn shutdown_now(&self) {
        self.tasks.stop();
    }

    /// Returns whether the executor has been shut down.
    pub fn is_shutdown(&self) -> bool {
        self.tasks.word().0
    }

    /// Returns whether the executor has been shut down and all its tasks have ended.
    pub fn is_terminated(&self) -> bool {
        self.tasks.word() == (true, 0)
    }

    /// Waits until the executor is terminated, at most for `timeout`, and returns whether it is.
    /// Does not shut the executor down.
    ///
    /// # Errors
    /// [`Interrupted`], if the executor is not terminated and the waiting thread has been
    /// interrupted. The flag stays set.
    pub fn await_termination(&self, timeout: Duration) -> Result<bool, Interrupted> {
        let interruptible = Interruptible::Always;
        match self.tasks.wait(Deadline::after(timeout), interruptible) {
            Outcome::Ready => Ok(true),
            Outcome::TimedOut => Ok(false),
            _ => Err(Interrupted),
        }
    }

    /// Shuts the executor down and waits until all tasks have ended, as dropping it does.
    ///
    /// If the waiting thread is interrupted, before or during the wait, so are all tasks, as by
    /// [`shutdown_now`](Self::shutdown_now). The wait goes on, and the thread's flag is still set
    /// afterwards.
    ///
    /// On the thread of one of the executor's own tasks this does not wait, because it would wait
    /// for itself. That happens when tasks share the executor in an [`Arc`] and one of them drops
    /// the last reference.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for ThreadPerTask {
    fn drop(&mut self) {
        self.tasks.shut_down();
        if self.is_terminated() || self.tasks.contains(&thread::current()) {
            return;
        }
        if self.tasks.wait(Deadline::NEVER, Interruptible::Always) != Outcome::Ready {
            self.tasks.stop();
            self.tasks.wait(Deadline::NEVER, Interruptible::Never);
        }
    }
}

/// Shows the number of tasks that have not ended.
impl fmt::Debug for ThreadPerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is_shut_down, running) = self.tasks.word();
        let state = match (is_shut_down, running) {
            (true, 0) => "terminated",
            (true, _) => "shut down",
            (false, _) => "open",
        };
        f.debug_struct("ThreadPerTask")
            .field("threads", &self.threads)
            .field("state", &format_args!("{state}"))
            .field("running", &running)
            .finish()
    }
}

/// The tasks of an executor that have not ended.
struct Tasks {
    /// [`ONE_TASK`] for each, and [`SHUT_DOWN`]. With that bit the number only falls, and becomes 0
    /// once: then the executor is terminated.
    word: AtomicUsize,
    /// Whether `shutdown_now` has been called.
    stopped: AtomicBool,
    /// The threads, keyed by the addresses of their flags, in several maps, so that threads that
    /// submit and end tasks seldom contend. (A hash table would have to be shrunk after a flood of
    /// tasks, and is not faster.)
    threads: [Mutex<BTreeMap<usize, Thread>>; Tasks::SHARDS],
    /// Has one permit when the executor is terminated. A waiter takes it and gives it back.
    terminated: Semaphore,
}

const SHUT_DOWN: usize = 1;
const ONE_TASK: usize = 2;

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks {
            word: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            threads: Default::default(),
            terminated: Semaphore::new(0),
        }
    }
}

impl Tasks {
    const SHARDS: usize = 16;

    /// Returns whether the executor is shut down, and the number of tasks that have not ended.
    fn word(&self) -> (bool, usize) {
        // Acquire: pairs with the Release in `leave`: what the tasks did happened before.
        let word = self.word.load(Ordering::Acquire);
        (word & SHUT_DOWN != 0, word / ONE_TASK)
    }

    fn shut_down(&self) {
        // AcqRel: publishes to `enter` what the caller did, and as in `word`.
        if self.word.fetch_or(SHUT_DOWN, Ordering::AcqRel) == 0 {
            self.terminated.add_permits(1);
        }
    }

    /// Counts a task out.
    fn leave(&self) {
        // Release: publishes what the task did to `word`, and to the task that counts itself out
        // last. Acquire: pairs with the Release of those that left before.
        let before = self.word.fetch_sub(ONE_TASK, Ordering::AcqRel);
        if before == ONE_TASK | SHUT_DOWN {
            self.terminated.add_permits(1);
        }
    }

    /// Adds the thread of a task, which has not started.
    fn insert(&self, flag: &Arc<Flag>, thread: Thread) {
        let (key, shard) = self.place_of(flag);
        locked(shard).insert(key, thread.clone());
        // Relaxed: if `stop` has looked at this shard before, its lock has brought us the flag;
        // otherwise `stop` finds the thread.
        if self.stopped.load(Ordering::Relaxed) {
            thread.interrupt();
        }
    }

    /// Shuts down, and interrupts all threads.
    fn stop(&self) {
        self.shut_down();
        self.stopped.store(true, Ordering::Relaxed); // Relaxed: see `insert`.
        for shard in &self.threads {
            let threads: Vec<_> = locked(shard).values().cloned().collect();
            // Outside the lock, because this calls listeners of the program.
            threads.iter().for_each(Thread::interrupt);
        }
    }

    /// Returns whether a thread runs a task.
    fn contains(&self, thread: &Thread) -> bool {
        let is_it = |other: &Thread| other.id() == thread.id();
        self.threads
            .iter()
            .any(|shard| locked(shard).values().any(is_it))
    }

    fn place_of(&self, flag: &Arc<Flag>) -> (usize, &Mutex<BTreeMap<usize, Thread>>) {
        let key = Arc::as_ptr(flag).addr();
        (key, &self.threads[(key >> 5) % Tasks::SHARDS]) // A flag's allocation has 32 bytes.
    }

    /// Waits until the executor is terminated.
    fn wait(&self, deadline: Deadline, interruptible: Interruptible) -> Outcome {
        let outcome = self.terminated.wait(deadline, interruptible);
        if outcome == Outcome::Ready {
            self.terminated.add_permits(1); // For the next waiter.
        }
        outcome
    }
}

/// A task that has been counted, until its thread exists.
struct Entered<'a>(&'a Tasks);

impl Entered<'_> {
    /// Counts a task. Returns `None` if the executor has been shut down.
    fn new(tasks: &Tasks) -> Option<Entered<'_>> {
        let count = |word: usize| (word & SHUT_DOWN == 0).then_some(word + ONE_TASK);
        // Acquire: pairs with the Release in `shut_down`.
        let counted = tasks
            .word
            .fetch_update(Ordering::Acquire, Ordering::Acquire, count);
        counted.is_ok().then(|| Entered(tasks))
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A thread's place in the maps of its executor.
struct Membership {
    tasks: Arc<Tasks>,
    flag: Arc<Flag>,
}

impl Member for Membership {
    fn ended(&self) {
        let (key, shard) = self.tasks.place_of(&self.flag);
        let thread = locked(shard).remove(&key);
        drop(thread); // Not under the lock.
        self.tasks.leave();
    }
}

/// Whether a task has returned or been cancelled. The first of the two counts.
#[derive(Default)]
struct Flag(AtomicU8);

const RETURNED: u8 = 1;
const CANCELLED: u8 = 2;

impl Flag {
    /// Returns whether this call has set the flag.
    fn set(&self, to: u8) -> bool {
        // Relaxed: carries no other data; the handle of the thread brings the result.
        let swap = Ordering::Relaxed;
        self.0.compare_exchange(0, to, swap, swap).is_ok()
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CANCELLED // Relaxed: see `set`.
    }
}

/// The handle of a task of an [executor](ThreadPerTask): a [`JoinHandle`] by which the task can be
/// cancelled.
///
/// Dropping the handle does not affect the task: the task goes on, closing the executor waits for
/// it, and its result is dropped.
///
/// Async code can await it: see [`TaskFuture`].
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
///
/// let executor = ThreadPerTask::new();
/// let task = executor.submit(|| 6 * 7)?;
/// assert_eq!(task.join()?, 42);
/// # Ok::<(), pirn::executor::TaskError>(())
/// ```
#[must_use = "the task's result is lost; `let _ = …` says that this is meant"]
pub struct Task<T> {
    handle: Handle<T>,
    flag: Arc<Flag>,
}

type Handle<T> = JoinHandle<Result<T, TaskError>>;

/// Returns the result of a task whose thread has ended.
fn flat<T>(result: thread::Result<Result<T, TaskError>>) -> Result<T, TaskError> {
    // The closure catches the task's panics; a scheduler may have dropped the thread, though.
    result.unwrap_or_else(|payload| Err(TaskError::Panicked(Panic::new(payload))))
}

impl<T> Task<T> {
    /// Waits for the end of the task and returns its result.
    ///
    /// # Errors
    /// [`TaskError::Panicked`] if the task panicked. [`TaskError::Cancelled`] if it was cancelled;
    /// then this returns at once, even if the task still runs.
    ///
    /// # Panics
    /// If the task joins itself.
    pub fn join(self) -> Result<T, TaskError> {
        if self.is_cancelled() {
            return Err(TaskError::Cancelled);
        }
        flat(self.handle.join())
    }

    /// Waits as [`join`](Self::join) does, but for at most `timeout`.
    ///
    /// # Errors
    /// The task, if it has not ended by then. The inner errors are the errors of `join`.
    pub fn join_timeout(self, timeout: Duration) -> Result<Result<T, TaskError>, Task<T>> {
        self.try_join(|handle| handle.join_timeout(timeout))
    }

    /// Waits as [`join`](Self::join) does, but only until the waiting thread is
    /// [interrupted](Thread::interrupt).
    ///
    /// # Errors
    /// The task, if the waiting thread is or has been interrupted before the task has ended. The
    /// flag stays set, and the task goes on. The inner errors are the errors of `join`.
    pub fn join_interruptible(self) -> Result<Result<T, TaskError>, Task<T>> {
        self.try_join(JoinHandle::join_interruptible)
    }

    fn try_join<J>(self, join: J) -> Result<Result<T, TaskError>, Task<T>>
    where
        J: FnOnce(Handle<T>) -> Result<thread::Result<Result<T, TaskError>>, Handle<T>>,
    {
        if self.is_cancelled() {
            return Ok(Err(TaskError::Cancelled));
        }
        let Task { handle, flag } = self;
        match join(handle) {
            Ok(result) => Ok(flat(result)),
            Err(handle) => Err(Task { handle, flag }),
        }
    }

    /// Cancels the task: its result is [`TaskError::Cancelled`] from now on.
    ///
    /// A task that has not started never will. The thread of a running task is
    /// [interrupted](Thread::interrupt); the task has to react to that by ending, and closing the
    /// executor still waits for its end.
    ///
    /// Returns whether this call has cancelled the task: `false` if the task had returned or been
    /// cancelled before; then the call has no effect.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::{TaskError, ThreadPerTask};
    /// use pirn::thread;
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| thread::sleep_interruptible(Duration::from_secs(3600)))?;
    /// assert!(task.cancel());
    /// assert!(matches!(task.join(), Err(TaskError::Cancelled)));
    /// # Ok::<(), TaskError>(())
    /// ```
    pub fn cancel(&self) -> bool {
        let cancelled = self.flag.set(CANCELLED);
        if cancelled {
            self.handle.thread().interrupt();
        }
        cancelled
    }

    /// Returns whether the task has been cancelled or its thread has ended:
    /// [`join`](Self::join) would not block.
    pub fn is_finished(&self) -> bool {
        self.is_cancelled() || self.handle.is_finished()
    }

    /// Returns whether the task was [cancelled](Self::cancel).
    pub fn is_cancelled(&self) -> bool {
        self.flag.is_cancelled()
    }

    /// Returns the thread that runs the task.
    ///
    /// Interrupt this thread to ask the task to end without giving up its result.
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut task = f.debug_tuple("Task");
        task.field(self.thread());
        if self.is_cancelled() {
            task.field(&format_args!("cancelled"));
        }
        task.finish()
    }
}

impl<T> IntoFuture for Task<T> {
    type Output = Result<T, TaskError>;
    type IntoFuture = TaskFuture<T>;

    fn into_future(self) -> TaskFuture<T> {
        TaskFuture {
            is_cancelled: self.is_cancelled(),
            result: self.handle.into_future(),
        }
    }
}

/// Waits for a [`Task`] in async code. Made by `task.await`.
///
/// Dropping the future, like dropping the task, does not cancel the task.
///
/// # Examples
/// ```
/// use pirn::executor::{Task, TaskError};
///
/// async fn double(task: Task<u32>) -> Result<u32, TaskError> {
///     Ok(2 * task.await?)
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct TaskFuture<T> {
    /// Whether the task was cancelled. Does not change any more: the future has the only handle.
    is_cancelled: bool,
    result: JoinFuture<Result<T, TaskError>>,
}

impl<T> Future for TaskFuture<T> {
    type Output = Result<T, TaskError>;

    /// Polls for the result.
    ///
    /// # Panics
    /// If it is polled after it has returned its output.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.is_cancelled {
            return Poll::Ready(Err(TaskError::Cancelled));
        }
        Pin::new(&mut self.result).poll(context).map(flat)
    }
}

impl<T> fmt::Debug for TaskFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = self.result.thread();
        f.debug_tuple("TaskFuture").field(thread).finish()
    }
}

/// Why a task has no value.
///
/// # Examples
/// ```
/// use pirn::executor::{TaskError, ThreadPerTask};
///
/// let executor = ThreadPerTask::new();
/// let task = executor.submit(|| panic!("out of stock"))?;
/// match task.join() {
///     Err(TaskError::Panicked(panic)) => assert_eq!(panic.message(), Some("out of stock")),
///     other => unreachable!("{other:?}"),
/// }
/// # Ok::<(), TaskError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The task panicked.
    Panicked(Panic),
    /// The task was [cancelled](Task::cancel) before its end.
    Cancelled,
    /// The task was not submitted: the executor has been shut down.
    Shutdown,
    /// The task was not submitted: no thread could be created, for this reason.
    Spawn(io::Error),
    /// The thread that iterates over a [`Map`] was interrupted while it waited. Its flag is still
    /// set.
    Interrupted,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Panicked(panic) => write!(f, "the task {panic}"),
            TaskError::Cancelled => f.write_str("the task was cancelled before its end"),
            TaskError::Shutdown => {
                f.write_str("the executor has been shut down and takes no more tasks")
            }
            TaskError::Spawn(error) => {
                write!(f, "no thread could be created for the task: {error}")
            }
            TaskError::Interrupted => {
                f.write_str("the thread was interrupted while it waited for tasks")
            }
        }
    }
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TaskError::Panicked(panic) => Some(panic),
            TaskError::Spawn(error) => Some(error),
            TaskError::Interrupted => Some(&Interrupted),
            TaskError::Cancelled | TaskError::Shutdown => None,
        }
    }
}

/// Results in the order of the items. See [`ThreadPerTask::map`].
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
///
/// let executor = ThreadPerTask::new();
/// let mut squares = executor.map(1.., 4, |n: u64| n * n); // at most 4 ahead
/// assert_eq!(squares.next().unwrap()?, 1);
/// assert_eq!(squares.next().unwrap()?, 4);
/// # Ok::<(), pirn::executor::TaskError>(())
/// ```
#[must_use = "iterators are lazy: nothing starts before the first `next`"]
pub struct Map<'e, I, F, T> {
    executor: &'e ThreadPerTask,
    /// The call of `map`, on whose behalf threads are spawned.
    place: Place,
    /// `None` if there are no more items, or no more are wanted.
    items: Option<I>,
    limit: usize,
    f: Arc<F>,
    running: VecDeque<Task<T>>,
    /// The reason for which the last item that was taken could not be submitted.
    refused: Option<TaskError>,
}

impl<I, F, T> Map<'_, I, F, T> {
    /// Cancels all running tasks.
    fn cancel(&mut self) {
        self.items = None;
        self.refused = None;
        for task in self.running.drain(..) {
            task.cancel();
        }
    }
}

impl<I, F, T> Drop for Map<'_, I, F, T> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<I, F, T> Iterator for Map<'_, I, F, T>
where
    I: Iterator,
    I::Item: Send + 'static,
    F: Fn(I::Item) -> T + Send + Sync + 'static,
    T: Send + 'static,
{
    type Item = Result<T, TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.running.len() < self.limit
            && let Some(items) = &mut self.items
        {
            let Some(item) = items.next() else {
                self.items = None;
                break;
            };
            let f = Arc::clone(&self.f);
            match self.executor.submit_at(self.place, move || f(item)) {
                Ok(task) => self.running.push_back(task),
                Err(error) => {
                    self.items = None;
                    self.refused = Some(error);
                }
            }
        }
        let Some(first) = self.running.pop_front() else {
            return self.refused.take().map(Err);
        };
        match first.join_interruptible() {
            Ok(result) => Some(result),
            Err(first) => {
                self.running.push_front(first);
                self.cancel();
                Some(Err(TaskError::Interrupted))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (low, high) = self.items.as_ref().map_or((0, Some(0)), I::size_hint);
        let more = self.running.len() + usize::from(self.refused.is_some());
        // At least one, and not more for certain: an interrupt may end the iteration at any time.
        let high = high.and_then(|high| high.checked_add(more));
        (low.saturating_add(more).min(1), high)
    }
}

impl<I, F, T> FusedIterator for Map<'_, I, F, T> where Self: Iterator {}

impl<I, F, T> fmt::Debug for Map<'_, I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("running", &self.running.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
