//! Generators: iterators whose items are made ahead, by threads of their own.
//!
//! ```text
//!   producers                        one lock                       consumer
//!   give --an item each--> [ queue | room | who waits ] --all--> its own batch --> next
//!                               <-- room, for half as many as may be ahead --
//! ```
//!
//! Producers put items one by one, since the consumer is to have each as soon as it is there. The
//! consumer takes all at once, and makes room when it has used half of what may be ahead: so it has
//! the lock, and wakes a thread, twice per `ahead` items, and the producers still work ahead of it.
//!
//! Rejected: items that a producer keeps until it has several. The consumer would wait for items
//! that are there, behind a producer that waits for something else.

mod exchange;
mod scoped;

pub use exchange::Out;
pub use scoped::{ScopedGenerator, generate_scoped};

use crate::error::discard;
use crate::identity::current_limit;
use crate::poison::locked;
use crate::time::{Late, Limit};
use core::fmt;
use core::iter::FusedIterator;
use core::time::Duration;
use exchange::{Exchange, Taken};
use pirn::thread::{Interrupted, Panic, Thread};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex};

/// Makes an iterator whose items are made by `produce`, on a virtual thread of its own, which is at
/// most `ahead` items ahead (at least 1).
///
/// `produce` hands each item over by [`Out::give`], which parks while there is no room. An error
/// that it returns is the last item. Its panic comes out of [`next`](Iterator::next), after the
/// items that were given before.
///
/// When the generator is dropped, early or not, the producer is
/// [interrupted](pirn::thread::Thread::interrupt): `give`, and the other waits that an interrupt
/// ends, fail, and the producer is left by `?`. [`Generator::stop`] waits for that, too.
///
/// # Panics
/// If no thread can be had.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::io;
///
/// let lines = actor::generate(8, |out| {
///     for line in io::read_to_string(&b"warp\nweft\nweave"[..])?.lines() {
///         out.give(line.to_string())?;
///     }
///     Ok::<_, io::Error>(())
/// });
/// for line in lines {
///     if line? == "weft" {
///         break; // the producer ends
///     }
/// }
/// # Ok::<(), io::Error>(())
/// ```
/// One that has no errors of its own and does not end by itself:
/// ```
/// use pirn::thread::Interrupted;
///
/// let squares = pirn_actor::generate::<_, Interrupted, _>(100, |out| {
///     for n in 0u64.. {
///         out.give(n * n)?;
///     }
///     Ok(())
/// });
/// let sum: u64 = squares.take(5).flatten().sum();
/// assert_eq!(sum, 30);
/// ```
#[track_caller]
pub fn generate<T, E, F>(ahead: usize, produce: F) -> Generator<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
    F: FnOnce(&mut Out<T>) -> Result<(), E> + Send + 'static,
{
    generate_parallel(ahead, [produce])
}

/// Makes an iterator whose items are made by several producers at the same time, each on a virtual
/// thread of its own. Together they are at most `ahead` items ahead (at least 1).
///
/// The items of one producer come in order; there is no order between producers. The iteration ends
/// when all have ended. The first error or panic ends it, too: what was given before comes first,
/// and the other producers are interrupted. Otherwise this is [`generate`].
///
/// # Panics
/// If no thread can be had.
///
/// # Examples
/// ```
/// use pirn::thread::Interrupted;
/// use pirn_actor::{self as actor, Out};
///
/// let producers = (0..3).map(|producer| {
///     move |out: &mut Out<u32>| (0..10).try_for_each(|n| out.give(10 * producer + n))
/// });
/// let mut numbers = actor::generate_parallel(5, producers).collect::<Result<Vec<_>, _>>()?;
/// numbers.sort();
/// assert!(numbers.into_iter().eq(0..30));
/// # Ok::<(), Interrupted>(())
/// ```
#[track_caller]
pub fn generate_parallel<T, E, F>(
    ahead: usize,
    producers: impl IntoIterator<Item = F>,
) -> Generator<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
    F: FnOnce(&mut Out<T>) -> Result<(), E> + Send + 'static,
{
    let mut generator = Generator::new(ahead);
    for produce in producers {
        let thread = pirn::thread::Builder::new().spawn(generator.producer(produce));
        let thread = thread.expect("a thread for a producer");
        generator.producers.push(thread.thread().clone());
    }
    generator.exchange.all_started();
    generator
}

/// An iterator whose items are made ahead: see [`generate`].
///
/// Each item is a `Result`. If the thread that waits for an item is
/// [interrupted](pirn::thread::Thread::interrupt), or the [deadline](crate::deadline()) passes of
/// the request that it handles, an interrupt is the last item, and the producers are interrupted in
/// turn.
///
/// # Examples
/// ```
/// use pirn::thread::Interrupted;
/// use pirn_actor::{self as actor, Generator};
///
/// fn odd_numbers() -> Generator<u32, Interrupted> {
///     actor::generate(8, |out| (1..).step_by(2).try_for_each(|n| out.give(n)))
/// }
/// let three = odd_numbers().take(3).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(three, [1, 3, 5]);
/// # Ok::<(), Interrupted>(())
/// ```
#[must_use = "a generator that is dropped interrupts its producers"]
pub struct Generator<T, E> {
    exchange: Arc<Exchange<T>>,
    producers: Vec<Thread>,
    failure: Arc<Mutex<Option<Failed<E>>>>,
    /// What the consumer has taken over and not returned, in order.
    batch: VecDeque<T>,
    /// The number of items that were returned, and for which no room has been made yet.
    used: usize,
    /// Room is made for as many items at a time.
    step: usize,
    is_over: bool,
}

