//! Waiting for the ends of threads: of one, which gives its result, by a thread or by a task of
//! async code; and of all.

use super::Thread;
use super::block_on::drive;
use crate::panic::Panic;
use core::fmt;
use core::marker::PhantomData;
use core::pin::{Pin, pin};
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker, ready};
use pirn_rt::blocking::wait::{Outcome, Wait};
use pirn_rt::sched::ClosureBody;
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::sched::simulation;
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::join::{self, JoinWaiter};
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;
use pirn_rt::vthread::{self, Core, ThreadRef};
use std::io;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// The right to wait for a virtual thread's end and take its result.
///
/// Dropping the handle detaches the thread. Async code awaits it, as a
/// [`JoinFuture`](super::JoinFuture).
///
/// # Examples
/// ```
/// let handle = pirn::thread::spawn(|| panic!("oh no"));
/// let payload = handle.join().unwrap_err();
/// assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "oh no");
/// ```
pub struct JoinHandle<T> {
    thread: Thread,
    result: PhantomData<fn() -> T>,
}

// SAFETY: the result is moved to the owner of the handle, and the spawn required `T: Send`.
unsafe impl<T> Send for JoinHandle<T> {}
// SAFETY: `&JoinHandle` gives access to no `T`.
unsafe impl<T> Sync for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    pub(crate) fn new(thread: ThreadRef) -> JoinHandle<T> {
        JoinHandle {
            thread: Thread::from_virtual(thread),
            result: PhantomData,
        }
    }

    /// Waits for the thread to end and returns its result. The result is `Err` with the payload if
    /// the thread panicked.
    ///
    /// When this returns, the thread's thread-locals have been destroyed.
    ///
    /// # Errors
    /// The panic's payload.
    ///
    /// # Panics
    /// If a thread joins itself, as in `std`: it would wait for ever.
    pub fn join(mut self) -> super::Result<T> {
        let core = self.core();
        if !core.has_ended() && vthread::current().is_none() {
            pirn_rt::sched::help_join(core);
        }
        if !core.has_ended() {
            self.refuse_own();
            BlockedJoiner::wait_for(core);
        }
        match self.take_result() {
            Some(result) => result,
            None => resume_unwind(Box::new("a virtual thread ended without a result")),
        }
    }

    /// Waits as [`join`](Self::join) does, but for at most `timeout`.
    ///
    /// # Errors
    /// The handle, if the thread has not ended by then. (A panic of the thread is in the inner
    /// result.)
    ///
    /// # Panics
    /// If a thread joins itself.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// use std::time::Duration;
    ///
    /// let handle = thread::spawn(thread::park);
    /// let handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// handle.thread().unpark();
    /// assert!(handle.join_timeout(Duration::from_secs(3600)).unwrap().is_ok());
    /// ```
    pub fn join_timeout(self, timeout: Duration) -> Result<super::Result<T>, JoinHandle<T>> {
        self.join_until(Deadline::after(timeout), Interruptible::Never)
    }

    /// Waits as [`join`](Self::join) does, but only until the *waiting* thread is
    /// [interrupted](Thread::interrupt).
    ///
    /// # Errors
    /// The handle, if the waiting thread is interrupted before the other one has ended; at once, if
    /// it has been interrupted already. The flag stays set. A caller that has no use for the handle
    /// passes the interruption on with `.map_err(|_handle| Interrupted)?`, which detaches the
    /// thread.
    ///
    /// # Panics
    /// If a thread joins itself.
    ///
    /// # Examples
    /// An interrupt that is passed on to the worker:
    /// ```
    /// use pirn::thread;
    ///
    /// let outer = thread::spawn(|| {
    ///     let inner = thread::spawn(thread::park_interruptible);
    ///     match inner.join_interruptible() {
    ///         Ok(result) => result.unwrap(),
    ///         Err(inner) => {
    ///             inner.thread().interrupt();
    ///             inner.join().unwrap()
    ///         }
    ///     }
    /// });
    /// outer.thread().interrupt();
    /// assert_eq!(outer.join().unwrap(), Err(thread::Interrupted));
    /// ```
    pub fn join_interruptible(self) -> Result<super::Result<T>, JoinHandle<T>> {
        self.join_until(Deadline::NEVER, Interruptible::Always)
    }

    fn join_until(
        self,
        deadline: Deadline,
        interruptible: Interruptible,
    ) -> Result<super::Result<T>, JoinHandle<T>> {
        match self.has_ended_by(deadline, interruptible) {
            true => Ok(self.join()),
            false => Err(self),
        }
    }

    /// Returns the thread.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Returns whether the thread has ended: [`join`](Self::join) would not block.
    pub fn is_finished(&self) -> bool {
        self.core().has_ended()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinHandle").field(self.thread()).finish()
    }
}

