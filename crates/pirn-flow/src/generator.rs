//! Generators: iterators whose items are made ahead, by threads of their own.
//!
//! ```text
//!   producers                        one lock                       consumer
//!   give --an item each--> [ queue | room | lines ] --up to half--> its own batch --> next
//!                                 <-- room, for the batch before --
//! ```
//!
//! Producers put items one by one, so that the consumer gets each as soon as it is made. The
//! consumer takes up to half of `ahead` at once, and makes room for these when it comes for more.
//! So it takes the lock, and wakes a thread, twice per `ahead` items, and the producers can still
//! work ahead of it.
//!
//! Rejected: producers that collect several items. The consumer would wait for items that exist,
//! behind a producer that waits for something else.

use crate::wait::{Late, Line, limit, locked, wait};
use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::time::Duration;
use pirn::scope;
use pirn::thread::{Builder, Interrupted, JoinHandle, Panic, Scope, Thread};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Makes an iterator over the items of `produce`, which runs on a virtual thread of its own, at
/// most `ahead` items ahead (at least 1).
///
/// `produce` hands over each item with [`Out::give`], which parks while there is no room. If it
/// returns an error, that is the last item. If it panics, [`next`](Iterator::next) panics with its
/// panic, after the items that were given before.
///
/// When the generator is dropped, early or not, the producer is
/// [interrupted](pirn::thread::Thread::interrupt): `give`, and other waits that an interrupt ends,
/// fail, and `produce` returns by `?`. [`Generator::stop`] also waits for that.
///
/// # Panics
/// If no thread can be started.
///
/// # Examples
/// ```
/// use pirn_flow::generator::generate;
/// use std::io;
///
/// let lines = generate(8, |out| {
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
/// A producer that has no errors of its own and does not end by itself:
/// ```
/// use pirn::thread::Interrupted;
/// use pirn_flow::generator::generate;
///
/// let squares = generate::<_, Interrupted, _>(100, |out| {
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

/// Makes an iterator over the items of several producers, each on a virtual thread of its own.
/// Together they are at most `ahead` items ahead (at least 1).
///
/// The items of one producer come in order; there is no order between producers. The iteration ends
/// when all producers have ended. The first error or panic ends it, too: the items given before
/// come first, and the other producers are interrupted. In all else this is [`generate`].
///
/// # Panics
/// If no thread can be started.
///
/// # Examples
/// ```
/// use pirn::thread::Interrupted;
/// use pirn_flow::generator::{Out, generate_parallel};
///
/// let producers = (0..3).map(|producer| {
///     move |out: &mut Out<u32>| (0..10).try_for_each(|n| out.give(10 * producer + n))
/// });
/// let mut numbers = generate_parallel(5, producers).collect::<Result<Vec<_>, _>>()?;
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
        let thread = Builder::new().spawn(generator.producer(produce));
        let thread = thread.expect("a thread for a producer");
        generator.producers.push(thread.thread().clone());
        generator.threads.push(thread);
    }
    locked(&generator.exchange).ended();
    generator
}

/// Makes a generator as [`generate`] does. Its producer may borrow data that outlives the scope,
/// which waits for the producer's end.
///
/// # Panics
/// If no thread can be started.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
/// use pirn_flow::generator::generate_scoped;
///
/// let words = vec!["warp".to_string(), "weft".to_string()];
/// let length: usize = thread::scope(|scope| {
///     let words = generate_scoped(scope, 8, |out| {
///         words.iter().try_for_each(|word| out.give(word.as_str()))
///     });
///     words.map(|word: Result<&str, Interrupted>| word.unwrap().len()).sum()
/// });
/// assert_eq!(length, 8);
/// ```
#[track_caller]
pub fn generate_scoped<'scope, T, E, F>(
    scope: &'scope Scope<'scope, '_>,
    ahead: usize,
    produce: F,
) -> ScopedGenerator<'scope, T, E>
where
    T: Send + 'scope,
    E: Send + 'scope,
    F: FnOnce(&mut Out<T>) -> Result<(), E> + Send + 'scope,
{
    let mut generator = Generator::new(ahead);
    let thread = Builder::new().spawn_scoped(scope, generator.producer(produce));
    let thread = thread.expect("a thread for a producer");
    generator.producers.push(thread.thread().clone());
    locked(&generator.exchange).ended();
    ScopedGenerator {
        generator,
        scope: PhantomData,
    }
}

