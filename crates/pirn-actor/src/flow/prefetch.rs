//! A stock of things that are supplied ahead of their use: numbers, connections, tickets.
//!
//! ```text
//!   take --fewer than `low` left: one message--> [ supplier ] --several--> shelf --> take
//!     |                                              | all attempts have failed, nothing is left
//!     +<------------- emergency, or the error -------+
//! ```
//!
//! The supplier is an actor that is sent one message at a time: so there is one delivery at a time,
//! and no thread between them. What is on the shelf is taken without it.

use crate::Builder;
use crate::actor::Address;
use crate::edges::{Over, To, Waits};
use crate::error::{AskError, Failure};
use crate::identity::current_limit;
use crate::poison::locked;
use crate::time::Limit;
use core::fmt;
use core::time::Duration;
use pirn::thread::{self, Panic, Thread};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Makes a stock that `supply` fills ahead, several items at a time: at once, and whenever fewer
/// than `low` are left. [`Prefetch`] has more to choose from.
///
/// # Examples
/// ```
/// let mut next = 0;
/// let numbers = pirn_actor::prefetch(10, move || {
///     next += 100; // a call of a data base, say
///     Ok::<_, std::io::Error>(next - 100..next)
/// });
/// assert_eq!(numbers.take().unwrap(), 0);
/// assert_eq!(numbers.take().unwrap(), 1);
/// ```
pub fn prefetch<T, I, E, F>(low: usize, supply: F) -> Prefetched<T>
where
    T: Send + 'static,
    I: IntoIterator<Item = T>,
    E: fmt::Display,
    F: FnMut() -> Result<I, E> + Send + 'static,
{
    Prefetch::below(low).start(supply)
}

/// Makes stocks that are filled ahead: with attempts, and a function that helps out.
///
/// # Examples
/// ```
/// use pirn_actor::Prefetch;
/// use std::time::Duration;
///
/// let mut attempts = 0;
/// let tickets = Prefetch::below(1).retries(2, Duration::from_millis(1)).start_or(
///     move || {
///         attempts += 1;
///         if attempts < 3 { Err("busy") } else { Ok(["ticket"]) }
///     },
///     || "emergency ticket",
/// );
/// assert_eq!(tickets.take().unwrap(), "ticket"); // of the third attempt
/// ```
#[derive(Clone, Debug)]
pub struct Prefetch {
    low: usize,
    retries: u32,
    pause: Duration,
}

impl Prefetch {
    /// A stock that is filled whenever fewer than `low` items are left, at least 1. A delivery that
    /// fails is not repeated until a thread takes an item, or wants to.
    ///
    /// # Examples
    /// See [`Prefetch`].
    pub fn below(low: usize) -> Prefetch {
        Prefetch {
            low: low.max(1),
            retries: 0,
            pause: Duration::ZERO,
        }
    }

    /// Has a delivery that fails be attempted again, this often, with this pause before each.
    ///
    /// # Examples
    /// See [`Prefetch`].
    pub fn retries(mut self, retries: u32, pause: Duration) -> Prefetch {
        (self.retries, self.pause) = (retries, pause);
        self
    }

    /// Starts the first delivery. An error of `supply`, a panic, and a delivery of nothing are
    /// failures.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{AskError, Prefetch};
    ///
    /// let none = Prefetch::below(5).start(|| Err::<[u32; 1], _>("sold out"));
    /// let Err(AskError::Failed(failure)) = none.take() else { panic!("there is none") };
    /// assert_eq!(failure.to_string(), "sold out");
    /// ```
    pub fn start<T, I, E, F>(self, supply: F) -> Prefetched<T>
    where
        T: Send + 'static,
        I: IntoIterator<Item = T>,
        E: fmt::Display,
        F: FnMut() -> Result<I, E> + Send + 'static,
    {
        self.open(supply, None)
    }

    /// Does the same, and has `emergency` make an item, on the taker's thread, when the
    /// stock is empty and all attempts to fill it have failed.
    ///
    /// # Examples
    /// See [`Prefetch`].
    pub fn start_or<T, I, E, F>(
        self,
        supply: F,
        emergency: impl Fn() -> T + Send + Sync + 'static,
    ) -> Prefetched<T>
    where
        T: Send + 'static,
        I: IntoIterator<Item = T>,
        E: fmt::Display,
        F: FnMut() -> Result<I, E> + Send + 'static,
    {
        self.open(supply, Some(Box::new(emergency)))
    }

    fn open<T, I, E, F>(self, mut supply: F, emergency: Option<Emergency<T>>) -> Prefetched<T>
    where
        T: Send + 'static,
        I: IntoIterator<Item = T>,
        E: fmt::Display,
        F: FnMut() -> Result<I, E> + Send + 'static,
    {
        let shelf = Arc::new(Mutex::new(Shelf::new()));
        let low = self.low;
        let filled = Arc::clone(&shelf);
        let supplier = Builder::new().name("supplier").consumer(move |()| {
            let delivery = self.attempts(&mut supply);
            locked(&filled).delivered(delivery);
        });
        let prefetched = Prefetched(Arc::new(Stock {
            shelf,
            low,
            supplier,
            emergency,
        }));
        prefetched.0.order(&mut locked(&prefetched.0.shelf));
        prefetched
    }

