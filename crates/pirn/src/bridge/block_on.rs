//! Running a future on the calling thread.
//!
//! Between two polls the thread waits for a signal of this one call: not for its park permit, which
//! belongs to the code around, and which an interrupt gives as well. A wake that comes during a
//! poll stays in the signal for the wait after it; one that comes after the call finds a signal
//! that nobody waits for.

use crate::blocking::signal::Signal;
use crate::blocking::wait::Outcome;
use crate::thread::{Interrupted, yield_now};
use crate::vthread;
use crate::vthread::wait_word::Hearing;
use core::future::IntoFuture;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

/// Runs a future to its end on the calling thread, and returns what it gives.
///
/// While the future is pending, a virtual thread is parked and a platform thread blocked. The waker
/// may be used from any thread, at any time. Any future will do, as long as whatever wakes it runs
/// elsewhere: the types of an async runtime need that runtime's threads, and usually its context
/// (as `tokio::runtime::Handle::enter` gives) where they are made.
///
/// The wait does not hear [interrupts](crate::thread::Thread::interrupt):
/// [`block_on_interruptible`] does. It leaves the park permit alone. A `block_on` in a future that
/// is being blocked on works; one on an async runtime's own threads keeps that thread from its
/// other tasks, as anything does that blocks.
///
/// # Panics
/// When the future panics: the panic goes through.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let answer = thread::spawn(|| {
///     let weft = thread::spawn(|| 40);
///     pirn::block_on(async { weft.await.unwrap() + 2 })
/// });
/// assert_eq!(answer.join().unwrap(), 42);
/// ```
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    match drive(pin!(future.into_future()), None, None) {
        Ok(output) => output,
        Err(outcome) => unreachable!("a wait that can only be ended by a wake: {outcome:?}"),
    }
}

/// Runs a future on the calling thread to its end, or until it would wait while the thread is
/// [interrupted](crate::thread::Thread::interrupt).
///
/// Then the future is dropped, which is how async code is cancelled, before this returns. A future
/// that gets to its end without waiting does so on an interrupted thread as well, so that what is
/// there is not lost. On platform threads as well. See [`block_on`] for the rest.
///
/// # Errors
/// [`Interrupted`]: the future was dropped. The flag stays set.
///
/// # Panics
/// When the future panics, also while it is dropped: the panic goes through.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
///
/// let waiting = thread::spawn(|| pirn::block_on_interruptible(std::future::pending::<()>()));
/// waiting.thread().interrupt();
/// assert_eq!(waiting.join().unwrap(), Err(Interrupted));
///
/// thread::current().interrupt();
/// assert_eq!(pirn::block_on_interruptible(async { 42 }), Ok(42));
/// # thread::interrupted();
/// ```
pub fn block_on_interruptible<F: IntoFuture>(future: F) -> Result<F::Output, Interrupted> {
    drive(pin!(future.into_future()), None, Some(Hearing::Always)).map_err(|_| Interrupted)
}

/// Polls a future until it is ready, or until the wait between two polls ends otherwise than by a
/// wake: at the deadline (monotonic nanoseconds), or by an interruption, if that is heard.
pub(crate) fn drive<F: Future + ?Sized>(
    mut future: Pin<&mut F>,
    deadline: Option<u64>,
    hearing: Option<Hearing>,
) -> Result<F::Output, Outcome> {
    let alarm = Arc::new(Alarm {
        signal: Signal::new(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        match alarm.wait(deadline, hearing) {
            Outcome::Ready => {}
            other => return Err(other),
        }
    }
}

/// What the waker of one call wakes: the wakers share it, so a late one finds it still there.
struct Alarm {
    signal: Signal,
    /// Whether there has been a wake since the last wait: only a hint to yield.
    woken: AtomicBool,
}

impl Alarm {
    fn wait(&self, deadline: Option<u64>, hearing: Option<Hearing>) -> Outcome {
        // Relaxed: a hint, and certain for the wakes that it is for, this thread's own.
        if self.woken.load(Ordering::Relaxed) && vthread::current().is_some() {
            // Woken during the poll. If the future did that itself, it wants others to run, and
            // what it waits for may be done by a virtual thread that needs this carrier.
            yield_now();
        }
        let outcome = self.signal.wait(deadline, hearing);
        self.woken.store(false, Ordering::Relaxed); // Relaxed: as above.
        outcome
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed); // Relaxed: see `wait`.
        self.signal.give();
    }
}
