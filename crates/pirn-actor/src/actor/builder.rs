//! Making actors.

use super::address::Address;
use super::cell::{ActorCell, OnUndelivered, Options, Rare, Threads};
use super::handler::Function;
use super::overtime::Overtime;
use super::recipe::{Hooks, IntoRecipe, Recipe, Restarts};
use super::reference::Ref;
use crate::error::Failure;
use crate::identity::Identity;
use crate::life::Actor;
use crate::mailbox::Overflow;
use crate::snapshot;
use crate::supervisor::Reporter;
use core::fmt;
use core::time::Duration;
use pirn::thread;
use std::io;
use std::sync::Arc;

/// The capacity of a mailbox, unless [`Builder::capacity`] says otherwise.
pub(crate) const CAPACITY: usize = 1024;

/// Makes actors with options: a name, another capacity, restarts.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Overflow};
///
/// let log = actor::Builder::new()
///     .name("log")
///     .capacity(64)
///     .overflow(Overflow::DropOld)
///     .consumer(|line: String| println!("{line}"));
/// log.send("hello".to_string()).unwrap();
/// assert_eq!(&*log.name(), "log");
/// ```
#[derive(Clone)]
pub struct Builder {
    name: Option<Arc<str>>,
    capacity: usize,
    overflow: Overflow,
    message_timeout: Option<Duration>,
    rare: Option<Rare>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Returns a builder of default actors: without a name, on virtual threads, with room for 1,024
    /// messages. Senders wait while the mailbox is full.
    pub fn new() -> Builder {
        Builder {
            name: None,
            capacity: CAPACITY,
            overflow: Overflow::default(),
            message_timeout: None,
            rare: None,
        }
    }

    /// Sets the name for errors, dumps and snapshots. Several actors may have the same name.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Sets the number of messages, at least 1, for which the mailbox has room besides the one that
    /// the actor handles.
    pub fn capacity(mut self, messages: usize) -> Builder {
        self.capacity = messages;
        self
    }

    /// Removes the limit of the mailbox. Senders that are faster than the actor then fill the
    /// memory.
    pub fn unbounded(self) -> Builder {
        self.capacity(usize::MAX)
    }

    /// Sets what happens to messages for a full mailbox.
    pub fn overflow(mut self, overflow: Overflow) -> Builder {
        self.overflow = overflow;
        self
    }

    /// Sets the builder of the actor's threads: their stack size, scheduler and name.
    pub fn threads(mut self, threads: thread::Builder) -> Builder {
        self.rare().threads = Threads::Made(Arc::new(threads));
        self
    }

    /// Runs the actor on platform threads.
    pub fn platform_threads(mut self) -> Builder {
        self.rare().threads = Threads::Platform;
        self
    }

    /// Sets how often the actor restarts after a failure. The recipe then makes a new state.
    /// References stay good, and the actor handles the messages that it had not begun.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, AskError, Context, Handler, Restarts};
    ///
    /// struct Counter(u32);
    /// impl Handler<u32> for Counter {
    ///     type Reply = u32;
    ///     fn handle(&mut self, add: u32, _: &Context<Self>) -> u32 {
    ///         assert_ne!(add, 13, "bad luck");
    ///         self.0 += add;
    ///         self.0
    ///     }
    /// }
    /// let counter = actor::Builder::new()
    ///     .restarts(Restarts::at_most(3))
    ///     .spawn(|| Counter(0))
    ///     .unwrap();
    /// assert_eq!(counter.ask(5), Ok(5));
    /// assert!(matches!(counter.ask(13), Err(AskError::Failed(_))));
    /// assert_eq!(counter.ask(5), Ok(5)); // a new state
    /// ```
    pub fn restarts(mut self, restarts: Restarts) -> Builder {
        self.rare().restarts = Some(restarts);
        self
    }

