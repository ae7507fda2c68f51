//! Builders of supervisors.

use super::events::{Event, Reporter, TreeEvent};
use super::node::{self, Branch, Slot, Start};
use super::plan::Strategy;
use super::run::{Child, Kind, Rules, Runner};
use super::table::{Entry, Table, What};
use super::tree::{Awaited, Siblings, Tree};
use crate::actor::{Builder, Hooks, IntoRecipe, Restarts};
use crate::error::{Exit, Failure, short_name};
use crate::life::Actor;
use crate::poison::locked;
use crate::process::Inbox;
use core::fmt;
use core::ops::{Deref, Range};
use core::time::Duration;
use std::error::Error;
use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// A builder of a supervisor. The supervisor starts its children in order, restarts them when they
/// fail, and ends them in reverse order.
///
/// # Failures
/// A child fails when a handler panics or takes [too long](crate::Builder::message_timeout), or
/// when its recipe does not make a state. Its mailbox is then held: messages and askers wait while
/// the recipe makes another state. References to the child stay good. Only the request that made it
/// fail gets [`AskError::Failed`](crate::AskError::Failed).
///
/// The strategy names the children that are restarted with it: none
/// ([`one_for_one`](Supervisor::one_for_one)), all ([`one_for_all`](Supervisor::one_for_all)), or
/// those after it ([`rest_for_one`](Supervisor::rest_for_one)). The supervisor holds them in
/// reverse order, each after its current message, which is interrupted. Then the recipes make new
/// states in order, each when the child before is ready.
///
/// After more [restarts](Supervisor::restarts) than are allowed, the supervisor fails itself: it
/// ends its children in reverse order, and its own exit is [`Exit::Failed`](crate::Exit::Failed). A
/// supervisor that is a [child](Supervisor::supervisor) of another one pauses its children instead,
/// and the supervisor above decides.
///
/// # Ends
/// If other code ends a child (by a close, a stop, a kill, or a full mailbox under
/// [`Overflow::Stop`](crate::Overflow::Stop)), its mailbox has ended, and references to it get
/// `Gone`. The supervisor then does what OTP does:
///
/// | a child is | failed | killed | closed, stopped |
/// |---|---|---|---|
/// | permanent (the default) | restarted | replaced | replaced |
/// | [transient](Supervisor::transient) | restarted | replaced | over |
/// | [temporary](Supervisor::temporary) | over | over | over |
///
/// To replace a child, the supervisor makes another actor under the same name, with a state made by
/// the same recipe: [`Tree::get`] finds it. That counts as a restart, and the strategy applies. The
/// supervisor has a reference of its own to each child, so a child is not closed when all other
/// references are dropped.
///
/// # Examples
/// ```
/// use pirn_actor::{Context, Handler, Ref};
/// use pirn_actor::supervisor::Supervisor;
/// use std::time::Duration;
///
/// struct Db(Vec<u64>);
/// impl Handler<u64> for Db {
///     type Reply = usize;
///     fn handle(&mut self, row: u64, _: &Context<Self>) -> usize {
///         assert_ne!(row, 13, "bad luck");
///         self.0.push(row);
///         self.0.len()
///     }
/// }
/// let app = Supervisor::rest_for_one()
///     .restarts(5, Duration::from_secs(10))
///     .backoff(Duration::from_millis(1)..Duration::from_secs(5))
///     .child("db", || Db(Vec::new()))
///     .child("cache", || Db(Vec::new()))
///     .start()
///     .unwrap();
/// let db: Ref<Db> = app.get("db").unwrap();
/// assert_eq!(db.ask(1), Ok(1));
/// assert!(db.ask(13).is_err());
/// assert_eq!(db.ask(2), Ok(1)); // the same reference, a new state
/// app.stop();
/// app.join();
/// ```
pub struct Supervisor {
    name: Arc<str>,
    rules: Rules,
    children: Vec<Child>,
    entries: Vec<Entry>,
    /// A name given to two children.
    twice: Option<Arc<str>>,
    /// For [`Siblings`], which find the table here once it exists.
    table: Awaited,
}

