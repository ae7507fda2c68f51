//! A future for a virtual thread's result.
//!
//! The future registers its task's waker in the thread's join cell, and the ending thread wakes it,
//! on its own stack (`vthread/life.rs`). A waker in the cell cannot be inspected, because the
//! ending thread may be taking it. So each poll takes it back first, replaces it if the task has
//! another one by now, and registers it again:
//!
//! ```text
//!   registered   unregister              and then
//!   no           -                       make a waker, register it
//!   yes          true: it is ours        renew it, register it
//!   yes          false: it is woken      the thread has ended: Ready
//!
//!   register     true: it is the cell's                 Pending
//!                false: ours, the thread has ended      drop it; Ready
//! ```
//!
//! Between taking back and registering again no task would be woken. None needs to be: the poll
//! itself finds the end. A future that is dropped takes its waker back, too; if it cannot, the
//! waker is woken once without need, which wakers must allow.

use super::join::RawHandle;
use super::{JoinHandle, Result, Thread};
use crate::panic::Panic;
use core::fmt;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker, ready};
use pirn_rt::sys;
use pirn_rt::vthread::life::JoinWaiter;
use pirn_rt::vthread::{Core, ThreadRef};

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
/// The output is that of [`JoinHandle::join`]. When it is ready, the thread's thread-locals have
/// been destroyed.
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
    handle: RawHandle<T>,
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
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        ready!(Pin::new(&mut self.end).poll(context));
        match self.handle.take_result() {
            Some(result) => Poll::Ready(result),
            None => panic!("a `JoinFuture` was polled after it had given its output"),
        }
    }
}

impl<T> IntoFuture for JoinHandle<T> {
    type Output = Result<T>;
    type IntoFuture = JoinFuture<T>;

    /// Converts the handle for async code: `handle.await` returns what [`join`](JoinHandle::join)
    /// returns.
    fn into_future(self) -> JoinFuture<T> {
        JoinFuture {
            // SAFETY: the handle is in the same future, and is dropped after the end.
            end: unsafe { End::of(self.0.core().clone()) },
            handle: self.0,
        }
    }
}

impl<T> fmt::Debug for JoinFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinFuture").field(self.thread()).finish()
    }
}