impl<T> JoinHandle<T> {
    /// Returns the virtual thread itself.
    pub(crate) fn core(&self) -> &ThreadRef {
        match self.thread.as_virtual() {
            Some(thread) => thread,
            None => unreachable!("a join handle of a platform thread"),
        }
    }

    /// Takes the result of a thread that has ended, unless it has been taken.
    pub(crate) fn take_result(&mut self) -> Option<super::Result<T>> {
        simulation::note_join(self.core());
        // SAFETY: the thread has ended, and this is its only handle, borrowed mutably.
        self.is_finished()
            .then(|| unsafe { ClosureBody::<T>::take_result(self.core()) })
            .flatten()
    }

    /// Panics with the text of `std` if this is the running thread's own handle.
    fn refuse_own(&self) {
        let own = vthread::current().is_some_and(|core| core.as_ptr() == self.core().as_ptr());
        assert!(
            !own,
            "failed to join thread: {}",
            io::Error::from_raw_os_error(libc::EDEADLK)
        );
    }

    /// Waits for the end of the thread until a deadline, or an interrupt as `interruptible` says.
    /// Returns whether the thread has ended.
    ///
    /// Waits by a waker, as a task does, because a [`Wait`] could not be given up safely. Does not
    /// run the thread inline: while the platform thread carries one, no deadline and no interrupt
    /// ends its wait.
    pub(super) fn has_ended_by(&self, deadline: Deadline, interruptible: Interruptible) -> bool {
        if self.is_finished() {
            return true;
        }
        self.refuse_own();
        // SAFETY: the handle is ours, and `end` is dropped before the handle is used again: all
        // other functions that register a waiter consume the handle.
        let end = unsafe { End::of(self.core().clone()) };
        drive(pin!(end), awaited_end(self.core()), deadline, interruptible).is_ok()
    }
}

/// Returns the wait for the end of a thread.
fn awaited_end(core: &Core) -> WaitReason {
    WaitReason::new(Kind::Join, core.id())
}

/// A joiner that waits without a limit. It is on its own stack until the ending thread has claimed
/// its wait.
#[repr(C)]
struct BlockedJoiner {
    waiter: JoinWaiter,
    wait: Wait,
}

impl BlockedJoiner {
    /// Waits for the end of `core`, whose only handle the caller has.
    #[inline]
    fn wait_for(core: &Core) {
        let joiner = BlockedJoiner {
            waiter: JoinWaiter::new(Self::ended),
            wait: Wait::new(awaited_end(core)),
        };
        // SAFETY: the caller has the handle; `block` returns after `ended` has claimed the wait,
        // which is its last use of the joiner.
        if unsafe { core.register(NonNull::from(&joiner).cast()) } {
            joiner.wait.block();
        }
    }

