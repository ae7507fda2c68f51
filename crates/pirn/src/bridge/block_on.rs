//! Running a future on the calling thread.

use crate::thread::Interrupted;
use crate::thread::drive::drive;
use core::pin::pin;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::{Awaited, Kind};
use pirn_rt::vthread::wait_word::Hearing;

/// What a thread that runs a future waits for.
const WAKER: Awaited = Awaited::new(Kind::Park, 0);

/// Runs a future to its end on the calling thread, and returns its output.
///
/// While the future is pending, a virtual thread is parked and a platform thread is blocked. The
/// waker may be used from any thread, at any time. Any future works as long as its waker is called
/// elsewhere: the types of an async runtime need that runtime's threads, and usually its context
/// (entered with `tokio::runtime::Handle::enter`, for example) when they are created.
///
/// An [interrupt](crate::thread::Thread::interrupt) does not end the wait; it does with
/// [`block_on_interruptible`]. The park permit is left alone. A `block_on` inside a future that is
/// being blocked on works; on an async runtime's own thread it keeps that thread from its other
/// tasks, as any blocking call does.
///
/// # Panics
/// If the future panics: the panic is passed on.
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
    match drive(pin!(future.into_future()), WAKER, Deadline::NEVER, None) {
        Ok(output) => output,
        Err(outcome) => unreachable!("a wait that can only be ended by a wake: {outcome:?}"),
    }
}

/// Runs a future on the calling thread to its end, or until it would wait while the thread is
/// [interrupted](crate::thread::Thread::interrupt).
///
/// On an interrupt the future is dropped before this returns, which is how async code is cancelled.
/// A future that finishes without waiting does so on an interrupted thread as well, so that its
/// output is not lost. This works on platform threads too. See [`block_on`] for the rest.
///
/// # Errors
/// [`Interrupted`]: the future was dropped. The flag stays set.
///
/// # Panics
/// If the future panics, also while it is dropped: the panic is passed on.
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
        WAKER,
        Deadline::NEVER,
        Some(Hearing::Always),
    )
    .map_err(|_| Interrupted)
}
