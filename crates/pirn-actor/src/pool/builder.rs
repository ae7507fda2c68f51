//! Builders of pools.

use super::cell::{PoolCell, SharedRecipe};
use super::reference::PoolRef;
use super::rules::Rules;
use super::worker::WorkLoop;
use crate::actor::Restarts;
use crate::error::{Failure, short_name};
use crate::mailbox::Overflow;
use core::fmt;
use core::hash::Hash;
use pirn::thread;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The limits for the number of workers.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) least: usize,
    pub(super) most: usize,
    /// The pool adds a worker at this number of waiting messages, or more.
    pub(super) grow_at: usize,
    /// A worker is one too many at this number of waiting messages, or fewer.
    pub(super) shrink_at: usize,
}

/// Called with the name of each message that was never begun.
type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Makes a pool: several workers that share the messages sent to the pool. Each worker is an actor
/// with its own state, made by the pool's recipe, and has a thread only while it has work, like any
/// actor.
///
/// The worker that is ready first handles a message, so messages may overtake each other, unless
/// they have the same [key](Pool::keyed).
///
/// # Examples
/// ```
/// use pirn_actor::{Context, Handler};
/// use pirn_actor::pool::Pool;
/// use std::collections::HashMap;
///
/// /// Translates, and remembers what it has translated.
/// struct Translator(HashMap<String, String>);
///
/// impl Handler<String> for Translator {
///     type Reply = String;
///     fn handle(&mut self, word: String, _: &Context<Self>) -> String {
///         let look_up = |word: &String| word.to_uppercase(); // asks a server, say
///         self.0.entry(word).or_insert_with_key(look_up).clone()
///     }
/// }
///
/// let translators = Pool::fixed(4).spawn(|| Translator(HashMap::new())).unwrap();
/// let words = ["one", "two", "three", "four"].map(String::from);
/// let replies = words.map(|word| translators.ask_later(word).unwrap()); // four at once
/// let translated = replies.map(|reply| reply.recv().unwrap());
/// assert_eq!(translated, ["ONE", "TWO", "THREE", "FOUR"]);
/// ```
#[derive(Clone)]
#[must_use = "`spawn` makes the pool"]
pub struct Pool {
    /// Name, capacity, overflow.
    front: crate::Builder,
    /// Threads, restarts.
    workers: crate::Builder,
    on_undelivered: Option<Tell>,
    rules: Rules,
    sizes: Sizes,
}

impl Pool {
    /// Makes a builder of a pool with this number of workers, at least 1.
    pub fn fixed(workers: usize) -> Pool {
        Pool::scaling(workers..=workers)
    }

    /// Makes a builder of a pool whose number of workers follows the number of waiting messages.
    ///
    /// The pool starts with the least number of workers, at least 1. It adds a worker when none is
    /// free and [many](Pool::grow_at) messages wait. A worker ends when it looks for its next
    /// message and finds [few](Pool::shrink_at). No thread watches the pool: it checks this when a
    /// message comes, and when a message is over.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Function;
    /// use pirn_actor::pool::Pool;
    /// use std::sync::mpsc;
    ///
    /// let pool = Pool::scaling(1..=4).grow_at(2).shrink_at(0);
    /// let pool = pool.spawn(|| Function::new(|blocked: mpsc::Receiver<()>| blocked.recv())).unwrap();
    /// let unblock: Vec<_> = (0..10)
    ///     .map(|_| {
    ///         let (unblock, blocked) = mpsc::channel();
    ///         pool.send(blocked).unwrap();
    ///         unblock
    ///     })
    ///     .collect();
    /// while pool.workers().busy < 4 {
    ///     std::thread::yield_now();
    /// }
    /// drop(unblock);
    /// while pool.workers().count > 1 {
    ///     std::thread::yield_now();
    /// }
    /// ```
    pub fn scaling(workers: RangeInclusive<usize>) -> Pool {
        let least = (*workers.start()).max(1);
        Pool {
            front: crate::Builder::new(),
            workers: crate::Builder::new(),
            on_undelivered: None,
            rules: Rules::default(),
            sizes: Sizes {
                least,
                most: (*workers.end()).max(least),
                grow_at: 1,
                shrink_at: 0,
            },
        }
    }