    /// # Safety
    /// `waiter` is the start of a [`BlockedJoiner`] that was registered.
    unsafe fn ended(waiter: NonNull<JoinWaiter>, _: &Core) {
        // SAFETY: the caller's contract; the joiner stays in place until it is claimed.
        let wakeup = unsafe { waiter.cast::<Self>().as_ref() }
            .wait
            .claim(Outcome::Ready);
        if let Some(wakeup) = wakeup {
            wakeup.perform();
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        join::detach(self.core());
    }
}

// A future registers its task's waker in the thread's join cell, and the ending thread wakes it, on
// its own stack (`pirn-rt/sched/life.rs`). A waker in the cell cannot be inspected, because the
// ending thread may be taking it. So each poll takes it back first, replaces it if the task has
// another one by now, and registers it again:
//
// ```text
//   registered   unregister              and then
//   no           -                       make a waker, register it
//   yes          true: it is ours        renew it, register it
//   yes          false: it is woken      the thread has ended: Ready
//
//   register     true: it is the cell's                 Pending
//                false: ours, the thread has ended      drop it; Ready
// ```
//
// Between taking back and registering again no task would be woken. None needs to be: the poll
// itself finds the end. A future that is dropped takes its waker back, too; if it cannot, the waker
// is woken once without need, which wakers must allow.

/// Polls for the end of a virtual thread. At most one may be polled per thread, by the owner of its
/// handle.
pub(super) struct End {
    thread: ThreadRef,
    /// The task in the join cell.
    registered: Option<Registered>,
}

impl End {
    /// # Safety
    /// The caller has the only handle of `thread`, and keeps it for longer than this; nothing else
    /// is registered meanwhile.
    pub(super) unsafe fn of(thread: ThreadRef) -> End {
        End {
            thread,
            registered: None,
        }
    }

    /// Takes the task out of the cell. Returns `None` if there was none, or if the ending thread
    /// has it.
    fn take_back(&mut self) -> Option<Box<WaitingTask>> {
        let Registered(task) = self.registered.take()?;
        let taken = self.thread.unregister(task.cast());
        // SAFETY: from `poll`; it has just been taken out, so no other reference to it exists.
        taken.then(|| unsafe { Box::from_raw(task.as_ptr()) })
    }
}

impl Future for End {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let known = self.take_back();
        if self.thread.has_ended() {
            return Poll::Ready(());
        }
        let task = match known {
            Some(mut task) => {
                task.waker.clone_from(context.waker()); // Does nothing if they wake the same task.
                task
            }
            None => Box::new(WaitingTask::new(context.waker())),
        };
        let task = NonNull::from(Box::leak(task));
        // SAFETY: the contract of `of`; the box stays until it is called or taken back.
        if unsafe { self.thread.register(task.cast()) } {
            self.registered = Some(Registered(task));
            Poll::Pending
        } else {
            // SAFETY: from the box above; it was not put in, so no other reference to it exists.
            drop(unsafe { Box::from_raw(task.as_ptr()) });
            Poll::Ready(())
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        drop(self.take_back());
    }
}

/// A task in a join cell: a leaked box, which belongs to the ending thread unless it is taken back.
struct Registered(NonNull<WaitingTask>);

// SAFETY: wakers are Send.
unsafe impl Send for Registered {}
// SAFETY: `&Registered` gives access to nothing.
unsafe impl Sync for Registered {}

/// A task to be woken by the end of a thread.
#[repr(C)]
struct WaitingTask {
    waiter: JoinWaiter,
    waker: Waker,
}

impl WaitingTask {
    fn new(waker: &Waker) -> WaitingTask {
        WaitingTask {
            waiter: JoinWaiter::new(WaitingTask::ended),
            waker: waker.clone(),
        }
    }

