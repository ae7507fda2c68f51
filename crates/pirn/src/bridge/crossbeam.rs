//! An interruption as a channel that `crossbeam-channel` can select on.

use crate::thread::{OnInterrupt, on_interrupt};
use core::convert::Infallible;
use core::fmt;
use core::ops::Deref;
use crossbeam_channel::{Receiver, bounded};

/// Returns a receiver that becomes ready when the running thread is
/// [interrupted](crate::thread::Thread::interrupt), for `crossbeam_channel::select!`. It is ready
/// at once if the thread has been interrupted already.
///
/// An interrupt does not end a wait for a channel by itself. One more `select!` arm makes it do so,
/// on platform threads as well.
///
/// The receiver never gets a message: it becomes ready by being disconnected. So it stays ready,
/// even after the flag has been cleared; create another one for the next interrupt.
///
/// Needs the feature `crossbeam-channel`.
///
/// # Other channels
/// This is [`on_interrupt`] dropping the only sender of a channel. The same works with every
/// library that can wait for several of its channels at once.
/// ```
/// use pirn::thread;
/// use std::sync::mpsc;
///
/// let (sender, interrupted) = mpsc::channel::<()>();
/// let _guard = thread::on_interrupt(move || drop(sender));
/// # thread::current().interrupt();
/// assert!(interrupted.recv().is_err()); // as soon as this thread is interrupted
/// # thread::take_interrupt();
/// ```
///
/// # Examples
/// ```
/// use crossbeam_channel::{Receiver, select, unbounded};
/// use pirn::thread;
///
/// fn work(jobs: Receiver<u32>) -> u32 {
///     let interruption = pirn::interruption();
///     let mut sum = 0;
///     loop {
///         select! {
///             recv(jobs) -> job => match job {
///                 Ok(job) => sum += job,
///                 Err(_) => return sum,
///             },
///             recv(interruption) -> _ => return sum,
///         }
///     }
/// }
///
/// let (sender, receiver) = unbounded();
/// let worker = thread::spawn(|| work(receiver));
/// sender.send(42).unwrap();
/// while !sender.is_empty() {
///     thread::yield_now();
/// }
/// worker.thread().interrupt();
/// assert_eq!(worker.join().unwrap(), 42); // although the channel is still open
/// ```
pub fn interruption() -> Interruption {
    let (sender, receiver) = bounded(0);
    Interruption {
        receiver,
        _listening: on_interrupt(move || drop(sender)),
    }
}

/// The guard that [`interruption`] returns; it derefs to the [`Receiver`].
///
/// It belongs to the thread that made it, and cannot be sent to another thread. A clone of its
/// receiver can be sent, and becomes ready when this guard is dropped as well.
///
/// # Examples
/// ```
/// use crossbeam_channel::TryRecvError;
/// use pirn::Interruption;
///
/// let interruption: Interruption = pirn::interruption();
/// assert_eq!(interruption.try_recv(), Err(TryRecvError::Empty));
/// pirn::thread::current().interrupt();
/// assert_eq!(interruption.try_recv(), Err(TryRecvError::Disconnected));
/// ```
#[must_use = "the receiver tells of interrupts only as long as this exists"]
pub struct Interruption {
    receiver: Receiver<Infallible>,
    _listening: OnInterrupt,
}

impl Deref for Interruption {
    type Target = Receiver<Infallible>;

    fn deref(&self) -> &Receiver<Infallible> {
        &self.receiver
    }
}

impl AsRef<Receiver<Infallible>> for Interruption {
    fn as_ref(&self) -> &Receiver<Infallible> {
        self
    }
}

impl fmt::Debug for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interruption").finish_non_exhaustive()
    }
}