    /// Sets the number of waiting messages at which the pool adds a worker when none is free: 1 by
    /// default. Messages of senders that wait for room count. While workers are being made, each of
    /// them raises the number by as much again.
    ///
    /// A pool that is full grows whatever this number is.
    pub fn grow_at(mut self, waiting: usize) -> Pool {
        self.sizes.grow_at = waiting.max(1);
        self
    }

    /// Sets the number of waiting messages at which a worker is one too many: 0 by default. The
    /// worker ends when it looks for its next message and finds this number, or fewer. A number
    /// well below [`grow_at`](Pool::grow_at) keeps the pool from making and dropping states all the
    /// time.
    pub fn shrink_at(mut self, waiting: usize) -> Pool {
        self.sizes.shrink_at = waiting;
        self
    }

    /// Makes a message of the type `M` take permits while it is handled: `weight` of it, out of
    /// `permits`. So the sum of the weights of the messages being handled never exceeds `permits`.
    ///
    /// Permits are given in order of arrival: messages behind one that waits for permits wait, too,
    /// so others cannot overtake a heavy message for ever. A message heavier than all permits takes
    /// all of them, and is handled alone. Messages of types without a weight take none.
    ///
    /// The sender calls `weight` before it sends the message. If this is called for several types,
    /// their messages share the permits, and the last call sets the number.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Function;
    /// use pirn_actor::pool::Pool;
    ///
    /// struct Import {
    ///     megabytes: usize,
    /// }
    /// let import = Pool::fixed(8)
    ///     .weighted(64, |file: &Import| file.megabytes)
    ///     .spawn(|| Function::new(|file: Import| file.megabytes * 1_000_000))
    ///     .unwrap();
    /// assert_eq!(import.ask(Import { megabytes: 3 }), Ok(3_000_000));
    /// assert_eq!(import.ask(Import { megabytes: 500 }), Ok(500_000_000)); // alone
    /// ```
    pub fn weighted<M: 'static>(
        mut self,
        permits: usize,
        weight: impl Fn(&M) -> usize + Send + Sync + 'static,
    ) -> Pool {
        self.rules.weigh(permits, weight);
        self
    }

    /// Gives messages of the type `M` a key. Messages with the same key are handled one at a time,
    /// in order; messages with different keys at the same time. A key with slow or many messages
    /// holds up no other key: any free worker takes the next key that no worker handles. So do not
    /// keep data about a key in a worker's state: the next message of the key may go to another
    /// worker.
    ///
    /// The sender calls `key` before it sends the message. This may be called for several types.
    /// Keys are the same if they are equal and of the same type. Messages of types without a key
    /// are in no order.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Function;
    /// use pirn_actor::pool::Pool;
    /// use std::sync::mpsc;
    ///
    /// struct Job {
    ///     user: u32,
    ///     number: u32,
    /// }
    /// let (tell, told) = mpsc::channel();
    /// let ordered = Pool::fixed(8)
    ///     .keyed(|job: &Job| job.user)
    ///     .spawn(move || {
    ///         let tell = tell.clone();
    ///         Function::new(move |job: Job| tell.send((job.user, job.number)).unwrap())
    ///     })
    ///     .unwrap();
    /// for number in 0..100 {
    ///     ordered.send(Job { user: number % 3, number }).unwrap();
    /// }
    /// drop(ordered);
    /// let of_user_2 = told.iter().filter(|(user, _)| *user == 2).map(|(_, number)| number);
    /// assert!(of_user_2.eq((2..100).step_by(3)));
    /// ```
    pub fn keyed<M: 'static, K: Hash + Eq + 'static>(
        mut self,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
    ) -> Pool {
        self.rules.key(key);
        self
    }

    /// Sets the pool's name for errors, dumps and snapshots. Its workers are called `name/1` and so
    /// on.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Pool {
        self.front = self.front.name(name);
        self
    }

    /// Sets the number of messages that may wait, at least 1: 1,024 by default.
    pub fn capacity(mut self, messages: usize) -> Pool {
        self.front = self.front.capacity(messages);
        self
    }

    /// Removes the limit of waiting messages. Senders that are faster than the workers then fill
    /// the memory.
    pub fn unbounded(self) -> Pool {
        self.capacity(usize::MAX)
    }

    /// Sets what happens to messages for a full pool.
    pub fn overflow(mut self, overflow: Overflow) -> Pool {
        self.front = self.front.overflow(overflow);
        self
    }

    /// Sets the builder of the workers' threads: their stack size, scheduler and name.
    pub fn threads(mut self, threads: thread::Builder) -> Pool {
        self.workers = self.workers.threads(threads);
        self
    }

    /// Runs the workers on platform threads.
    pub fn platform_threads(mut self) -> Pool {
        self.workers = self.workers.platform_threads();
        self
    }

    /// Sets how often each worker restarts after a failure. The recipe then makes a new state, and
    /// the other workers continue meanwhile. A worker that fails more often, or that has no
    /// restarts, ends the pool as a failed one.
    pub fn restarts(mut self, restarts: Restarts) -> Pool {
        self.workers = self.workers.restarts(restarts);
        self
    }

    /// Sets a function that the pool calls when it ends, with the name of the message's type, for
    /// each message that was sent and never begun.
    pub fn on_undelivered(mut self, f: impl Fn(&str) + Send + Sync + 'static) -> Pool {
        self.on_undelivered = Some(Arc::new(f));
        self
    }

    /// Makes the pool. The recipe makes a state on each worker's thread: at once, and after each
    /// failure if there are [`restarts`](Pool::restarts).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn spawn<S, F>(&self, recipe: F) -> io::Result<PoolRef<S>>
    where
        S: Send + 'static,
        F: Fn() -> S + Send + Sync + 'static,
    {
        Ok(self.open(Arc::new(move || Ok(recipe()))))
    }

    /// Makes the pool with a recipe that may fail. An error is a failure of the worker.
    /// [`PoolRef::ready`] waits until the recipe has succeeded.
    ///
    /// # Errors
    /// If no thread can be started.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::pool::Pool;
    /// use std::fs::File;
    ///
    /// let files = Pool::fixed(2).try_spawn(|| File::open("/there/is/none")).unwrap();
    /// assert!(files.ready().unwrap_err().to_string().starts_with("failed: No such file"));
    /// ```
    pub fn try_spawn<S, E, F>(&self, recipe: F) -> io::Result<PoolRef<S>>
    where
        S: Send + 'static,
        E: fmt::Display,
        F: Fn() -> Result<S, E> + Send + Sync + 'static,
    {
        let make = move || recipe().map_err(|error| Failure::new(error.to_string()));
        Ok(self.open(Arc::new(make)))
    }

    fn open<S: Send + 'static>(&self, recipe: SharedRecipe<S>) -> PoolRef<S> {
        // A worker's mailbox holds its work loops, and messages that it sends to itself.
        let mut workers = self.workers.clone().unbounded();
        let mut front = self.front.clone();
        if let Some(tell) = &self.on_undelivered {
            let (of_pool, of_worker) = (Arc::clone(tell), Arc::clone(tell));
            front = front.on_undelivered(move |name| of_pool(name));
            workers = workers.on_undelivered(move |name| {
                if name != short_name::<WorkLoop<S>>() {
                    of_worker(name);
                }
            });
        }
        let cell = PoolCell::new(
            workers,
            front.plan(),
            self.rules.clone(),
            self.sizes.clone(),
            recipe,
        );
        let pool = PoolRef::adopt(Arc::clone(&cell));
        cell.open();
        pool
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("front", &self.front)
            .field("workers", &(self.sizes.least..=self.sizes.most))
            .finish_non_exhaustive()
    }
}