    /// Sets how long a message may take. The handler of one that takes longer is interrupted: its
    /// blocking calls fail with `ECANCELED`. When it then returns or panics, the actor has failed,
    /// as after a panic, since its state may be half changed. An asker gets what the handler
    /// returns.
    ///
    /// If the handler ignores the interrupt, the actor waits until it returns: no other thread
    /// works on the state meanwhile. Processes have no such limit, since their functions decide
    /// when to receive, and neither have the workers of a pool.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Context, Handler, Restarts};
    /// use std::io::{self, Read};
    /// use std::time::Duration;
    ///
    /// struct Reader(io::PipeReader);
    /// impl Handler<()> for Reader {
    ///     type Reply = io::Result<u8>;
    ///     fn handle(&mut self, (): (), _: &Context<Self>) -> io::Result<u8> {
    ///         let mut byte = [0];
    ///         self.0.read_exact(&mut byte)?;
    ///         Ok(byte[0])
    ///     }
    /// }
    /// let (reader, writer) = io::pipe().unwrap();
    /// let reader = actor::Builder::new()
    ///     .message_timeout(Duration::from_millis(10))
    ///     .restarts(Restarts::at_most(1))
    ///     .spawn(move || Reader(reader.try_clone().unwrap()))
    ///     .unwrap();
    /// assert!(reader.ask(()).unwrap().is_err()); // no thread writes
    /// # drop(writer);
    /// ```
    pub fn message_timeout(mut self, timeout: Duration) -> Builder {
        self.message_timeout = Some(timeout);
        self.rare();
        self
    }

    /// Sets the least time between the starts of two messages, sent or asked. Other messages wait
    /// in the mailbox. A `stop` or a `kill` ends the pause at once.
    ///
    /// A process is not limited, since its function decides when to receive, and neither is a pool.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use std::time::{Duration, Instant};
    ///
    /// let pause = Duration::from_millis(2);
    /// let now = actor::Builder::new().rate_limit(pause).function(|()| Instant::now());
    /// let start = Instant::now();
    /// now.send(()).unwrap(); // at once
    /// assert!(now.ask(()).unwrap() - start >= pause);
    /// ```
    pub fn rate_limit(mut self, least_between: Duration) -> Builder {
        self.rare().least_between = Some(least_between);
        self
    }

    /// Returns the function that is called for messages that were never begun.
    pub(crate) fn undelivered(&self) -> Option<OnUndelivered> {
        self.rare.as_ref()?.on_undelivered.clone()
    }

    /// Sets a function that the actor calls when it ends, with the name of the message's type, for
    /// each message that was sent and never begun.
    pub fn on_undelivered(mut self, f: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        self.rare().on_undelivered = Some(Arc::new(f));
        self
    }

    /// Returns a builder of the workers of a pool that this builder makes.
    pub(crate) fn of_workers(&self) -> Builder {
        let rare = self.rare.clone().map(|rare| Rare {
            least_between: None,
            ..rare
        });
        Builder {
            rare,
            // For work loops, and messages that the worker sends to itself.
            ..Builder::new().unbounded()
        }
    }

    /// Puts the actors under a supervisor.
    pub(crate) fn supervisor(mut self, reporter: Reporter) -> Builder {
        self.rare().supervisor = Some(reporter);
        self
    }

