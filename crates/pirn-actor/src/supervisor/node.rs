//! The operations of a supervisor on a child of any kind: an actor or a process ([`Leaf`]), or
//! another supervisor ([`Branch`]).

use super::events::{Event, Reporter};
use super::run::{Parent, Runner};
use super::table::Table;
use crate::actor::{Address, Builder, Change, Function, Hooks, Overseer, Recipe, Ref};
use crate::error::Failure;
use crate::life::Actor;
use crate::mailbox::Phase;
use crate::poison::locked;
use crate::process::{Inbox, Process};
use core::ops::Deref;
use pirn::thread::{self, Panic};
use std::io;
use std::sync::{Arc, Mutex};

/// A child, as its supervisor sees it. No method waits: the result comes as an event.
pub(super) trait Node: Send {
    /// Starts the child, at first and when the one before has ended.
    fn begin(
        &mut self,
        name: &Arc<str>,
        builder: &Builder,
        reporter: Reporter,
    ) -> Result<(), Failure>;
    /// Pauses the child, which drops its state.
    fn hold(&self);
    /// Restarts the child after a pause.
    fn go_on(&self);
    /// Ends the child in this phase.
    fn end(&self, phase: Phase);
    /// Returns true if the child itself limits the time that its own children take.
    fn is_tree(&self) -> bool {
        false
    }
}

fn no_thread(error: io::Error) -> Failure {
    Failure::new(error.to_string())
}

/// The place of a child's reference, for look-ups. It keeps the child open.
pub(super) type Slot<T> = Arc<Mutex<Option<T>>>;

type Start<R> = dyn FnMut(Builder) -> Result<R, Failure> + Send;

/// A child that is an actor: `R` is a [`Ref`] or a [`Process`].
pub(super) struct Leaf<R> {
    start: Box<Start<R>>,
    actor: Slot<R>,
}

impl<S: Send + 'static> Leaf<Ref<S>> {
    /// An actor with handlers, whose state this recipe makes.
    pub(super) fn actor(
        make: impl FnMut() -> Result<S, Failure> + Send + 'static,
        hooks: Option<Hooks<S>>,
    ) -> Leaf<Ref<S>> {
        let make = Arc::new(Mutex::new(make));
        Leaf::new(move |builder| {
            let make = Arc::clone(&make);
            let recipe = Recipe::new(move || (*locked(&make))(), hooks);
            builder.spawn_recipe(recipe).map_err(no_thread)
        })
    }
}

impl<M: Send + 'static, R: Send + 'static> Leaf<Address<M, R>> {
    /// An actor that calls a closure, which this recipe makes.
    pub(super) fn function<F>(mut recipe: impl FnMut() -> F + Send + 'static) -> Leaf<Address<M, R>>
    where
        F: FnMut(M) -> R + Send + 'static,
    {
        let mut actor = Leaf::actor(move || Ok(Function::new(recipe())), None);
        Leaf::new(move |builder| Ok((actor.start)(builder)?.address()))
    }
}

impl<M: Send + 'static> Leaf<Process<M>> {
    /// A process: its function runs again, from the beginning, at each restart.
    pub(super) fn process(
        function: impl FnMut(&mut Inbox<M>) + Send + 'static,
    ) -> Leaf<Process<M>> {
        let function = Arc::new(Mutex::new(function));
        Leaf::new(move |builder| {
            let function = Arc::clone(&function);
            let overseer = builder.overseer().expect("the caller has set it");
            let body = move |inbox: &mut _| live(inbox, &mut *locked(&function), &overseer);
            builder.process(body).map_err(no_thread)
        })
    }
}

impl<R> Leaf<R> {
    fn new(start: impl FnMut(Builder) -> Result<R, Failure> + Send + 'static) -> Leaf<R> {
        Leaf {
            start: Box::new(start),
            actor: Slot::default(),
        }
    }

    pub(super) fn slot(&self) -> Slot<R> {
        Arc::clone(&self.actor)
    }
}

impl<R: Clone> Leaf<R> {
    fn with(&self, f: impl FnOnce(&R)) {
        // Called without the lock: `f` may start a thread.
        let actor = locked(&self.actor).clone();
        if let Some(actor) = actor {
            f(&actor);
        }
    }
}

impl<R: Deref<Target = dyn Actor> + Clone + Send> Node for Leaf<R> {
    fn begin(
        &mut self,
        name: &Arc<str>,
        builder: &Builder,
        reporter: Reporter,
    ) -> Result<(), Failure> {
        let builder = builder.clone().name(Arc::clone(name));
        let actor = (self.start)(builder.supervisor(reporter.overseer()))?;
        actor.on_exit(move |exit| reporter.ended(exit.clone()));
        let before = locked(&self.actor).replace(actor);
        drop(before);
        Ok(())
    }

    fn hold(&self) {
        self.with(|actor| actor.hold());
    }

    fn go_on(&self) {
        self.with(|actor| actor.go_on());
    }

    fn end(&self, phase: Phase) {
        self.with(|actor| actor.end(phase));
    }
}

/// Runs a process: its function, again and again, with pauses between.
fn live<M>(inbox: &mut Inbox<M>, function: &mut impl FnMut(&mut Inbox<M>), overseer: &Overseer) {
    loop {
        (overseer.tell)(Change::Ready);
        let outcome = Panic::catch(|| function(inbox));
        let pauses = outcome.is_err() && overseer.holds || inbox.is_to_pause();
        if !pauses || !inbox.pause() {
            return outcome.unwrap_or_else(|panic| panic.resume());
        }
        let failure = outcome.err().map(|panic| Failure::from(&panic));
        (overseer.tell)(Change::Held(failure));
        if !inbox.wait_for_release() {
            return;
        }
    }
}

/// A child that is a supervisor.
///
/// After more failures than it allows, it pauses its children in reverse order, and reports a
/// failure to the supervisor above. If that restarts it, it restarts its children in order. So
/// references to them stay good, too.
pub(super) struct Branch {
    /// Locked by the thread that runs it, which reports its end after it has released the lock.
    runner: Arc<Mutex<Runner>>,
    table: Arc<Table>,
}

impl Branch {
    pub(super) fn new(runner: Runner) -> Branch {
        Branch {
            table: runner.table(),
            runner: Arc::new(Mutex::new(runner)),
        }
    }

    fn tell(&self, event: Event) {
        // The receiver is in the runner, which lives as long as this.
        let _ = self.table.events.send(event);
    }
}

impl Node for Branch {
    fn begin(&mut self, name: &Arc<str>, _: &Builder, reporter: Reporter) -> Result<(), Failure> {
        let runner = Arc::clone(&self.runner);
        locked(&runner).begin_again(Parent::Supervisor(reporter.clone()));
        let body = move || {
            let exit = locked(&runner).run();
            reporter.ended(exit);
        };
        let thread = thread::Builder::new().name(name.to_string());
        thread.spawn(body).map(drop).map_err(no_thread)
    }

    fn hold(&self) {
        self.tell(Event::Hold);
    }

    fn go_on(&self) {
        self.tell(Event::GoOn);
    }

    fn end(&self, _: Phase) {
        self.tell(Event::Stop);
    }

    fn is_tree(&self) -> bool {
        true
    }
}
