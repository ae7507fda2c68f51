//! Batches: an actor that collects messages, and handles several at a time.
//!
//! ```text
//!   send, ask --Add--> [ collector: a batch per key, oldest first ] --full, due, closed--> f
//!                              ^
//!   timer, of the oldest batch | Due                    the end of a closed one (stopped)--^
//! ```
//!
//! The collector is an actor with a handler, so it has a thread only while it works. It has at most
//! one timer, for its oldest batch: a batch that is full before it is due costs no timer.
//!
//! An asker waits for its batch, so a message carries the receiver of its answer ([`Passed`]).

use crate::Builder;
use crate::actor::{
    Address, Context, Handler, Hooks, OnUndelivered, Passed, Put, Receive, Recipe, Ref,
    tell_undelivered,
};
use crate::edges::To;
use crate::error::{AskError, Exit, Failure, SendError, short_name};
use crate::life::{Actor, Life, Load};
use crate::mailbox::{Patience, Phase};
use crate::reply::{self, Reply};
use crate::time::{Limit, timers};
use core::hash::Hash;
use core::time::Duration;
use pirn::thread::Panic;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Makes an actor that collects messages, and calls `f` with up to `count` of them (at least 1):
/// when it has that many, or when `time` has passed since it took the first, whichever is earlier.
///
/// A sender does not wait for its batch. An asker does, and gets the result of `f` for the batch.
/// All askers of the batch share it, so it is in an [`Arc`]. If `f` panics, they get
/// [`AskError::Failed`], and the actor ends. A message whose asker has given up is left out.
///
/// When the actor is closed, it handles the last batch, too. When it is stopped or killed, messages
/// in an unfinished batch end like those in the mailbox: askers get [`AskError::Gone`], and
/// [`Builder::on_undelivered`] is called for the others.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::Duration;
///
/// let mut table = Vec::new();
/// let insert = actor::flow::batch(100, Duration::from_millis(5), move |rows: Vec<&str>| {
///     table.extend(rows);
///     table.len()
/// });
/// insert.send("warp").unwrap();
/// assert_eq!(*insert.ask("weft").unwrap(), 2); // after 5 ms: there are no 100
/// ```
pub fn batch<T, R, F>(count: usize, time: Duration, f: F) -> Address<T, Arc<R>>
where
    T: Send + 'static,
    R: Send + Sync + 'static,
    F: FnMut(Vec<T>) -> R + Send + 'static,
{
    Builder::new().batch(count, time, f)
}

impl Builder {
    /// Makes an actor that collects messages: see [`batch`](crate::flow::batch()). The mailbox's
    /// capacity counts the messages that are not collected yet.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use std::time::Duration;
    ///
    /// let builder = actor::Builder::new().name("rows").capacity(1000);
    /// let rows = builder.batch(100, Duration::from_millis(5), |rows: Vec<u32>| rows.len());
    /// assert_eq!(*rows.ask(7).unwrap(), 1);
    /// ```
    pub fn batch<T, R, F>(&self, count: usize, time: Duration, mut f: F) -> Address<T, Arc<R>>
    where
        T: Send + 'static,
        R: Send + Sync + 'static,
        F: FnMut(Vec<T>) -> R + Send + 'static,
    {
        self.batch_by(count, time, |_| (), move |(), items| f(items))
    }

    /// Makes an actor that collects messages as [`batch`](crate::flow::batch()) does, in one batch
    /// per key: it calls `f` with messages for which `key` returned the same.
    ///
    /// Each key has its own count and time. At the end the actor handles the batches that are left
    /// in the order in which they began.
    ///
    /// # Panics
    /// A panic of `key` is a failure of the actor.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Builder;
    /// use std::time::Duration;
    ///
    /// let day = Duration::from_secs(86_400);
    /// let letter = |word: &&str| word.chars().next();
    /// let index = Builder::new()
    ///     .batch_by(2, day, letter, |letter, words: Vec<&str>| (letter, words.len()));
    /// index.send("warp").unwrap();
    /// index.send("shed").unwrap();
    /// assert_eq!(*index.ask("weft").unwrap(), (Some('w'), 2));
    /// ```
    pub fn batch_by<T, K, R, G, F>(
        &self,
        count: usize,
        time: Duration,
        key: G,
        f: F,
    ) -> Address<T, Arc<R>>
    where
        T: Send + 'static,
        K: Hash + Eq + Clone + Send + 'static,
        R: Send + Sync + 'static,
        G: FnMut(&T) -> K + Send + 'static,
        F: FnMut(K, Vec<T>) -> R + Send + 'static,
    {
        let collector = Collector {
            count: count.max(1),
            time,
            key: Box::new(key),
            f: Box::new(f),
            begun: 0,
            numbers: HashMap::new(),
            batches: BTreeMap::new(),
            has_timer: false,
            on_undelivered: self.undelivered(),
        };
        let hooks = Hooks::new().stopped(Collector::stopped);
        let actor = self.prepare(Recipe::once(collector, hooks));
        Address::adopt(Arc::new(Batching(actor)))
    }
}

/// The messages collected for one key.
struct Batch<T, K, R> {
    key: K,
    entries: Vec<Passed<T, Arc<R>>>,
    /// When the batch is handled at the latest.
    due: Limit,
}

/// The state of the actor.
struct Collector<T, K, R> {
    count: usize,
    time: Duration,
    key: Box<dyn FnMut(&T) -> K + Send>,
    f: Box<dyn FnMut(K, Vec<T>) -> R + Send>,
    /// The number of batches begun. Each batch gets the next number.
    begun: u64,
    numbers: HashMap<K, u64>,
    batches: BTreeMap<u64, Batch<T, K, R>>,
    /// A timer will send `Due`.
    has_timer: bool,
    on_undelivered: Option<OnUndelivered>,
}

