//! How a supervisor starts a child of any kind: an actor, a function, a process, or another
//! supervisor ([`Branch`]).

use super::events::Reporter;
use super::run::Runner;
use super::table::Table;
use crate::actor::{Address, Builder, Change, Function, Hooks, Recipe, Ref};
use crate::error::{Exit, Failure};
use crate::life::Actor;
use crate::poison::locked;
use crate::process::{Inbox, Process};
use core::ops::Deref;
use pirn::thread::{self, Panic};
use std::io;
use std::sync::{Arc, Mutex};

/// Starts a child, at first and when the one before has ended. Does not wait until it is ready:
/// that comes as an event.
pub(super) type Start = Box<dyn FnMut(Builder, Reporter) -> io::Result<Arc<dyn Actor>> + Send>;

/// The place of a child's reference, for look-ups. It keeps the child open.
pub(super) type Slot<R> = Arc<Mutex<Option<R>>>;

/// A child that is an actor, with a reference of this type.
pub(super) fn leaf<R>(
    slot: Slot<R>,
    mut start: impl FnMut(Builder, &Reporter) -> io::Result<R> + Send + 'static,
) -> Start
where
    R: Deref<Target = dyn Actor> + Send + 'static,
{
    Box::new(move |builder, reporter| {
        let actor = start(builder, &reporter)?;
        actor.on_exit(move |exit| reporter.ended(exit.clone()));
        let this = actor.this();
        let before = locked(&slot).replace(actor);
        drop(before);
        Ok(this)
    })
}

/// An actor with handlers, whose state this recipe makes.
pub(super) fn actor<S: Send + 'static>(
    make: impl FnMut() -> Result<S, Failure> + Send + 'static,
    hooks: Hooks<S>,
) -> impl FnMut(Builder, &Reporter) -> io::Result<Ref<S>> + Send + 'static {
    let make = Arc::new(Mutex::new(make));
    move |builder, reporter| {
        let make = Arc::clone(&make);
        let recipe = Recipe::new(move || (*locked(&make))(), hooks);
        builder.supervisor(reporter.clone()).spawn_recipe(recipe)
    }
}

/// An actor that calls a closure, which this recipe makes.
pub(super) fn function<M, R, F>(
    mut recipe: impl FnMut() -> F + Send + 'static,
) -> impl FnMut(Builder, &Reporter) -> io::Result<Address<M, R>> + Send + 'static
where
    M: Send + 'static,
    R: Send + 'static,
    F: FnMut(M) -> R + Send + 'static,
{
    let mut start = actor(move || Ok(Function::new(recipe())), Hooks::new());
    move |builder, reporter| Ok(start(builder, reporter)?.address())
}

/// A process: its function runs again, from the beginning, at each restart.
pub(super) fn process<M: Send + 'static>(
    function: impl FnMut(&mut Inbox<M>) + Send + 'static,
) -> impl FnMut(Builder, &Reporter) -> io::Result<Process<M>> + Send + 'static {
    let function = Arc::new(Mutex::new(function));
    move |builder, reporter| {
        let (function, reporter) = (Arc::clone(&function), reporter.clone());
        builder.process(move |inbox| live(inbox, &mut *locked(&function), &reporter))
    }
}

/// Runs a process: its function, again and again, with pauses between.
fn live<M>(inbox: &mut Inbox<M>, function: &mut impl FnMut(&mut Inbox<M>), reporter: &Reporter) {
    loop {
        reporter.changed(Change::Ready);
        let outcome = Panic::catch(|| function(inbox));
        let pauses = outcome.is_err() && reporter.holds || inbox.is_to_pause();
        if !pauses || !inbox.pause() {
            return outcome.unwrap_or_else(|panic| panic.resume());
        }
        let failure = outcome.err().map(|panic| Failure::from(&panic));
        reporter.changed(Change::Held(failure));
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
    pub(super) runner: Arc<Mutex<Runner>>,
    pub(super) table: Arc<Table>,
}

impl Branch {
    /// Runs the supervisor on a thread of its own, which calls `ended` with the exit.
    pub(super) fn start(
        &self,
        parent: Reporter,
        ended: impl FnOnce(Exit) + Send + 'static,
    ) -> io::Result<()> {
        let runner = Arc::clone(&self.runner);
        locked(&runner).begin_again(parent);
        let body = move || {
            let exit = locked(&runner).run();
            ended(exit);
        };
        let name = self.table.identity().name();
        let thread = thread::Builder::new().name(name.to_string());
        thread.spawn(body).map(drop)
    }

    /// Returns how the supervisor above starts this one.
    pub(super) fn into_start(self) -> Start {
        Box::new(move |_, reporter| {
            let parent = reporter.clone();
            self.start(parent, move |exit| reporter.ended(exit))?;
            Ok(self.table.this())
        })
    }
}