impl Supervisor {
    fn new(strategy: Strategy) -> Supervisor {
        Supervisor {
            name: "supervisor".into(),
            rules: Rules {
                strategy,
                restarts: Restarts::at_most(3).within(Duration::from_secs(5)),
                grace: Duration::from_secs(5),
                hook: None,
            },
            children: Vec::new(),
            entries: Vec::new(),
            twice: None,
            table: Awaited::default(),
        }
    }

    /// Returns a builder of a supervisor that restarts the child that fails, and no other.
    pub fn one_for_one() -> Supervisor {
        Supervisor::new(Strategy::OneForOne)
    }

    /// Returns a builder of a supervisor that restarts all children when one of them fails.
    pub fn one_for_all() -> Supervisor {
        Supervisor::new(Strategy::OneForAll)
    }

    /// Returns a builder of a supervisor that restarts the child that fails, and those added after
    /// it.
    pub fn rest_for_one() -> Supervisor {
        Supervisor::new(Strategy::RestForOne)
    }

    /// Sets the name for errors, dumps and snapshots: `"supervisor"` by default.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Supervisor {
        self.name = name.into();
        self
    }

    /// Sets how many restarts of all children together are allowed within a period: 3 within 5 s by
    /// default. With one more, the supervisor fails itself. A recipe that fails counts, too. A
    /// child that is restarted because of another one does not.
    pub fn restarts(mut self, most: usize, period: Duration) -> Supervisor {
        (self.rules.restarts.most, self.rules.restarts.within) = (most, period);
        self
    }

    /// Sets the pause between a failure and the restart: the start of the range at first, twice as
    /// long after each further restart within the period, up to the end of the range. There is no
    /// pause by default.
    pub fn backoff(mut self, range: Range<Duration>) -> Supervisor {
        self.rules.restarts.backoff = range;
        self
    }

    /// Sets the time that a child may take to end or to pause: 5 s by default.
    ///
    /// A child that has not ended by then is killed. If it has not ended after the same time again,
    /// it is left alone. A child that does not pause in time, because its handler ignores the
    /// interrupt, is left running, and the supervisor restarts the others: it cannot end the
    /// child's thread, and no second thread works on the child's state. At the end of its message,
    /// that child restarts, too. Until then it is [`Stuck`](crate::supervisor::ChildState::Stuck).
    pub fn grace(mut self, time: Duration) -> Supervisor {
        self.rules.grace = time;
        self
    }

    /// Sets a function that is called with each event of the children, for logs and metrics. It
    /// runs on the supervisor's thread, which does nothing else meanwhile. Supervisors that are
    /// children call it, too, unless they have one of their own.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Context, Handler, Ref};
    /// use pirn_actor::supervisor::{Supervisor, TreeEvent};
    /// use std::sync::mpsc;
    ///
    /// struct Careless;
    /// impl Handler<()> for Careless {
    ///     type Reply = ();
    ///     fn handle(&mut self, (): (), _: &Context<Self>) {
    ///         panic!("oh no");
    ///     }
    /// }
    /// let (tell, told) = mpsc::channel();
    /// let app = Supervisor::one_for_one()
    ///     .on_event(move |event| drop(tell.send(event.clone())))
    ///     .child("careless", || Careless)
    ///     .start()
    ///     .unwrap();
    /// app.get::<Ref<Careless>>("careless").unwrap().send(()).unwrap();
    /// let TreeEvent::Failed { child, failure, .. } = told.recv().unwrap() else { panic!() };
    /// assert_eq!(format!("{child} {failure}"), "careless panicked: oh no");
    /// assert!(matches!(told.recv().unwrap(), TreeEvent::Restarted { .. }));
    /// ```
    pub fn on_event(mut self, f: impl Fn(&TreeEvent) + Send + Sync + 'static) -> Supervisor {
        self.rules.hook = Some(Arc::new(f));
        self
    }

    /// Adds an actor. The recipe makes its state, at first and at each restart.
    pub fn child<S: Send + 'static>(
        self,
        name: impl Into<Arc<str>>,
        recipe: impl IntoRecipe<S>,
    ) -> Supervisor {
        let (mut make, hooks) = recipe.into_parts();
        let start = node::actor(move || Ok(make()), hooks);
        self.leaf(name.into(), short_name::<S>(), start)
    }

    /// Adds an actor with a recipe that may fail.
    pub fn try_child<S, E, F>(self, name: impl Into<Arc<str>>, mut recipe: F) -> Supervisor
    where
        S: Send + 'static,
        E: fmt::Display,
        F: FnMut() -> Result<S, E> + Send + 'static,
    {
        let make = move || recipe().map_err(|error| Failure::new(error.to_string()));
        self.leaf(
            name.into(),
            short_name::<S>(),
            node::actor(make, Hooks::new()),
        )
    }

    fn leaf<R>(
        self,
        name: Arc<str>,
        kind: &'static str,
        start: impl FnMut(Builder, &Reporter) -> io::Result<R> + Send + 'static,
    ) -> Supervisor
    where
        R: Deref<Target = dyn Actor> + Send + 'static,
    {
        let slot = Slot::default();
        let what = What::Actor(Box::new(Arc::clone(&slot)));
        self.add(name, kind, what, node::leaf(slot, start))
    }

    /// Adds a process: its function runs again, from the beginning, at each restart.
    ///
    /// Messages stay in the mailbox, and those put aside stay there. The process has failed when
    /// its function panics, and has ended when its function returns. It is ready when its function
    /// begins. To pause it, the supervisor interrupts it, and its receives fail with
    /// [`RecvError::Interrupted`](crate::process::RecvError::Interrupted) until the function
    /// returns.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::process::{Inbox, Process};
    /// use pirn_actor::reply::ReplyTo;
    /// use pirn_actor::supervisor::Supervisor;
    ///
    /// let app = Supervisor::one_for_one()
    ///     .process("count", |inbox: &mut Inbox<(u32, ReplyTo<u32>)>| {
    ///         let mut sum = 0;
    ///         while let Ok((n, reply)) = inbox.recv() {
    ///             assert_ne!(n, 13, "bad luck");
    ///             sum += n;
    ///             reply.send(sum);
    ///         }
    ///     })
    ///     .start()
    ///     .unwrap();
    /// let count: Process<(u32, ReplyTo<u32>)> = app.get("count").unwrap();
    /// assert_eq!(count.ask(|reply| (5, reply)), Ok(5));
    /// assert!(count.ask(|reply| (13, reply)).is_err());
    /// assert_eq!(count.ask(|reply| (5, reply)), Ok(5)); // from the beginning
    /// ```
    pub fn process<M, F>(self, name: impl Into<Arc<str>>, function: F) -> Supervisor
    where
        M: Send + 'static,
        F: FnMut(&mut Inbox<M>) + Send + 'static,
    {
        self.leaf(name.into(), "process", node::process(function))
    }

    /// Adds a supervisor with its children, under this name.
    ///
    /// When it fails, its children pause in reverse order, and this supervisor restarts it: all of
    /// its children then restart in order. References to them stay good.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Ref;
    /// use pirn_actor::supervisor::Supervisor;
    ///
    /// let billing = Supervisor::one_for_all()
    ///     .child("ledger", Vec::<u64>::new)
    ///     .child("mailer", || "no mail".to_string());
    /// let app = Supervisor::one_for_one()
    ///     .supervisor("billing", billing)
    ///     .start()
    ///     .unwrap();
    /// let ledger: Ref<Vec<u64>> = app.get("billing/ledger").unwrap();
    /// assert_eq!(ledger.run(|rows| rows.len()), Ok(0));
    /// ```
    pub fn supervisor(mut self, name: impl Into<Arc<str>>, supervisor: Supervisor) -> Supervisor {
        let name = name.into();
        let twice = supervisor.twice.as_ref();
        let twice = twice.map(|child| format!("{name}/{child}").into());
        self.twice = self.twice.or(twice);
        let branch = supervisor.name(Arc::clone(&name)).branch();
        let what = What::Tree(Arc::clone(&branch.table));
        self.add(name, "supervisor", what, branch.into_start())
    }

    fn add(mut self, name: Arc<str>, kind: &'static str, what: What, start: Start) -> Supervisor {
        if self.entries.iter().any(|entry| entry.name == name) {
            self.twice.get_or_insert_with(|| Arc::clone(&name));
        }
        self.entries.push(Entry::new(Arc::clone(&name), kind, what));
        self.children.push(Child::new(name, start));
        self
    }

    /// Restarts the child that was added last only after a failure or a kill: when it is closed or
    /// stopped, it has ended.
    ///
    /// # Panics
    /// If there is no child yet.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Ref;
    /// use pirn_actor::supervisor::{ChildState, Supervisor};
    ///
    /// let app = Supervisor::one_for_one()
    ///     .child("import", || 0_u64)
    ///     .transient()
    ///     .start()
    ///     .unwrap();
    /// let import: Ref<u64> = app.get("import").unwrap();
    /// import.close();
    /// import.join();
    /// # while app.children()[0].state != ChildState::Ended { std::thread::yield_now() }
    /// assert_eq!(app.children()[0].state, ChildState::Ended);
    /// ```
    pub fn transient(self) -> Supervisor {
        self.kind(Kind::Transient)
    }

    /// Never restarts the child that was added last, neither after a failure nor with others. A
    /// failure ends it, and restarts no other child.
    ///
    /// # Panics
    /// If there is no child yet.
    pub fn temporary(self) -> Supervisor {
        self.kind(Kind::Temporary)
    }

    /// Makes the child that was added last with this builder: with another capacity, or a time
    /// limit for its messages. The builder's own [`restarts`](Builder::restarts) come first: the
    /// supervisor learns of a failure only after them.
    ///
    /// # Panics
    /// If there is no child yet.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Builder, Ref};
    /// use pirn_actor::supervisor::Supervisor;
    /// use std::time::Duration;
    ///
    /// let small = Builder::new().capacity(8).message_timeout(Duration::from_secs(1));
    /// let app = Supervisor::one_for_one()
    ///     .child("list", Vec::<u64>::new)
    ///     .builder(small)
    ///     .start()
    ///     .unwrap();
    /// let list: Ref<Vec<u64>> = app.get("list").unwrap();
    /// assert_eq!(list.run(|list| list.len()), Ok(0));
    /// ```
    pub fn builder(mut self, builder: Builder) -> Supervisor {
        self.last_child().builder = builder;
        self
    }

    /// Gives the child that was added last a [grace](Supervisor::grace) of its own.
    ///
    /// # Panics
    /// If there is no child yet.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::supervisor::Supervisor;
    /// use std::time::Duration;
    ///
    /// let app = Supervisor::one_for_one()
    ///     .child("journal", Vec::<String>::new)
    ///     .child_grace(Duration::from_secs(60)) // it writes to disk
    ///     .child("cache", Vec::<String>::new)
    ///     .start()
    ///     .unwrap();
    /// app.stop();
    /// ```
    pub fn child_grace(mut self, time: Duration) -> Supervisor {
        self.last_child().grace = Some(time);
        self
    }

    fn kind(mut self, kind: Kind) -> Supervisor {
        self.last_child().kind = kind;
        self
    }

    fn last_child(&mut self) -> &mut Child {
        let last = self.children.last_mut();
        last.expect("add a child first: this sets something of the last one")
    }

    /// Returns a handle that finds the children added so far, once the supervisor has started.
    ///
    /// It is for the recipes and functions of the children added after them, which run when the
    /// children before are ready. A reference that it has found stays good when the child is
    /// restarted.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Context, Handler, Ref};
    /// use pirn_actor::supervisor::Supervisor;
    ///
    /// struct Report {
    ///     rows: Ref<Vec<u64>>,
    /// }
    /// impl Handler<()> for Report {
    ///     type Reply = usize;
    ///     fn handle(&mut self, (): (), _: &Context<Self>) -> usize {
    ///         self.rows.run(|rows| rows.len()).unwrap()
    ///     }
    /// }
    /// let app = Supervisor::rest_for_one().child("rows", || vec![1_u64, 2, 3]);
    /// let before = app.siblings();
    /// let app = app
    ///     .try_child("report", move || before.get("rows").map(|rows| Report { rows }))
    ///     .start()
    ///     .unwrap();
    /// assert_eq!(app.get::<Ref<Report>>("report").unwrap().ask(()), Ok(3));
    /// ```
    pub fn siblings(&self) -> Siblings {
        Siblings {
            table: Arc::clone(&self.table),
            count: self.entries.len(),
        }
    }

    /// Adds an actor that calls a closure for each message. The recipe makes the closure, at first
    /// and at each restart. Look-ups find its [`Address`](crate::Address).
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Address;
    /// use pirn_actor::supervisor::Supervisor;
    ///
    /// let app = Supervisor::one_for_one()
    ///     .function("sum", || {
    ///         let mut sum = 0;
    ///         move |n: u32| {
    ///             sum += n;
    ///             sum
    ///         }
    ///     })
    ///     .start()
    ///     .unwrap();
    /// let sum: Address<u32, u32> = app.get("sum").unwrap();
    /// assert_eq!((sum.ask(2), sum.ask(3)), (Ok(2), Ok(5)));
    /// ```
    pub fn function<M, R, F>(
        self,
        name: impl Into<Arc<str>>,
        recipe: impl FnMut() -> F + Send + 'static,
    ) -> Supervisor
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnMut(M) -> R + Send + 'static,
    {
        self.leaf(name.into(), "function", node::function(recipe))
    }

    fn branch(self) -> Branch {
        let (sender, events) = channel();
        let table = Table::new(self.name, self.entries, sender);
        let is_new = self.table.set(Arc::downgrade(&table)).is_ok();
        debug_assert!(is_new, "a supervisor is started once");
        let runner = Runner::new(Arc::clone(&table), self.rules, self.children, events);
        let runner = Arc::new(Mutex::new(runner));
        Branch { runner, table }
    }

    /// Starts the children in order, each when the child before is ready.
    ///
    /// Waits until all are ready, however long their recipes take.
    ///
    /// # Errors
    /// If a child's recipe fails: the children before it have then ended, in reverse order. If two
    /// children have the same name. If no thread can be started for the supervisor.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::supervisor::{StartError, Supervisor};
    /// use std::fs::File;
    ///
    /// let app = Supervisor::one_for_one()
    ///     .child("list", Vec::<u64>::new)
    ///     .try_child("file", || File::open("/there/is/none"));
    /// let error = app.start().unwrap_err();
    /// assert!(error.to_string().starts_with("file did not start: No such file"));
    /// ```
    pub fn start(self) -> Result<Tree, StartError> {
        if let Some(name) = self.twice {
            return Err(StartError::SameName { name });
        }
        let root = self.branch();
        let tree = Tree(Arc::clone(&root.table));
        let (events, told) = channel();
        let starter = Reporter {
            child: 0,
            holds: false,
            events,
            path: String::new(),
            hook: None,
        };
        let (tell, runner) = (starter.clone(), Arc::clone(&root.runner));
        let table = Arc::clone(&root.table);
        let ended = move |exit: Exit| {
            locked(&runner).finish();
            tell.ended(exit.clone());
            table.life.ending.publish(&exit);
        };
        root.start(starter, ended).map_err(StartError::Thread)?;
        if let Ok(Event::Changed(..)) = told.recv() {
            return Ok(tree);
        }
        let not_started = locked(&root.runner).not_started.take();
        let failed = || (tree.name(), Failure::new("the supervisor has failed"));
        let (child, failure) = not_started.unwrap_or_else(failed);
        Err(StartError::Failed { child, failure })
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.entries.iter().map(|entry| &entry.name).collect();
        f.debug_struct("Supervisor")
            .field("name", &self.name)
            .field("strategy", &self.rules.strategy)
            .field("children", &names)
            .finish_non_exhaustive()
    }
}

/// Why a supervisor did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// This child did not start. The others have ended.
    #[non_exhaustive]
    Failed {
        /// The child's name.
        child: Arc<str>,
        /// Why it did not start.
        failure: Failure,
    },
    /// Two children have this name.
    #[non_exhaustive]
    SameName {
        /// The name.
        name: Arc<str>,
    },
    /// No thread could be started for the supervisor.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Failed { child, failure } => write!(f, "{child} did not start: {failure}"),
            StartError::SameName { name } => write!(f, "two children have the name {name}"),
            StartError::Thread(error) => write!(f, "cannot start the supervisor's thread: {error}"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StartError::Thread(error) => Some(error),
            StartError::Failed { .. } | StartError::SameName { .. } => None,
        }
    }
}
