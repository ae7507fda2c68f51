//! Builders of pools.

use super::cell::{PoolCell, SharedMake};
use super::reference::PoolRef;
use super::rules::Rules;
use super::worker::WorkLoop;
use crate::actor::{Builder, Hooks, IntoRecipe};
use crate::error::{Failure, short_name};
use core::fmt;
use core::hash::Hash;
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
    pub(super) builder: Builder,
    pub(super) rules: Rules,
    pub(super) sizes: Sizes,
}

impl Builder {
    /// Makes a builder of a pool with this number of workers: see [`Pool::scaling`]. Name, capacity
    /// and overflow of this builder are the pool's, and its threads and restarts are the workers'.
    ///
    /// The workers of the pool `name` are called `name/1` and so on. Each worker has its own
    /// restarts, and the others continue while it restarts. A worker that fails more often ends the
    /// pool as a failed one.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Builder, Function, Restarts};
    ///
    /// let halves = Builder::new()
    ///     .name("halves")
    ///     .restarts(Restarts::at_most(5))
    ///     .pool(1..=4)
    ///     .spawn(|| Function::new(|n: u32| 100 / n))?;
    /// assert!(halves.ask(0).is_err());
    /// assert_eq!(halves.ask(4), Ok(25));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn pool(&self, workers: RangeInclusive<usize>) -> Pool {
        let least = (*workers.start()).max(1);
        Pool {
            builder: self.clone(),
            rules: Rules::default(),
            sizes: Sizes {
                least,
                most: (*workers.end()).max(least),
                grow_at: 1,
                shrink_at: 0,
            },
        }
    }
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
        Builder::new().pool(workers)
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

    /// Makes the pool. The recipe makes a state on each worker's thread: at once, and after each
    /// failure if there are [`restarts`](Builder::restarts). It is a closure that all workers call,
    /// perhaps at the same time, or a pair of such a closure and
    /// [`Hooks`](crate::lifecycle::Hooks), whose context is the worker.
    ///
    /// # Errors
    /// If no thread can be started.
    ///
    /// # Examples
    /// Each worker has a connection, and checks now and then whether it is still good:
    /// ```
    /// use pirn_actor::{Context, Exit, Handler};
    /// use pirn_actor::lifecycle::Hooks;
    /// use pirn_actor::pool::Pool;
    /// use std::sync::mpsc::{self, Sender};
    /// use std::time::Duration;
    ///
    /// struct Connection {
    ///     log: Sender<String>,
    /// }
    /// #[derive(Clone)]
    /// struct Ping;
    ///
    /// impl Connection {
    ///     fn started(&mut self, worker: &Context<Self>) {
    ///         worker.every(Duration::from_secs(30), Ping);
    ///     }
    ///     fn stopped(&mut self, exit: &Exit) {
    ///         self.log.send(format!("a connection is {exit}")).unwrap();
    ///     }
    /// }
    /// impl Handler<Ping> for Connection {
    ///     type Reply = ();
    ///     fn handle(&mut self, Ping: Ping, _: &Context<Self>) {}
    /// }
    /// let (log, logged) = mpsc::channel();
    /// let hooks = Hooks::new().started(Connection::started).stopped(Connection::stopped);
    /// let pool = Pool::fixed(2).spawn((move || Connection { log: log.clone() }, hooks))?;
    /// pool.ready().unwrap();
    /// drop(pool);
    /// assert!(logged.iter().eq(["a connection is closed"; 2]));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<S, F>(&self, recipe: F) -> io::Result<PoolRef<S>>
    where
        S: Send + 'static,
        F: IntoRecipe<S, Make: Fn() -> S + Sync>,
    {
        let (make, hooks) = recipe.into_parts();
        Ok(self.open(Arc::new(move || Ok(make())), hooks))
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
        Ok(self.open(Arc::new(make), Hooks::new()))
    }

    fn open<S: Send + 'static>(&self, make: SharedMake<S>, hooks: Hooks<S>) -> PoolRef<S> {
        let mut workers = self.builder.of_workers();
        if let Some(tell) = self.builder.undelivered() {
            workers = workers.on_undelivered(move |name| {
                if name != short_name::<WorkLoop<S>>() {
                    tell(name);
                }
            });
        }
        let cell = PoolCell::new(self, workers, make, hooks);
        let pool = PoolRef::adopt(Arc::clone(&cell));
        cell.open();
        pool
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("builder", &self.builder)
            .field("workers", &(self.sizes.least..=self.sizes.most))
            .finish_non_exhaustive()
    }
}