/// The messages of the actor.
enum Message<T, R> {
    /// A message, with the receiver of its answer.
    Add(Passed<T, Arc<R>>),
    /// Time to check the clock.
    Due,
}

/// The key of a batch.
trait Key: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Key for K {}

impl<T, K, R> Handler<Message<T, R>> for Collector<T, K, R>
where
    T: Send + 'static,
    K: Key,
    R: Send + Sync + 'static,
{
    type Reply = ();

    fn handle(&mut self, message: Message<T, R>, context: &Context<Self>) {
        match message {
            Message::Add(entry) if entry.is_wanted() => self.add(entry),
            Message::Add(_) => {}
            Message::Due => {
                self.has_timer = false;
                while let Some((&number, batch)) = self.batches.first_key_value()
                    && batch.due.is_past()
                {
                    self.handle_batch(number);
                }
            }
        }
        if !self.has_timer {
            self.set_timer(context);
        }
    }
}

impl<T: Send + 'static, K: Key, R: Send + Sync + 'static> Collector<T, K, R> {
    /// No message comes after this: a closed actor handles the batches that it has.
    fn stopped(&mut self, exit: &Exit) {
        if *exit == Exit::Closed {
            while let Some((&number, _)) = self.batches.first_key_value() {
                self.handle_batch(number);
            }
        }
    }

    fn add(&mut self, entry: Passed<T, Arc<R>>) {
        let key = (self.key)(&entry.message);
        let number = *self.numbers.entry(key.clone()).or_insert_with(|| {
            self.begun += 1;
            self.begun
        });
        let batch = self.batches.entry(number).or_insert_with(|| Batch {
            key,
            entries: Vec::new(),
            due: Limit::after(self.time),
        });
        batch.entries.push(entry);
        if batch.entries.len() >= self.count {
            self.handle_batch(number);
        }
    }

    /// Sets the timer that sends `Due` when the oldest batch is due, if there is a batch.
    fn set_timer(&mut self, context: &Context<Self>) {
        let oldest = self.batches.first_key_value();
        let Some(due) = oldest.and_then(|(_, batch)| batch.due.instant()) else {
            return;
        };
        self.has_timer = true;
        let actor = context.this().downgrade();
        timers::at(due, move |_| {
            // An actor that has ended, or is about to, needs no reminder.
            let _ = actor.upgrade().map(|actor| actor.send_urgent(Message::Due));
            None
        });
    }

    fn handle_batch(&mut self, number: u64) {
        let batch = self.batches.remove(&number);
        let Batch { key, entries, .. } = batch.expect("it is numbered in order to be found");
        self.numbers.remove(&key);
        let wanted = entries.into_iter().filter(Passed::is_wanted);
        let (items, onwards): (Vec<_>, Vec<_>) =
            wanted.map(|entry| (entry.message, entry.onward)).unzip();
        if items.is_empty() {
            return;
        }
        match Panic::catch(|| (self.f)(key, items)) {
            Ok(result) => {
                let result = Arc::new(result);
                for onward in onwards {
                    if !onward.take(Ok(Arc::clone(&result))) {
                        tell_undelivered(self.on_undelivered.as_ref(), short_name::<R>());
                    }
                }
            }
            Err(panic) => {
                let failure = Failure::from(&panic);
                for onward in onwards {
                    onward.take(Err(AskError::Failed(failure.clone())));
                }
                panic.resume();
            }
        }
    }
}

impl<T, K, R> Drop for Collector<T, K, R> {
    /// Reports messages that were sent and are in no batch that was handled. Askers of others learn
    /// of it when their `Passed` is dropped.
    fn drop(&mut self) {
        let entries = self.batches.values().flat_map(|batch| &batch.entries);
        for _ in entries.filter(|entry| !entry.onward.is_asked()) {
            tell_undelivered(self.on_undelivered.as_ref(), short_name::<T>());
        }
    }
}

/// The address of a collector.
struct Batching<S: Send + 'static>(Ref<S>);

impl<S: Send + 'static> Actor for Batching<S> {
    fn life(&self) -> &Life {
        self.0.life()
    }

    fn this(&self) -> Arc<dyn Actor> {
        self.0.this()
    }

    fn end(&self, phase: Phase) {
        self.0.end(phase);
    }

    fn kind(&self) -> &'static str {
        "batch"
    }

    fn load(&self) -> Load {
        self.0.load()
    }

    // It has its own `Ref`, which is dropped with the last address.
    fn retain(&self) {}
    fn release(&self) {}
}

impl<S, T, R> Receive<T, Arc<R>> for Batching<S>
where
    S: Handler<Message<T, R>, Reply = ()> + Send + 'static,
    T: Send + 'static,
    R: Send + Sync + 'static,
{
    fn pass(&self, passed: Passed<T, Arc<R>>, patience: Patience) -> Result<(), SendError<T>> {
        let sent = Put::send(&**self.0.cell(), Message::Add(passed), patience);
        sent.map_err(|error| {
            let refusal = error.refusal().clone();
            match error.into_message() {
                Message::Add(passed) => passed.refused(refusal, self.identity()),
                Message::Due => unreachable!("it was not sent here"),
            }
        })
    }

    fn request(&self, message: T, limit: Limit) -> Result<Reply<Arc<R>>, SendError<T>> {
        let (to, reply) = reply::pair(Some(To::Actor(self.identity().clone())));
        let passed = Passed::asked(message, to, None, limit);
        self.pass(passed, Patience::Until(limit))?;
        Ok(reply)
    }
}
