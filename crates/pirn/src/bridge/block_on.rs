//! Running a future on the calling thread.

use crate::thread::Interrupted;
use crate::thread::drive::drive;
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;
use core::pin::pin;

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
    match drive(pin!(future.into_future()), Deadline::NEVER, None) {
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
/// # thread::take_interrupt();
/// ```
pub fn block_on_interruptible<F: IntoFuture>(future: F) -> Result<F::Output, Interrupted> {
    drive(
        pin!(future.into_future()),
        Deadline::NEVER,
        Some(Hearing::Always),
    )
    .map_err(|_| Interrupted)
}