    /// Wakes the task, which runs user code and may block.
    ///
    /// # Safety
    /// `waiter` is the start of a boxed [`WaitingTask`] that the ending thread has taken out of its
    /// cell.
    unsafe fn ended(waiter: NonNull<JoinWaiter>, _: &Core) {
        // SAFETY: the caller's contract: the task is ours now.
        let task = unsafe { Box::from_raw(waiter.cast::<WaitingTask>().as_ptr()) };
        if Panic::catch(|| task.waker.wake()).is_err() {
            sys::fatal(&[
                "a waker panicked, and with it the end of a virtual thread that a task awaits is \
                 lost",
            ]);
        }
    }
}

/// A future for the result of a virtual thread; [`JoinHandle`] converts to it.
///
/// Any async runtime can await it, on all its threads, and so can [`block_on`](crate::block_on).
/// The ending virtual thread wakes the task.
///
/// The output is what [`JoinHandle::join`] returns. When it is ready, the thread's thread-locals
/// have been destroyed.
///
/// Dropping the future detaches the thread, which goes on: cancelling async code does not stop a
/// thread. To stop the thread, [interrupt](Thread::interrupt) [`thread()`](Self::thread).
///
/// # Panics
/// If it is polled after it has returned its output.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let computed = thread::spawn(|| 6 * 7);
/// let failed = thread::spawn(|| panic!("oh no"));
/// pirn::block_on(async {
///     assert_eq!(computed.await.unwrap(), 42);
///     let payload = failed.await.unwrap_err();
///     assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "oh no");
/// });
/// ```
#[must_use = "a future does nothing unless it is awaited; dropping this one detaches the thread"]
pub struct JoinFuture<T> {
    /// Before the handle, because the waker must be out of the cell when the handle is dropped.
    end: End,
    handle: JoinHandle<T>,
}

impl<T> JoinFuture<T> {
    /// Returns the thread.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// use std::future::IntoFuture;
    ///
    /// let future = thread::spawn(thread::park_interruptible).into_future();
    /// future.thread().interrupt();
    /// assert!(pirn::block_on(future).unwrap().is_err());
    /// ```
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }
}

impl<T> Future for JoinFuture<T> {
    type Output = super::Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<super::Result<T>> {
        ready!(Pin::new(&mut self.end).poll(context));
        match self.handle.take_result() {
            Some(result) => Poll::Ready(result),
            None => panic!("a `JoinFuture` was polled after it had given its output"),
        }
    }
}

impl<T> IntoFuture for JoinHandle<T> {
    type Output = super::Result<T>;
    type IntoFuture = JoinFuture<T>;

    /// Converts the handle for async code: `handle.await` returns what [`join`](JoinHandle::join)
    /// returns.
    fn into_future(self) -> JoinFuture<T> {
        JoinFuture {
            // SAFETY: the handle is in the same future, and is dropped after the end.
            end: unsafe { End::of(self.core().clone()) },
            handle: self,
        }
    }
}

impl<T> fmt::Debug for JoinFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinFuture").field(self.thread()).finish()
    }
}

/// Waits until all other virtual threads have ended, at most for `timeout`, and returns whether
/// they have.
///
/// For the end of a program: when `main` returns, the process ends, and with it the threads that
/// still run. All virtual threads of the process count but the calling one: threads of libraries,
/// too, and one that calls this function itself. An interrupt does not end the wait.
///
/// An end is noticed up to 5 ms later. That way the threads pay nothing for it.
///
/// # Examples
/// ```
/// use pirn::thread;
/// use std::time::Duration;
///
/// for i in 0..10 {
///     thread::spawn(move || thread::sleep(Duration::from_millis(i))); // detached
/// }
/// assert!(thread::quiesce(Duration::from_secs(60)));
/// ```
pub fn quiesce(timeout: Duration) -> bool {
    const LONGEST_PAUSE: Duration = Duration::from_millis(5);
    let Some(runtime) = runtime::get() else {
        return true;
    };
    let deadline = Deadline::after(timeout);
    let own = u64::from(vthread::current().is_some());
    let mut pause = Duration::from_micros(50);
    while alive(runtime) > own {
        if deadline.has_passed() {
            return false;
        }
        let left = deadline.instant().saturating_duration_since(Instant::now());
        super::sleep(pause.min(left).max(Duration::from_micros(1)));
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    true
}

/// Returns the number of threads that have been started and have not ended.
fn alive(runtime: &Runtime) -> u64 {
    // The ends first: a thread is counted as started before it is counted as ended.
    let ended = runtime.sum(|counters| &counters.ended);
    let dropped = runtime.sum(|counters| &counters.dropped);
    let started = runtime.sum(|counters| &counters.started);
    started.saturating_sub(ended + dropped)
}
