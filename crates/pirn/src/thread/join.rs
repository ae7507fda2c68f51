//! Waiting for a thread's end and taking its result.

use super::Thread;
use super::drive::drive;
use super::join_future::End;
use core::fmt;
use core::marker::PhantomData;
use core::pin::pin;
use core::ptr::NonNull;
use pirn_rt::blocking::wait::{Outcome, Wait};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::{Awaited, Kind};
use pirn_rt::vthread::life::{self, JoinWaiter};
use pirn_rt::vthread::wait_word::Hearing;
use pirn_rt::vthread::{self, ClosureBody, Core, ThreadRef};
use std::io;
use std::panic::resume_unwind;
use std::time::Duration;

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
pub struct JoinHandle<T>(pub(crate) RawHandle<T>);

impl<T> JoinHandle<T> {
    pub(crate) fn new(thread: ThreadRef) -> JoinHandle<T> {
        JoinHandle(RawHandle::new(thread))
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
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    ///
    /// assert_eq!(thread::spawn(|| 6 * 7).join().unwrap(), 42);
    /// assert!(thread::spawn(|| panic!("oh no")).join().is_err());
    /// ```
    pub fn join(self) -> super::Result<T> {
        self.0.join()
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
        self.join_until(Deadline::after(timeout), None)
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
        self.join_until(Deadline::NEVER, Some(Hearing::Always))
    }

    fn join_until(
        self,
        deadline: Deadline,
        hearing: Option<Hearing>,
    ) -> Result<super::Result<T>, JoinHandle<T>> {
        match self.0.has_ended_by(deadline, hearing) {
            true => Ok(self.join()),
            false => Err(self),
        }
    }

    /// Returns the thread.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    ///
    /// let handle = thread::spawn(thread::park);
    /// handle.thread().unpark();
    /// handle.join().unwrap();
    /// ```
    pub fn thread(&self) -> &Thread {
        self.0.thread()
    }

    /// Returns whether the thread has ended: [`join`](Self::join) would not block.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// use std::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::channel::<()>();
    /// let handle = thread::spawn(move || receiver.recv().is_err());
    /// assert!(!handle.is_finished());
    /// drop(sender);
    /// while !handle.is_finished() {
    ///     thread::yield_now(); // or do something else
    /// }
    /// assert!(handle.join().unwrap());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinHandle").field(self.thread()).finish()
    }
}

/// Returns the wait for the end of a thread.
fn awaited_end(core: &Core) -> Awaited {
    Awaited::new(Kind::Join, core.id())
}

/// The common part of the handles.
pub(crate) struct RawHandle<T> {
    thread: Thread,
    result: PhantomData<fn() -> T>,
}

// SAFETY: the result is moved to the owner of the handle, and the spawn required `T: Send`.
unsafe impl<T> Send for RawHandle<T> {}
// SAFETY: `&RawHandle` gives access to no `T`.
unsafe impl<T> Sync for RawHandle<T> {}

impl<T> RawHandle<T> {
    pub(crate) fn new(thread: ThreadRef) -> RawHandle<T> {
        RawHandle {
            thread: Thread::from_virtual(thread),
            result: PhantomData,
        }
    }

    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Returns the virtual thread itself.
    pub(crate) fn core(&self) -> &ThreadRef {
        match self.thread.as_virtual() {
            Some(thread) => thread,
            None => unreachable!("a join handle of a platform thread"),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.core().has_ended()
    }

    /// Takes the result of a thread that has ended, unless it has been taken.
    pub(crate) fn take_result(&mut self) -> Option<super::Result<T>> {
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

    /// Waits for the end of the thread until a deadline, or, if `hearing` allows it, an interrupt.
    /// Returns whether the thread has ended.
    ///
    /// Waits by a waker, as a task does, because a [`Wait`] could not be given up safely. Does not
    /// lend the platform thread: while it carries a thread, no deadline and no interrupt ends its
    /// wait.
    pub(super) fn has_ended_by(&self, deadline: Deadline, hearing: Option<Hearing>) -> bool {
        if self.is_finished() {
            return true;
        }
        self.refuse_own();
        // SAFETY: the handle is ours, and `end` is dropped before the handle is used again: all
        // other functions that register a waiter consume the handle.
        let end = unsafe { End::of(self.core().clone()) };
        drive(pin!(end), awaited_end(self.core()), deadline, hearing).is_ok()
    }

    pub(crate) fn join(mut self) -> super::Result<T> {
        let core = self.core();
        if !core.has_ended() && vthread::current().is_none() {
            pirn_rt::sched::lend(core);
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

impl<T> Drop for RawHandle<T> {
    fn drop(&mut self) {
        life::detach(self.core());
    }
}
