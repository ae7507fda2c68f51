//! Making supervisors.

use super::error::StartError;
use super::events::TreeEvent;
use super::node::{Branch, Leaf, Node};
use super::plan::Strategy;
use super::run::{Child, Kind, Parent, Rules, Runner};
use super::table::{Entry, Table, What};
use super::tree::{Awaited, Siblings, Tree};
use crate::actor::{Builder, IntoRecipe, Restarts};
use crate::error::{Failure, short_name};
use crate::life::Actor;
use crate::process::Inbox;
use core::fmt;
use core::ops::{Deref, Range};
use core::time::Duration;
use pirn::thread;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// A supervisor that is being made: it starts its children in order, begins them anew when they
/// fail, and ends them in reverse order.
///
/// # Failures
/// A child fails when a handler panics or takes [too long](crate::Builder::message_timeout), or
/// when its recipe does not make a state. Its mailbox is then held: messages wait, and so do
/// askers, while the recipe makes another state. References to the child stay good. The request
/// that made it fail gets [`AskError::Failed`](crate::AskError::Failed), and no other one does.
///
/// Which children are restarted with it is the strategy: none
/// ([`one_for_one`](Supervisor::one_for_one)), all ([`one_for_all`](Supervisor::one_for_all)), or
/// those after it ([`rest_for_one`](Supervisor::rest_for_one)). Those are held in reverse order,
/// each after the message that it is at, which is interrupted; then the states are made in order,
/// each when the one before is ready.
///
/// When there are more [restarts](Supervisor::restarts) than are allowed, the supervisor fails
/// itself: it ends its children in reverse order, and its own end is
/// [`Exit::Failed`](crate::Exit::Failed). One that is a [child](Supervisor::supervisor) of another
/// one has its children pause, and that one decides.
///
/// # Ends
/// A child that is ended by other code (closed, stopped, killed, full under
/// [`Overflow::Stop`](crate::Overflow::Stop)) has a mailbox that is over, and references to it are.
/// What follows is as in OTP:
///
/// | a child is | failed | killed | closed, stopped |
/// |---|---|---|---|
/// | permanent, as all are at first | restarted | replaced | replaced |
/// | [transient](Supervisor::transient) | restarted | replaced | over |
/// | [temporary](Supervisor::temporary) | over | over | over |
///
/// A child that is replaced is another actor under the same name, with a state of the same recipe:
/// [`Tree::get`] finds it. That counts as a restart, and the strategy applies. The supervisor has a
/// reference of its own to each child, so no child is closed because others have dropped theirs.
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
    strategy: Strategy,
    most: usize,
    period: Duration,
    backoff: Range<Duration>,
    grace: Duration,
    hook: Option<super::events::Hook>,
    children: Vec<Child>,
    entries: Vec<Entry>,
    /// A name that two children have.
    twice: Option<Arc<str>>,
    /// For those who look for siblings.
    table: Awaited,
}

impl Supervisor {
    fn new(strategy: Strategy) -> Supervisor {
        Supervisor {
            name: "supervisor".into(),
            strategy,
            most: 3,
            period: Duration::from_secs(5),
            backoff: Duration::ZERO..Duration::ZERO,
            grace: Duration::from_secs(5),
            hook: None,
            children: Vec::new(),
            entries: Vec::new(),
            twice: None,
            table: Awaited::default(),
        }
    }

    /// Returns a supervisor that restarts the child that fails, and no other.
    pub fn one_for_one() -> Supervisor {
        Supervisor::new(Strategy::OneForOne)
    }

    /// Returns a supervisor that restarts all children when one of them fails.
    pub fn one_for_all() -> Supervisor {
        Supervisor::new(Strategy::OneForAll)
    }

    /// Returns a supervisor that restarts the child that fails, and those that were added after it.
    pub fn rest_for_one() -> Supervisor {
        Supervisor::new(Strategy::RestForOne)
    }