/// The part that producers and consumer share.
struct Exchange<T> {
    /// Items that were given and not taken by the consumer, in order.
    queue: VecDeque<T>,
    /// The number of items that may still be given.
    room: usize,
    /// Producers that wait for room.
    producers: Line,
    /// The consumer, if it waits.
    consumer: Line,
    /// The number of producers that have not ended, plus 1 while more are being started.
    running: usize,
    /// No more items may be given: a producer has failed, or the consumer is gone.
    is_closed: bool,
}

impl<T> Exchange<T> {
    /// Lets all further gives fail. The items in the queue can still be taken.
    fn close(&mut self) {
        self.is_closed = true;
        self.producers.wake(usize::MAX);
        self.consumer.wake(1);
    }

    /// Notes that a producer has ended.
    fn ended(&mut self) {
        self.running -= 1;
        if self.running == 0 {
            self.consumer.wake(1);
        }
    }
}

/// The receiver of a producer's items: see [`generate`].
///
/// # Examples
/// ```
/// use pirn::thread::Interrupted;
/// use pirn_flow::generator::{Out, generate};
///
/// fn countdown(out: &mut Out<u32>) -> Result<(), Interrupted> {
///     (0..=3).rev().try_for_each(|n| out.give(n))
/// }
/// assert!(generate(8, countdown).flatten().eq([3, 2, 1, 0]));
/// ```
pub struct Out<T>(Arc<Mutex<Exchange<T>>>);

impl<T> Out<T> {
    /// Hands over an item. Parks while there is no room: while the consumer has not used as many
    /// items as the generator may be ahead.
    ///
    /// # Errors
    /// The generator was dropped, or another producer has failed, or the thread was interrupted
    /// while it waited for room. The item is dropped.
    pub fn give(&mut self, item: T) -> Result<(), Interrupted> {
        let mut item = Some(item);
        let put = |exchange: &mut Exchange<T>| {
            if exchange.is_closed {
                return Some(Err(Interrupted));
            }
            exchange.room = exchange.room.checked_sub(1)?;
            exchange
                .queue
                .push_back(item.take().expect("it is put once"));
            Some(Ok(exchange.consumer.next()))
        };
        let given = wait(&self.0, |exchange| &mut exchange.producers, None, put);
        // After the lock is released, since the consumer takes it first.
        if let Some(consumer) = given.unwrap_or(Err(Interrupted))? {
            consumer.unpark();
        }
        Ok(())
    }
}

impl<T> Drop for Out<T> {
    fn drop(&mut self) {
        locked(&self.0).ended();
    }
}

impl<T> fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_closed = locked(&self.0).is_closed;
        f.debug_struct("Out")
            .field("is_closed", &is_closed)
            .finish()
    }
}

/// An iterator over items that are made ahead: see [`generate`].
///
/// Each item is a `Result`. If the thread that waits for an item is
/// [interrupted](pirn::thread::Thread::interrupt), or its [deadline](pirn::scope::deadline())
/// passes, the last item is an interrupt, and the producers are interrupted, too.
///
/// # Examples
/// ```
/// use pirn::thread::Interrupted;
/// use pirn_flow::generator::{Generator, generate};
///
/// fn odd_numbers() -> Generator<u32, Interrupted> {
///     generate(8, |out| (1..).step_by(2).try_for_each(|n| out.give(n)))
/// }
/// let three = odd_numbers().take(3).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(three, [1, 3, 5]);
/// # Ok::<(), Interrupted>(())
/// ```
#[must_use = "a generator that is dropped interrupts its producers"]
pub struct Generator<T, E> {
    exchange: Arc<Mutex<Exchange<T>>>,
    producers: Vec<Thread>,
    /// Handles for waiting for the producers' end, unless a scope does.
    threads: Vec<JoinHandle<()>>,
    /// The failure of the producer that ended the iteration.
    failure: Arc<Mutex<Option<Result<E, Panic>>>>,
    /// Items that the consumer has taken and not returned, in order.
    batch: VecDeque<T>,
    /// The number of items taken last, for which there is no room yet.
    taken: usize,
    /// The most items to take at a time.
    most: usize,
    is_over: bool,
}