/// Why a producer ended the iteration.
enum Failed<E> {
    Error(E),
    Panic(Panic),
}

/// No item was there in time.
///
/// # Examples
/// See [`Generator::next_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no item in time")
    }
}

impl Error for TimedOut {}

impl<T, E> Generator<T, E> {
    fn new(ahead: usize) -> Generator<T, E> {
        let ahead = ahead.max(1);
        Generator {
            exchange: Arc::new(Exchange::new(ahead)),
            producers: Vec::new(),
            failure: Arc::default(),
            batch: VecDeque::new(),
            used: 0,
            step: ahead.div_ceil(2),
            is_over: false,
        }
    }

    /// Returns what a producer's thread does.
    fn producer<F>(&self, produce: F) -> impl FnOnce() + use<T, E, F>
    where
        F: FnOnce(&mut Out<T>) -> Result<(), E>,
    {
        let (mut out, first) = (
            Out::new(Arc::clone(&self.exchange)),
            Arc::clone(&self.failure),
        );
        move || {
            let failure = match Panic::catch(|| produce(&mut out)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => Failed::Error(error),
                Err(panic) => Failed::Panic(panic),
            };
            // A later one follows from the first, which ends the others.
            let later = match &mut *locked(&first) {
                Some(_) => Some(failure),
                none => none.replace(failure),
            };
            out.close();
            discard(later);
        }
    }

    /// Has the producers end, and waits until they have. Dropping the generator does not wait.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::Interrupted;
    /// use std::sync::Arc;
    ///
    /// let held = Arc::new(());
    /// let holds = Arc::clone(&held);
    /// let ones = pirn_actor::generate::<_, Interrupted, _>(8, move |out| loop {
    ///     out.give(Arc::clone(&holds))?;
    /// });
    /// ones.stop();
    /// assert_eq!(Arc::strong_count(&held), 1);
    /// ```
    pub fn stop(mut self) {
        self.end();
        self.exchange.wait_for_end();
    }

    /// Ends the iteration, and has the producers end.
    fn end(&mut self) {
        self.is_over = true;
        self.exchange.close();
        self.producers.iter().for_each(Thread::interrupt);
        self.producers.clear();
        // The program's, which may panic: after the rest has been done, and without locks.
        drop(self.exchange.take_rest());
        self.batch.clear();
    }

    /// Says that an item is used, and makes room now and then.
    fn used_one(&mut self) {
        self.used += 1;
        if self.used == self.step {
            self.exchange.make_room(self.used);
            self.used = 0;
        }
    }
}

impl<T, E: From<Interrupted>> Generator<T, E> {
    /// Returns the next item, as [`next`](Iterator::next) does, and waits for it for as long as
    /// `timeout`.
    ///
    /// # Errors
    /// No item was there in time. It may be there later.
    ///
    /// # Panics
    /// As `next`.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::TimedOut;
    /// use std::time::Duration;
    ///
    /// let (permit, permits) = std::sync::mpsc::channel();
    /// let mut numbers = pirn_actor::generate::<_, std::io::Error, _>(1, move |out| {
    ///     permits.iter().try_for_each(|n| Ok(out.give(n)?))
    /// });
    /// assert!(matches!(numbers.next_timeout(Duration::from_millis(1)), Err(TimedOut)));
    /// permit.send(7).unwrap();
    /// drop(permit);
    /// assert!(matches!(numbers.next_timeout(Duration::from_secs(60)), Ok(Some(Ok(7)))));
    /// assert!(matches!(numbers.next_timeout(Duration::from_secs(60)), Ok(None)));
    /// ```
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Result<T, E>>, TimedOut> {
        self.next_within(|| Limit::after(timeout).min(current_limit()))
    }

    fn next_within(
        &mut self,
        limit: impl FnOnce() -> Limit,
    ) -> Result<Option<Result<T, E>>, TimedOut> {
        if let Some(item) = self.batch.pop_front() {
            self.used_one();
            return Ok(Some(Ok(item)));
        }
        if self.is_over {
            return Ok(None);
        }
        let used = core::mem::take(&mut self.used);
        let last = match self.exchange.take(&mut self.batch, used, limit()) {
            Taken::Items => {
                let item = self.batch.pop_front().expect("what is taken is not empty");
                self.used_one();
                return Ok(Some(Ok(item)));
            }
            Taken::Late(Late::TimedOut) => return Err(TimedOut),
            Taken::Late(Late::Interrupted) => Some(Err(Interrupted.into())),
            Taken::End => {
                let failure = locked(&self.failure).take();
                match failure {
                    None => None,
                    Some(Failed::Error(error)) => Some(Err(error)),
                    Some(Failed::Panic(panic)) => {
                        self.end();
                        panic.resume()
                    }
                }
            }
        };
        self.end();
        Ok(last)
    }
}

impl<T, E: From<Interrupted>> Iterator for Generator<T, E> {
    type Item = Result<T, E>;

    /// Waits for the next item.
    ///
    /// # Panics
    /// If a producer has panicked: with its panic, after the items that were given before.
    fn next(&mut self) -> Option<Result<T, E>> {
        self.next_within(current_limit).unwrap_or_else(|TimedOut| {
            // The asker of what this is for does not wait any more.
            self.end();
            Some(Err(Interrupted.into()))
        })
    }
}

impl<T, E: From<Interrupted>> FusedIterator for Generator<T, E> {}

impl<T, E> Drop for Generator<T, E> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T, E> fmt::Debug for Generator<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator")
            .field("taken", &self.batch.len())
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}
