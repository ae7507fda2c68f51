//! The children of a supervisor that is being made.

use super::branch::Branch;
use super::child::{Child, Kind};
use super::node::{Leaf, Node};
use super::process::Stem;
use super::supervisor::Supervisor;
use super::table::{Entry, What};
use super::tree::kept;
use crate::actor::Builder;
use crate::error::{Failure, short_name};
use crate::process::Inbox;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

impl Supervisor {
    /// Adds an actor, whose state is made by this recipe, at first and again at each restart.
    pub fn child<S, F>(self, name: impl Into<Arc<str>>, recipe: F) -> Supervisor
    where
        S: Send + 'static,
        F: FnMut() -> S + Send + 'static,
    {
        self.child_with(name, Builder::new(), recipe)
    }

    /// Adds an actor, whose state is made by a recipe that may fail.
    pub fn try_child<S, E, F>(self, name: impl Into<Arc<str>>, recipe: F) -> Supervisor
    where
        S: Send + 'static,
        E: fmt::Display,
        F: FnMut() -> Result<S, E> + Send + 'static,
    {
        self.try_child_with(name, Builder::new(), recipe)
    }

    /// Adds an actor that this builder makes: with another capacity, a time limit for its messages.
    /// The builder's own [`restarts`](Builder::restarts), if there are any, come first: the
    /// supervisor hears of the failure after them.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Builder, Supervisor};
    /// use std::time::Duration;
    ///
    /// let small = Builder::new().capacity(8).message_timeout(Duration::from_secs(1));
    /// let app = Supervisor::one_for_one()
    ///     .child_with("list", small, Vec::<u64>::new)
    ///     .start()
    ///     .unwrap();
    /// let list = app.get::<Vec<u64>>("list").unwrap();
    /// assert_eq!(list.run(|list| list.len()), Ok(0));
    /// ```
    pub fn child_with<S, F>(
        self,
        name: impl Into<Arc<str>>,
        builder: Builder,
        mut recipe: F,
    ) -> Supervisor
    where
        S: Send + 'static,
        F: FnMut() -> S + Send + 'static,
    {
        self.leaf(name.into(), Leaf::new(builder, move || Ok(recipe())))
    }

    /// Adds an actor that this builder makes, with a recipe that may fail.
    pub fn try_child_with<S, E, F>(
        self,
        name: impl Into<Arc<str>>,
        builder: Builder,
        mut recipe: F,
    ) -> Supervisor
    where
        S: Send + 'static,
        E: fmt::Display,
        F: FnMut() -> Result<S, E> + Send + 'static,
    {
        let make = move || recipe().map_err(|error| Failure::new(error.to_string()));
        self.leaf(name.into(), Leaf::new(builder, make))
    }

    fn leaf<S: Send + 'static>(self, name: Arc<str>, leaf: Leaf<S>) -> Supervisor {
        let what = kept(leaf.slot());
        self.add(name, short_name::<S>(), what, Box::new(leaf))
    }

    /// Adds a process: its function runs again, from the beginning, at each restart.
    ///
    /// What is in the mailbox stays there, and what was put aside. The process has failed when it
    /// panics; when it returns, it has ended. It is ready when it begins. Told to pause, it is
    /// interrupted, and its receives fail with
    /// [`RecvError::Interrupted`](crate::RecvError::Interrupted) until it returns.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Inbox, Process, ReplyTo, Supervisor};
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
        self.process_with(name, Builder::new(), function)
    }

    /// Adds a process that this builder makes.
    pub fn process_with<M, F>(
        self,
        name: impl Into<Arc<str>>,
        builder: Builder,
        function: F,
    ) -> Supervisor
    where
        M: Send + 'static,
        F: FnMut(&mut Inbox<M>) + Send + 'static,
    {
        let stem = Stem::new(builder, function);
        let what = kept(stem.slot());
        self.add(name.into(), "process", what, Box::new(stem))
    }

    /// Adds a supervisor with its children. Its name among the children is this one.
    ///
    /// When it fails, its children pause in reverse order, and this supervisor restarts it: all of
    /// its children then begin anew, in order. References to them stay good.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Supervisor;
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
        let keeper = supervisor.name(Arc::clone(&name)).keeper();
        let what = What::Tree(keeper.table());
        self.add(name, "supervisor", what, Box::new(Branch::new(keeper)))
    }

    pub(super) fn add(
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
    /// use pirn_actor::{ChildState, Supervisor};
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

    /// Gives the child that was added last a [grace](Supervisor::grace) of its own.
    ///
    /// # Panics
    /// If there is no child yet.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Supervisor;
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
}