    /// Attempts a delivery until it succeeds, or has failed too often, or nobody wants it.
    fn attempts<T, I, E, F>(&self, supply: &mut F) -> Result<Vec<T>, Failure>
    where
        I: IntoIterator<Item = T>,
        E: fmt::Display,
        F: FnMut() -> Result<I, E>,
    {
        let mut retries = 0;
        loop {
            let attempt = Panic::catch(|| match supply() {
                Ok(items) => Ok(items.into_iter().collect::<Vec<T>>()),
                Err(error) => Err(Failure::new(error.to_string())),
            });
            let failure = match attempt {
                Ok(Ok(items)) if items.is_empty() => Failure::new("nothing was supplied"),
                Ok(Ok(items)) => return Ok(items),
                Ok(Err(failure)) => failure,
                Err(panic) => Failure::from(&panic),
            };
            if retries == self.retries || thread::sleep_interruptible(self.pause).is_err() {
                return Err(failure);
            }
            retries += 1;
        }
    }
}

type Emergency<T> = Box<dyn Fn() -> T + Send + Sync>;

/// What is there, and who waits for more.
struct Shelf<T> {
    items: VecDeque<T>,
    /// A delivery is under way.
    is_ordered: bool,
    /// The number of deliveries that have failed, and why the last one did.
    failures: u64,
    failure: Option<Failure>,
    waiting: Vec<(Thread, Over)>,
}

impl<T> Shelf<T> {
    fn new() -> Shelf<T> {
        Shelf {
            items: VecDeque::new(),
            is_ordered: false,
            failures: 0,
            failure: None,
            waiting: Vec::new(),
        }
    }

    fn delivered(&mut self, delivery: Result<Vec<T>, Failure>) {
        self.is_ordered = false;
        match delivery {
            Ok(items) => self.items.extend(items),
            Err(failure) => {
                self.failures += 1;
                self.failure = Some(failure);
            }
        }
        for (waiting, over) in self.waiting.drain(..) {
            over.set();
            waiting.unpark();
        }
    }
}

struct Stock<T: Send + 'static> {
    shelf: Arc<Mutex<Shelf<T>>>,
    low: usize,
    supplier: Address<()>,
    emergency: Option<Emergency<T>>,
}

impl<T: Send + 'static> Stock<T> {
    /// Orders a delivery, if one is due and none is under way.
    fn order(&self, shelf: &mut Shelf<T>) {
        if shelf.items.len() < self.low && !shelf.is_ordered {
            // There is room: the message before it is over, or it would be under way.
            shelf.is_ordered = self.supplier.try_send(()).is_ok();
        }
    }

    /// Waits for an item. Returns none if a delivery that was under way, or was ordered for this,
    /// has failed.
    fn wait(&self, limit: Limit) -> Result<Result<T, Failure>, AskError> {
        let mut known = None;
        loop {
            let over = Over::new();
            {
                let mut shelf = locked(&self.shelf);
                let item = shelf.items.pop_front();
                let known = *known.get_or_insert(shelf.failures);
                if item.is_none() && shelf.failures != known {
                    let failure = shelf.failure.clone();
                    return Ok(Err(failure.expect("it is there if it was counted")));
                }
                self.order(&mut shelf);
                if let Some(item) = item {
                    return Ok(Ok(item));
                }
                shelf.waiting.push((thread::current(), over.clone()));
            }
            let supplier = To::Actor(self.supplier.identity().clone());
            let waits = Waits::begin(&supplier, limit, &over);
            let _waits = waits.map_err(AskError::Deadlock)?;
            if let Err(late) = limit.park() {
                let this = thread::current().id();
                locked(&self.shelf)
                    .waiting
                    .retain(|(waiting, _)| waiting.id() != this);
                return Err(late.into());
            }
        }
    }
}

impl<T: Send + 'static> Drop for Stock<T> {
    fn drop(&mut self) {
        // A delivery that is under way is for nobody.
        self.supplier.kill();
    }
}

/// A stock that is filled ahead of its use: see [`prefetch`]. Clones share it.
///
/// When the last clone is dropped, a delivery that is under way is interrupted.
///
/// # Examples
/// ```
/// let numbers = pirn_actor::prefetch(1, || Ok::<_, std::io::Error>(1..=3));
/// let other = numbers.clone();
/// assert_eq!((numbers.take(), other.take()), (Ok(1), Ok(2)));
/// assert_eq!(numbers.len(), 1);
/// ```
pub struct Prefetched<T: Send + 'static>(Arc<Stock<T>>);

impl<T: Send + 'static> Prefetched<T> {
    /// Takes an item. If there is none, waits for a delivery.
    ///
    /// # Errors
    /// [`AskError::Failed`] if the delivery has failed, at all attempts, and nobody
    /// [helps out](Prefetch::start_or); [`AskError::Interrupted`]; [`AskError::TimedOut`] if the
    /// running thread handles a message, and its asker's time is up.
    pub fn take(&self) -> Result<T, AskError> {
        self.take_within(current_limit())
    }

    /// Takes an item. If there is none, waits for a delivery for as long as `timeout`.
    ///
    /// # Errors
    /// As for [`take`](Prefetched::take), and [`AskError::TimedOut`].
    pub fn take_timeout(&self, timeout: Duration) -> Result<T, AskError> {
        self.take_within(Limit::after(timeout).min(current_limit()))
    }

    fn take_within(&self, limit: Limit) -> Result<T, AskError> {
        self.0
            .wait(limit)?
            .or_else(|failure| match &self.0.emergency {
                Some(emergency) => Ok(emergency()),
                None => Err(AskError::Failed(failure)),
            })
    }

    /// Returns the number of items that are there.
    pub fn len(&self) -> usize {
        locked(&self.0.shelf).items.len()
    }

    /// Returns true if no item is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Send + 'static> Clone for Prefetched<T> {
    fn clone(&self) -> Prefetched<T> {
        Prefetched(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> fmt::Debug for Prefetched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefetched")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