    /// Makes an actor. The recipe makes its state on the actor's thread: at once, and after each
    /// failure if there are [`restarts`](Builder::restarts).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn spawn<S: Send + 'static>(&self, recipe: impl IntoRecipe<S>) -> io::Result<Ref<S>> {
        let (mut make, hooks) = recipe.into_parts();
        self.spawn_recipe(Recipe::new(move || Ok(make()), hooks))
    }

    /// Makes an actor with a recipe that may fail. [`Ref::ready`] waits until the recipe has
    /// succeeded.
    ///
    /// # Errors
    /// If no thread can be started.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use std::fs::File;
    ///
    /// let builder = actor::Builder::new();
    /// let file = builder.try_spawn(|| File::open("/there/is/none")).unwrap();
    /// assert!(file.ready().unwrap_err().to_string().starts_with("failed: No such file"));
    /// ```
    pub fn try_spawn<S, E, F>(&self, mut recipe: F) -> io::Result<Ref<S>>
    where
        S: Send + 'static,
        E: fmt::Display,
        F: FnMut() -> Result<S, E> + Send + 'static,
    {
        let make = move || recipe().map_err(|error| Failure::new(error.to_string()));
        self.spawn_recipe(Recipe::new(make, Hooks::new()))
    }

    pub(crate) fn spawn_recipe<S: Send + 'static>(&self, recipe: Recipe<S>) -> io::Result<Ref<S>> {
        let actor = self.prepare(recipe);
        let then = actor.cell().mailbox.begin();
        actor.cell().then(then);
        Ok(actor)
    }

    /// Makes an actor whose recipe runs when the first message comes.
    pub(crate) fn prepare<S: Send + 'static>(&self, recipe: Recipe<S>) -> Ref<S> {
        self.make(None, recipe)
    }

    /// Returns the actor's identity, its mailbox's capacity and overflow, and its options.
    pub(crate) fn plan(&self) -> (Identity, (usize, Overflow), Options) {
        let identity = Identity::new(self.name.clone());
        (identity, (self.capacity, self.overflow), self.options())
    }

    /// Makes an actor with this state. It has no thread until it gets a message.
    pub fn spawn_with<S: Send + 'static>(&self, state: S) -> Ref<S> {
        self.make(Some(state), Recipe::NONE)
    }

    /// Makes an actor with this state and these hooks. Calls `started` on the actor's thread, at
    /// once. See [`Hooks`] for an example.
    ///
    /// There is no recipe for another state, so the actor does not restart.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn spawn_hooked<S: Send + 'static>(&self, state: S, hooks: Hooks<S>) -> io::Result<Ref<S>> {
        self.spawn_recipe(Recipe::once(state, hooks))
    }

    fn make<S: Send + 'static>(&self, state: Option<S>, recipe: Recipe<S>) -> Ref<S> {
        let (identity, bounds, options) = self.plan();
        // SAFETY: `S` is `'static`: state and messages borrow nothing.
        let cell = unsafe { ActorCell::borrowing(identity, bounds, (state, recipe), options) };
        let seen = Arc::downgrade(&cell);
        snapshot::enter(cell.identity(), seen);
        Ref::adopt(cell)
    }

    fn options(&self) -> Options {
        let rare = self.rare.clone()?;
        Some(Arc::new(Rare {
            overtime: self.message_timeout.map(Overtime::new),
            ..rare
        }))
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Makes an actor that calls `f` for each message, and answers with the result.
    pub fn function<M, R, F>(&self, f: F) -> Address<M, R>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnMut(M) -> R + Send + 'static,
    {
        self.spawn_with(Function::new(f)).address()
    }

    /// Makes an actor that calls `f` for each message.
    pub fn consumer<M, F>(&self, f: F) -> Address<M>
    where
        M: Send + 'static,
        F: FnMut(M) + Send + 'static,
    {
        self.function(f)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .field("overflow", &self.overflow)
            .finish_non_exhaustive()
    }
}

/// Makes an actor with this state. It has no thread until it gets a message.
///
/// # Examples
/// See [`Handler`](crate::Handler) for messages. A state without handlers is an actor, too: it runs
/// code that other threads send.
/// ```
/// use pirn_actor as actor;
///
/// let words = actor::spawn(vec!["two", "one"]);
/// words.run_detached(|words| words.push("three")).unwrap(); // does not wait
/// let sorted = words.run_later(|words| {
///     words.sort();
///     words.join(" ")
/// });
/// assert_eq!(words.run(|words| words.len()), Ok(3)); // waits
/// assert_eq!(sorted.unwrap().recv().unwrap(), "one three two");
/// ```
pub fn spawn<S: Send + 'static>(state: S) -> Ref<S> {
    Builder::new().spawn_with(state)
}

/// Makes an actor that calls `f` for each message, and answers with the result.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let square = actor::function(|n: u64| n * n);
/// assert_eq!(square.ask(7).unwrap(), 49); // parks until the answer is there
/// ```
pub fn function<M, R, F>(f: F) -> Address<M, R>
where
    M: Send + 'static,
    R: Send + 'static,
    F: FnMut(M) -> R + Send + 'static,
{
    Builder::new().function(f)
}

/// Makes an actor that calls `f` for each message.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let log = actor::consumer(|line: String| eprintln!("{line}"));
/// log.send("hello".to_string()).unwrap();
/// ```
pub fn consumer<M, F>(f: F) -> Address<M>
where
    M: Send + 'static,
    F: FnMut(M) + Send + 'static,
{
    Builder::new().consumer(f)
}