/// No item came in time.
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
        let exchange = Exchange {
            queue: VecDeque::new(),
            room: ahead,
            producers: Line::default(),
            consumer: Line::default(),
            running: 1,
            is_closed: false,
        };
        Generator {
            exchange: Arc::new(Mutex::new(exchange)),
            producers: Vec::new(),
            threads: Vec::new(),
            failure: Arc::default(),
            batch: VecDeque::new(),
            taken: 0,
            most: ahead.div_ceil(2),
            is_over: false,
        }
    }

    /// Returns the function of a producer's thread.
    fn producer<F>(&self, produce: F) -> impl FnOnce() + use<T, E, F>
    where
        F: FnOnce(&mut Out<T>) -> Result<(), E>,
    {
        locked(&self.exchange).running += 1;
        let mut out = Out(Arc::clone(&self.exchange));
        let first = Arc::clone(&self.failure);
        move || {
            let failure = match Panic::catch(|| produce(&mut out)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => Ok(error),
                Err(panic) => Err(panic),
            };
            // A later failure follows from the first, which ends the other producers.
            let later = match &mut *locked(&first) {
                Some(_) => Some(failure),
                none => none.replace(failure),
            };
            locked(&out.0).close();
            drop(later);
        }
    }

    /// Ends the producers, and waits until they have ended. Dropping the generator does not wait.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::Interrupted;
    /// use pirn_flow::generator::generate;
    /// use std::sync::Arc;
    ///
    /// let held = Arc::new(());
    /// let holds = Arc::clone(&held);
    /// let ones = generate::<_, Interrupted, _>(8, move |out| loop {
    ///     out.give(Arc::clone(&holds))?;
    /// });
    /// ones.stop();
    /// assert_eq!(Arc::strong_count(&held), 1);
    /// ```
    pub fn stop(mut self) {
        self.end();
        for thread in core::mem::take(&mut self.threads) {
            // A panic is no longer an item.
            let _ = thread.join();
        }
    }

    /// Ends the iteration and the producers.
    fn end(&mut self) {
        self.is_over = true;
        let rest = {
            let mut exchange = locked(&self.exchange);
            exchange.close();
            core::mem::take(&mut exchange.queue)
        };
        self.producers
            .drain(..)
            .for_each(|thread| thread.interrupt());
        // The program's items, whose drop may panic: last, and without the lock.
        drop(rest);
        self.batch.clear();
    }

    /// Makes room for the items of the batch before, and takes more. Returns false if no more come:
    /// all producers have ended, or one has failed.
    fn take(&mut self, until: Option<Instant>) -> Result<bool, Late> {
        let (taken, batch) = (&mut self.taken, &mut self.batch);
        let take = |exchange: &mut Exchange<T>| {
            exchange.room += core::mem::take(taken);
            exchange.producers.wake(exchange.room);
            *taken = self.most.min(exchange.queue.len());
            batch.extend(exchange.queue.drain(..*taken));
            let is_over = exchange.running == 0 || exchange.is_closed;
            (*taken > 0 || is_over).then_some(*taken > 0)
        };
        wait(
            &self.exchange,
            |exchange| &mut exchange.consumer,
            until,
            take,
        )
    }
}

