//! Making supervisors.

use super::child::Child;
use super::error::StartError;
use super::events::TreeEvent;
use super::keeper::{Boss, Keeper, Rules};
use super::plan::Strategy;
use super::siblings::Awaited;
use super::table::{Entry, Table};
use super::tree::Tree;
use crate::actor::Restarts;
use crate::error::Failure;
use core::fmt;
use core::ops::Range;
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
/// use pirn_actor::{Context, Handle, Ref, Supervisor};
/// use std::time::Duration;
///
/// struct Db(Vec<u64>);
/// impl Handle<u64> for Db {
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
    pub(super) children: Vec<Child>,
    pub(super) entries: Vec<Entry>,
    /// A name that two children have.
    pub(super) twice: Option<Arc<str>>,
    /// For those who look for siblings.
    pub(super) table: Awaited,
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
    /// Meanwhile it is [`Stuck`](crate::ChildState::Stuck).
    pub fn grace(mut self, time: Duration) -> Supervisor {
        self.grace = time;
        self
    }

    /// Has a function told what happens to the children, for logs and metrics: on the supervisor's
    /// thread, which meanwhile does nothing else. Supervisors that are children tell it as well.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Context, Handle, Supervisor, TreeEvent};
    /// use std::sync::mpsc;
    ///
    /// struct Careless;
    /// impl Handle<()> for Careless {
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

    pub(super) fn keeper(self) -> Keeper {
        let Supervisor { most, period, .. } = self;
        let table = Arc::new(Table::new(self.name, self.entries));
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
        Keeper::new(table, rules, self.children)
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
    /// use pirn_actor::{StartError, Supervisor};
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
        let mut keeper = self.keeper();
        let (table, events) = (keeper.table(), keeper.sender());
        let (tell, told) = channel();
        keeper.set_boss(Boss::Starter(Some(tell)));
        let tree = Tree {
            table: Arc::clone(&table),
            events,
        };
        let body = move || {
            let exit = keeper.run();
            keeper.finish();
            table.ending.publish(&exit);
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