    /// Sets the name, for people: `"supervisor"` at first.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Supervisor {
        self.name = name.into();
        self
    }

    /// Sets how many restarts there may be within a period, of all children together: 3 within 5 s
    /// at first. With one more, the supervisor fails itself. A recipe that fails counts, too; a
    /// child that is restarted because of another one does not.
    pub fn restarts(mut self, most: usize, period: Duration) -> Supervisor {
        (self.most, self.period) = (most, period);
        self
    }

    /// Sets the time between a failure and the restart: the start of the range the first time,
    /// twice as long with each restart within the period, up to the end of the range. None at
    /// first.
    pub fn backoff(mut self, range: Range<Duration>) -> Supervisor {
        self.backoff = range;
        self
    }

    /// Sets the time that a child has to end, or to pause, when it is told to: 5 s at first.
    ///
    /// A child that has not ended then is killed, and after the same time again it is left alone.
    /// One that does not pause in time, because its handler does not hear the interrupt, is left as
    /// it is, and the restart goes on with the others: its thread cannot be ended, and no second
    /// one works on its state. When it has come to the end of its message, it begins anew.
    /// Meanwhile it is [`Stuck`](crate::supervisor::ChildState::Stuck).
    pub fn grace(mut self, time: Duration) -> Supervisor {
        self.grace = time;
        self
    }

    /// Has a function told what happens to the children, for logs and metrics: on the supervisor's
    /// thread, which meanwhile does nothing else. Supervisors that are children tell it as well.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Context, Handler};
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
    /// app.get::<Careless>("careless").unwrap().send(()).unwrap();
    /// let TreeEvent::Failed { child, failure, .. } = told.recv().unwrap() else { panic!() };
    /// assert_eq!(format!("{child} {failure}"), "careless panicked: oh no");
    /// assert!(matches!(told.recv().unwrap(), TreeEvent::Restarted { .. }));
    /// ```
    pub fn on_event(mut self, f: impl Fn(&TreeEvent) + Send + Sync + 'static) -> Supervisor {
        self.hook = Some(Arc::new(f));
        self
    }

    /// Adds an actor, whose state is made by this recipe, at first and again at each restart.
    pub fn child<S: Send + 'static>(
        self,
        name: impl Into<Arc<str>>,
        recipe: impl IntoRecipe<S>,
    ) -> Supervisor {
        let (mut make, hooks) = recipe.into_parts();
        let leaf = Leaf::actor(move || Ok(make()), hooks);
        self.leaf(name.into(), short_name::<S>(), leaf)
    }

    /// Adds an actor, whose state is made by a recipe that may fail.
    pub fn try_child<S, E, F>(self, name: impl Into<Arc<str>>, mut recipe: F) -> Supervisor
    where
        S: Send + 'static,
        E: fmt::Display,
        F: FnMut() -> Result<S, E> + Send + 'static,
    {
        let make = move || recipe().map_err(|error| Failure::new(error.to_string()));
        self.leaf(name.into(), short_name::<S>(), Leaf::actor(make, None))
    }

    fn leaf<R>(self, name: Arc<str>, kind: &'static str, leaf: Leaf<R>) -> Supervisor
    where
        R: Deref<Target = dyn Actor> + Clone + Send + 'static,
    {
        let what = What::Actor(Box::new(leaf.slot()));
        self.add(name, kind, what, Box::new(leaf))
    }

    /// Adds a process: its function runs again, from the beginning, at each restart.
    ///
    /// What is in the mailbox stays there, and what was put aside. The process has failed when it
    /// panics; when it returns, it has ended. It is ready when it begins. Told to pause, it is
    /// interrupted, and its receives fail with
    /// [`RecvError::Interrupted`](crate::process::RecvError::Interrupted) until it returns.
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
    /// let count: Process<(u32, ReplyTo<u32>)> = app.get_process("count").unwrap();
    /// assert_eq!(count.ask(|reply| (5, reply)), Ok(5));
    /// assert!(count.ask(|reply| (13, reply)).is_err());
    /// assert_eq!(count.ask(|reply| (5, reply)), Ok(5)); // from the beginning
    /// ```
    pub fn process<M, F>(self, name: impl Into<Arc<str>>, function: F) -> Supervisor
    where
        M: Send + 'static,
        F: FnMut(&mut Inbox<M>) + Send + 'static,
    {
        self.leaf(name.into(), "process", Leaf::process(function))
    }

    /// Adds a supervisor with its children. Its name among the children is this one.
    ///
    /// When it fails, its children pause in reverse order, and this supervisor restarts it: all of
    /// its children then begin anew, in order. References to them stay good.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::supervisor::Supervisor;
    ///
    /// let billing = Supervisor::one_for_all()
    ///     .child("ledger", Vec::<u64>::new)
    ///     .child("mailer", || "no mail".to_string());
    /// let app = Supervisor::one_for_one()
    ///     .supervisor("billing", billing)
    ///     .start()
    ///     .unwrap();
    /// let ledger = app.get::<Vec<u64>>("billing/ledger").unwrap();
    /// assert_eq!(ledger.run(|rows| rows.len()), Ok(0));
    /// ```
    pub fn supervisor(mut self, name: impl Into<Arc<str>>, supervisor: Supervisor) -> Supervisor {
        let name = name.into();
        let twice = supervisor.twice.as_ref();
        let twice = twice.map(|child| format!("{name}/{child}").into());
        self.twice = self.twice.or(twice);
        let runner = supervisor.name(Arc::clone(&name)).runner();
        let what = What::Tree(runner.table());
        self.add(name, "supervisor", what, Box::new(Branch::new(runner)))
    }

    fn add(
        mut self,
        name: Arc<str>,
        kind: &'static str,
        what: What,
        node: Box<dyn Node>,
    ) -> Supervisor {
        if self.entries.iter().any(|entry| entry.name == name) {
            self.twice.get_or_insert_with(|| Arc::clone(&name));
        }
        self.entries.push(Entry::new(Arc::clone(&name), kind, what));
        self.children.push(Child::new(name, node));
        self
    }

    /// Has the child that was added last begin anew only after a failure or a kill: once closed or
    /// stopped, it is over.
    ///
    /// # Panics
    /// If there is no child yet.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::supervisor::{ChildState, Supervisor};
    ///
    /// let app = Supervisor::one_for_one()
    ///     .child("import", || 0_u64)
    ///     .transient()
    ///     .start()
    ///     .unwrap();
    /// let import = app.get::<u64>("import").unwrap();
    /// import.close();
    /// import.join();
    /// # while app.children()[0].state != ChildState::Ended { std::thread::yield_now() }
    /// assert_eq!(app.children()[0].state, ChildState::Ended);
    /// ```
    pub fn transient(self) -> Supervisor {
        self.kind(Kind::Transient)
    }

    /// Has the child that was added last never begin anew: not after a failure, and not with
    /// others. A failure is its end, and no other child is restarted for it.
    ///
    /// # Panics
    /// If there is no child yet.
    pub fn temporary(self) -> Supervisor {
        self.kind(Kind::Temporary)
    }

    /// Has this builder make the child that was added last: with another capacity, a time limit for
    /// its messages. The builder's own [`restarts`](Builder::restarts), if there are any, come
    /// first: the supervisor hears of the failure after them.
    ///
    /// # Panics
    /// If there is no child yet.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Builder;
    /// use pirn_actor::supervisor::Supervisor;
    /// use std::time::Duration;
    ///
    /// let small = Builder::new().capacity(8).message_timeout(Duration::from_secs(1));
    /// let app = Supervisor::one_for_one()
    ///     .child("list", Vec::<u64>::new)
    ///     .builder(small)
    ///     .start()
    ///     .unwrap();
    /// let list = app.get::<Vec<u64>>("list").unwrap();
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
        last.expect("this is about the child before, and there is none")
    }

    /// Returns what finds the children that have been added so far, once the supervisor is started.
    ///
    /// It is for the recipes and functions of the children that are added after them: those begin
    /// when the ones before are ready. A reference that is found stays good when its child is
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
    /// assert_eq!(app.get::<Report>("report").unwrap().ask(()), Ok(3));
    /// ```
    pub fn siblings(&self) -> Siblings {
        Siblings {
            table: Arc::clone(&self.table),
            count: self.entries.len(),
        }
    }

    /// Adds an actor that calls a closure for each message. The recipe makes the closure, at first
    /// and again at each restart. [`Tree::address`](crate::supervisor::Tree::address) finds it.
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
    /// let sum: Address<u32, u32> = app.address("sum").unwrap();
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
        self.leaf(name.into(), "function", Leaf::function(recipe))
    }

    pub(super) fn runner(self) -> Runner {
        let Supervisor { most, period, .. } = self;
        let (sender, events) = channel();
        let table = Table::new(self.name, self.entries, sender);
        let is_new = self.table.set(Arc::downgrade(&table)).is_ok();
        debug_assert!(is_new, "a supervisor is started once");
        let restarts = Restarts::at_most(most).within(period);
        let rules = Rules {
            strategy: self.strategy,
            restarts: restarts.backoff(self.backoff),
            too_many: format!("more than {most} restarts within {period:?}"),
            grace: self.grace,
            hook: self.hook,
        };
        Runner::new(table, rules, self.children, events)
    }

    /// Starts the children, in order, each when the one before is ready.
    ///
    /// Waits until all are ready, however long their recipes take.
    ///
    /// # Errors
    /// A child's recipe has failed: the children before it have been ended, in reverse order. Or
    /// two children have the same name, or there is no thread for the supervisor.
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
        let mut runner = self.runner();
        let table = runner.table();
        let (tell, told) = channel();
        runner.set_parent(Parent::Starter(Some(tell)));
        let tree = Tree(Arc::clone(&table));
        let body = move || {
            let exit = runner.run();
            runner.finish();
            table.life.ending.publish(&exit);
        };
        thread::Builder::new()
            .name(tree.name().to_string())
            .spawn(body)
            .map_err(StartError::Thread)?;
        match told.recv() {
            Ok(started) => started.map(|()| tree),
            Err(_) => Err(StartError::Failed {
                child: tree.name(),
                failure: Failure::new("the supervisor has failed"),
            }),
        }
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.entries.iter().map(|entry| &entry.name).collect();
        f.debug_struct("Supervisor")
            .field("name", &self.name)
            .field("strategy", &self.strategy)
            .field("children", &names)
            .finish_non_exhaustive()
    }
}
