//! Custom schedulers.

use super::Thread;
use core::fmt;
use pirn_rt::sched::{self, Runtime, counters};
use pirn_rt::vthread::{self, Dispatch, Ready};
use std::sync::Arc;

/// Decides where and when virtual threads run.
///
/// A thread built with [`Builder::scheduler`](crate::thread::Builder::scheduler) is handed to its
/// scheduler whenever it becomes runnable: when it is spawned, when it is woken, when it yields.
///
/// The caller of `schedule` is the thread that made the virtual thread runnable: a platform thread,
/// a carrier's own loop, or another virtual thread, in whose place its carrier then calls.
/// `schedule` should not block for long, and must not panic: that aborts the process.
///
/// # Examples
///
/// Running virtual threads on one given platform thread, the one that calls `recv`:
///
/// ```
/// use pirn::{Runnable, Scheduler, thread};
/// use std::sync::{Arc, Mutex, mpsc};
///
/// struct OnThisThread(Mutex<mpsc::Sender<Runnable>>);
///
/// impl Scheduler for OnThisThread {
///     fn schedule(&self, thread: Runnable) {
///         let _ = self.0.lock().unwrap().send(thread);
///     }
/// }
///
/// let (sender, receiver) = mpsc::channel();
/// let handle = thread::Builder::new()
///     .scheduler(Arc::new(OnThisThread(Mutex::new(sender))))
///     .spawn(|| {
///         thread::yield_now();
///         2 + 2
///     })
///     .unwrap();
/// while !handle.is_finished() {
///     receiver.recv().unwrap().run();
/// }
/// assert_eq!(handle.join().unwrap(), 4);
/// ```
pub trait Scheduler: Send + Sync + 'static {
    /// Accepts a thread that may run now: [`Runnable::run`] must be called for it sooner or later.
    fn schedule(&self, thread: Runnable);
}

/// The right, and the duty, to run a virtual thread until it parks.
///
/// Dropping it abandons the thread instead: a thread that has never run ends as if it had panicked;
/// one that has run stays parked for good, because its stack cannot be unwound from outside.
#[must_use = "a thread that is not run never goes on"]
pub struct Runnable(
    /// `None` once it has been run.
    Option<Ready>,
);

// SAFETY: `&Runnable` gives access to the handle only.
unsafe impl Sync for Runnable {}

impl Runnable {
    /// Mounts the thread on the calling platform thread, runs it until it parks, yields or ends,
    /// and returns.
    ///
    /// # Panics
    /// If it is called on a virtual thread, which cannot carry another.
    pub fn run(mut self) {
        assert!(
            vthread::current().is_none(),
            "Runnable::run was called on a virtual thread: only a platform thread can carry one"
        );
        if let Some(thread) = self.0.take() {
            // SAFETY: this is a platform thread.
            unsafe { sched::run_inline(thread) };
        }
    }

    /// Returns the thread.
    pub fn thread(&self) -> Thread {
        match &self.0 {
            Some(thread) => Thread::from_virtual(thread.core().to_ref()),
            None => unreachable!("`run` takes the thread with the `Runnable`"),
        }
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runnable").field(&self.thread()).finish()
    }
}

impl Drop for Runnable {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            if thread.core().slot().is_none() {
                counters::note(Runtime::of(thread.core()), |counters| &counters.dropped);
            }
            sched::abandon(thread);
        }
    }
}

/// Adapts a user's scheduler to the runtime.
pub(super) struct UsersScheduler(pub(super) Arc<dyn Scheduler>);

impl Dispatch for UsersScheduler {
    fn dispatch(&self, thread: Ready) {
        self.0.schedule(Runnable(Some(thread)));
    }
}
