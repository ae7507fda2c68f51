//! A stock of items that are supplied ahead of their use: numbers, connections, tickets.
//!
//! ```text
//!   take --fewer than `low` left: a thread--> [ supply ] --several--> shelf --> take
//!     |                                              | all attempts have failed, nothing is left
//!     +<-------------- fallback, or the error -------+
//! ```
//!
//! Each delivery has a virtual thread of its own, and there is one at a time: a full stock has no
//! thread. A taker takes an item from the shelf on its own thread.
//!
//! A supplier that takes from its own stock waits for itself. No deadlock search finds that.

use crate::wait::{Late, Line, limit, locked, wait};
use core::fmt;
use core::time::Duration;
use pirn::scope;
use pirn::thread::{self, Panic, Thread};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Makes a stock that `supply` fills ahead, several items at a time: at once, and when fewer than
/// `low` are left. [`Builder`] has more options.
///
/// # Examples
/// ```
/// use pirn_flow::prefetch::prefetch;
///
/// let mut next = 0;
/// let numbers = prefetch(10, move || {
///     next += 100; // a call of a data base, say
///     Ok::<_, std::io::Error>(next - 100..next)
/// });
/// assert_eq!(numbers.take().unwrap(), 0);
/// assert_eq!(numbers.take().unwrap(), 1);
/// ```
pub fn prefetch<T, I, E, F>(low: usize, supply: F) -> Stock<T>
where
    T: Send + 'static,
    I: IntoIterator<Item = T>,
    E: fmt::Display,
    F: FnMut() -> Result<I, E> + Send + 'static,
{
    Builder::new(low).start(supply)
}

/// Makes stocks with options: retries, and a fallback.
///
/// # Examples
/// ```
/// use pirn_flow::prefetch::Builder;
/// use std::time::Duration;
///
/// let mut attempts = 0;
/// let tickets = Builder::new(1)
///     .retries(2, Duration::from_millis(1))
///     .fallback(|| "emergency ticket")
///     .start(move || {
///         attempts += 1;
///         if attempts < 3 { Err("busy") } else { Ok(["ticket"]) }
///     });
/// assert_eq!(tickets.take().unwrap(), "ticket"); // of the third attempt
/// ```
#[must_use = "a builder is started"]
pub struct Builder<T> {
    low: usize,
    retries: u32,
    pause: Duration,
    fallback: Option<Box<dyn Fn() -> T + Send + Sync>>,
}

impl<T: Send + 'static> Builder<T> {
    /// Makes a builder of a stock that is filled when fewer than `low` items are left, at least 1.
    /// A failed delivery is not repeated until a thread takes an item, or tries to.
    ///
    /// # Examples
    /// See [`Builder`].
    pub fn new(low: usize) -> Builder<T> {
        Builder {
            low: low.max(1),
            retries: 0,
            pause: Duration::ZERO,
            fallback: None,
        }
    }

    /// Sets how often a failed delivery is tried again, and the pause before each attempt.
    pub fn retries(mut self, retries: u32, pause: Duration) -> Builder<T> {
        (self.retries, self.pause) = (retries, pause);
        self
    }

    /// Sets a function that makes an item, on the taker's thread, when the stock is empty and all
    /// attempts to fill it have failed.
    pub fn fallback(mut self, make: impl Fn() -> T + Send + Sync + 'static) -> Builder<T> {
        self.fallback = Some(Box::new(make));
        self
    }

    /// Starts the first delivery. A delivery fails if `supply` returns an error, panics, or
    /// supplies no item.
    ///
    /// # Examples
    /// ```
    /// use pirn_flow::prefetch::{Builder, Error};
    ///
    /// let none = Builder::<u32>::new(5).start(|| Err::<[u32; 1], _>("sold out"));
    /// assert_eq!(none.take(), Err(Error::Failed("sold out".into())));
    /// ```
    pub fn start<I, E, F>(self, mut supply: F) -> Stock<T>
    where
        I: IntoIterator<Item = T>,
        E: fmt::Display,
        F: FnMut() -> Result<I, E> + Send + 'static,
    {
        let attempt = move || match supply() {
            Ok(items) => Ok(items.into_iter().collect()),
            Err(error) => Err(error.to_string().into()),
        };
        let store = Arc::new(Store {
            builder: self,
            supply: Mutex::new(Box::new(attempt)),
            shelf: Mutex::default(),
        });
        store.order(&mut locked(&store.shelf));
        Stock(Arc::new(Taker(store)))
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("low", &self.low)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// Why a stock has no item for a taker.
///
/// # Examples
/// See [`Builder::start`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The delivery has failed at all attempts. The text is the last error or panic.
    Failed(Arc<str>),
    /// The time limit, or the [deadline](pirn::scope::deadline()) of the running thread, passed.
    TimedOut,
    /// The running thread was [interrupted](pirn::thread::Thread::interrupt).
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Failed(why) => write!(f, "the delivery failed: {why}"),
            Error::TimedOut => f.write_str("no item in time"),
            Error::Interrupted => f.write_str("interrupted while waiting for an item"),
        }
    }
}

impl std::error::Error for Error {}

type Delivery<T> = Result<VecDeque<T>, Arc<str>>;

/// The part that takers and deliveries share.
struct Store<T> {
    builder: Builder<T>,
    /// Makes one attempt. Locked by the delivery that is under way.
    supply: Mutex<Box<dyn FnMut() -> Delivery<T> + Send>>,
    shelf: Mutex<Shelf<T>>,
}