impl<T, E: From<Interrupted>> Generator<T, E> {
    /// Returns the next item, as [`next`](Iterator::next) does, but waits at most `timeout`.
    ///
    /// # Errors
    /// No item came in time. One may come later.
    ///
    /// # Panics
    /// As for `next`.
    ///
    /// # Examples
    /// ```
    /// use pirn_flow::generator::{TimedOut, generate};
    /// use std::time::Duration;
    ///
    /// let (permit, permits) = std::sync::mpsc::channel();
    /// let mut numbers = generate::<_, std::io::Error, _>(1, move |out| {
    ///     permits.iter().try_for_each(|n| Ok(out.give(n)?))
    /// });
    /// assert!(matches!(numbers.next_timeout(Duration::from_millis(1)), Err(TimedOut)));
    /// permit.send(7).unwrap();
    /// drop(permit);
    /// assert!(matches!(numbers.next_timeout(Duration::from_secs(60)), Ok(Some(Ok(7)))));
    /// assert!(matches!(numbers.next_timeout(Duration::from_secs(60)), Ok(None)));
    /// ```
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Result<T, E>>, TimedOut> {
        self.next_within(Some(timeout))
    }

    /// Returns the next item. `timeout` ends this wait only; the thread's deadline ends the
    /// iteration.
    fn next_within(&mut self, timeout: Option<Duration>) -> Result<Option<Result<T, E>>, TimedOut> {
        if let Some(item) = self.batch.pop_front() {
            return Ok(Some(Ok(item)));
        }
        if self.is_over {
            return Ok(None);
        }
        let last = match self.take(timeout.map_or_else(scope::deadline, limit)) {
            Ok(true) => return Ok(self.batch.pop_front().map(Ok)),
            Err(Late::TimedOut) if timeout.is_some() => return Err(TimedOut),
            Err(_) => Some(Ok(Interrupted.into())),
            Ok(false) => locked(&self.failure).take(),
        };
        self.end();
        Ok(last.map(|failure| Err(failure.unwrap_or_else(|panic| panic.resume()))))
    }
}

impl<T, E: From<Interrupted>> Iterator for Generator<T, E> {
    type Item = Result<T, E>;

    /// Waits for the next item.
    ///
    /// # Panics
    /// If a producer has panicked: with its panic, after the items that were given before.
    fn next(&mut self) -> Option<Result<T, E>> {
        self.next_within(None)
            .expect("there is no time limit of its own")
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

/// A [`Generator`] whose producer borrows from a scope: see [`generate_scoped`].
///
/// It cannot leave the scope: the scope waits for the producer, and the producer for a consumer
/// that takes its items.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
/// use pirn_flow::generator::generate_scoped;
///
/// let numbers = [1, 2, 3];
/// let first = thread::scope(|scope| {
///     let mut items = generate_scoped::<_, Interrupted, _>(scope, 1, |out| {
///         numbers.iter().try_for_each(|n| out.give(n))
///     });
///     items.next()
/// });
/// assert_eq!(first, Some(Ok(&1)));
/// ```
#[must_use = "a generator that is dropped interrupts its producer"]
pub struct ScopedGenerator<'scope, T, E> {
    generator: Generator<T, E>,
    scope: PhantomData<&'scope ()>,
}

impl<T, E: From<Interrupted>> ScopedGenerator<'_, T, E> {
    /// Does what [`Generator::next_timeout`] does.
    ///
    /// # Errors
    /// As for [`Generator::next_timeout`].
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Result<T, E>>, TimedOut> {
        self.generator.next_within(Some(timeout))
    }
}

impl<T, E: From<Interrupted>> Iterator for ScopedGenerator<'_, T, E> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Result<T, E>> {
        self.generator.next()
    }
}

impl<T, E: From<Interrupted>> FusedIterator for ScopedGenerator<'_, T, E> {}

impl<T, E> fmt::Debug for ScopedGenerator<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.generator.fmt(f)
    }
}