struct Shelf<T> {
    items: VecDeque<T>,
    /// The thread of the delivery that is under way.
    delivery: Option<Thread>,
    /// The number of failed deliveries, and why the last one failed.
    failures: u64,
    failure: Arc<str>,
    takers: Line,
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf {
            items: VecDeque::new(),
            delivery: None,
            failures: 0,
            failure: Arc::default(),
            takers: Line::default(),
        }
    }
}

impl<T> Shelf<T> {
    fn delivered(&mut self, delivery: Delivery<T>) {
        self.delivery = None;
        match delivery {
            Ok(mut items) => self.items.append(&mut items),
            Err(failure) => {
                self.failures += 1;
                self.failure = failure;
            }
        }
        self.takers.wake(usize::MAX);
    }
}

impl<T: Send + 'static> Store<T> {
    /// Starts a delivery if one is due and none is under way.
    fn order(self: &Arc<Self>, shelf: &mut Shelf<T>) {
        if shelf.items.len() >= self.builder.low || shelf.delivery.is_some() {
            return;
        }
        let store = Arc::clone(self);
        let deliver = move || {
            let delivery = store.attempts();
            locked(&store.shelf).delivered(delivery);
        };
        let name = "supplier".to_string();
        match thread::Builder::new().name(name).spawn(deliver) {
            Ok(delivery) => shelf.delivery = Some(delivery.thread().clone()),
            Err(error) => shelf.delivered(Err(error.to_string().into())),
        }
    }

    /// Attempts a delivery until it succeeds, has failed too often, or is interrupted.
    fn attempts(&self) -> Delivery<T> {
        let mut supply = locked(&self.supply);
        let mut retries = 0;
        loop {
            let failure = match Panic::catch(&mut *supply) {
                Ok(Ok(items)) if items.is_empty() => "nothing was supplied".into(),
                Ok(Ok(items)) => return Ok(items),
                Ok(Err(failure)) => failure,
                Err(panic) => panic.to_string().into(),
            };
            let Builder {
                retries: most,
                pause,
                ..
            } = self.builder;
            if retries == most || thread::sleep_interruptible(pause).is_err() {
                return Err(failure);
            }
            retries += 1;
        }
    }
}

/// A stock that is filled ahead of its use: see [`prefetch`]. Clones share it.
///
/// When the last clone is dropped, a delivery that is under way is interrupted.
///
/// # Examples
/// ```
/// let numbers = pirn_flow::prefetch::prefetch(1, || Ok::<_, std::io::Error>(1..=3));
/// let other = numbers.clone();
/// assert_eq!((numbers.take(), other.take()), (Ok(1), Ok(2)));
/// assert_eq!(numbers.len(), 1);
/// ```
pub struct Stock<T>(Arc<Taker<T>>);

/// All clones of a stock.
struct Taker<T>(Arc<Store<T>>);

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        if let Some(delivery) = &locked(&self.0.shelf).delivery {
            delivery.interrupt();
        }
    }
}

impl<T: Send + 'static> Stock<T> {
    /// Takes an item. If the stock is empty, waits for a delivery.
    ///
    /// # Errors
    /// [`Error::Failed`] if the delivery has failed at all attempts, and there is no
    /// [fallback](Builder::fallback). [`Error::Interrupted`]. [`Error::TimedOut`] if the running
    /// thread's deadline passed.
    pub fn take(&self) -> Result<T, Error> {
        self.take_until(scope::deadline())
    }

    /// Takes an item. If the stock is empty, waits for a delivery, for as long as `timeout`.
    ///
    /// # Errors
    /// As for [`take`](Stock::take), and [`Error::TimedOut`].
    pub fn take_timeout(&self, timeout: Duration) -> Result<T, Error> {
        self.take_until(limit(timeout))
    }

    fn take_until(&self, until: Option<Instant>) -> Result<T, Error> {
        let store = &self.0.0;
        let mut known = None;
        // Takes an item, or the failure of a delivery that was under way or was started for this
        // call.
        let take = |shelf: &mut Shelf<T>| {
            let known = *known.get_or_insert(shelf.failures);
            let failed = |shelf: &Shelf<T>| {
                (shelf.failures != known).then(|| Err(Arc::clone(&shelf.failure)))
            };
            let item = shelf.items.pop_front().map(Ok).or_else(|| failed(shelf));
            if !matches!(item, Some(Err(_))) {
                store.order(shelf);
            }
            item.or_else(|| failed(shelf))
        };
        match (
            wait(&store.shelf, |shelf| &mut shelf.takers, until, take),
            &store.builder.fallback,
        ) {
            (Ok(Ok(item)), _) => Ok(item),
            (Ok(Err(_)), Some(make)) => Ok(make()),
            (Ok(Err(failure)), None) => Err(Error::Failed(failure)),
            (Err(Late::TimedOut), _) => Err(Error::TimedOut),
            (Err(Late::Interrupted), _) => Err(Error::Interrupted),
        }
    }
}

impl<T> Stock<T> {
    /// Returns the number of items in stock.
    pub fn len(&self) -> usize {
        locked(&self.0.0.shelf).items.len()
    }

    /// Returns true if no item is in stock.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Stock<T> {
    fn clone(&self) -> Stock<T> {
        Stock(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Stock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stock")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
