//! What a supervisor can do to a child, whatever the child is.

use super::events::Reporter;
use super::lent::Home;
use super::tree::Slot;
use crate::actor::{Builder, Recipe, Ref};
use crate::error::Failure;
use crate::mailbox::Phase;
use crate::poison::locked;
use std::io;
use std::sync::Arc;

/// A child, as its supervisor sees it. Nothing here waits: what happens comes as an event.
pub(super) trait Node: Send {
    /// Makes it, at first and when the one before has ended.
    fn begin(&mut self, name: &Arc<str>, reporter: Reporter) -> Result<(), Failure>;
    /// Has it pause, and drop its state.
    fn hold(&self);
    /// Has it begin anew after a pause.
    fn go_on(&self);
    /// Has it end in this way.
    fn end(&self, phase: Phase);
    /// Returns true if it sees to the time that its own children take.
    fn is_tree(&self) -> bool {
        false
    }
}

/// The failure of a child that cannot be begun because the one before is not over.
pub(super) fn not_over() -> Failure {
    Failure::new("the one before has not ended")
}

pub(super) fn no_thread(error: io::Error) -> Failure {
    Failure::new(error.to_string())
}

type Make<S> = Box<dyn FnMut() -> Result<S, Failure> + Send>;

/// An actor with handlers.
pub(super) struct Leaf<S: Send + 'static> {
    builder: Builder,
    recipe: Home<Make<S>>,
    /// The actor, for those who look it up. It keeps the actor open.
    actor: Slot<Ref<S>>,
}

impl<S: Send + 'static> Leaf<S> {
    pub(super) fn new(
        builder: Builder,
        recipe: impl FnMut() -> Result<S, Failure> + Send + 'static,
    ) -> Leaf<S> {
        Leaf {
            builder,
            recipe: Home::new(Box::new(recipe)),
            actor: Slot::default(),
        }
    }

    pub(super) fn slot(&self) -> Slot<Ref<S>> {
        Arc::clone(&self.actor)
    }

    fn with(&self, f: impl FnOnce(&Ref<S>)) {
        // Not with the lock: a thread may be started.
        let actor = locked(&self.actor).clone();
        if let Some(actor) = actor {
            f(&actor);
        }
    }
}

impl<S: Send + 'static> Node for Leaf<S> {
    fn begin(&mut self, name: &Arc<str>, reporter: Reporter) -> Result<(), Failure> {
        // It comes home with the actor's end.
        let mut make = self.recipe.lend().ok_or_else(not_over)?;
        let recipe = Recipe::new(move || make.get()());
        let builder = self.builder.clone().name(Arc::clone(name));
        let builder = builder.supervisor(reporter.overseer());
        let actor = builder.spawn_recipe(recipe).map_err(no_thread)?;
        actor.on_exit(move |exit| reporter.ended(exit.clone()));
        let before = locked(&self.actor).replace(actor);
        drop(before);
        Ok(())
    }

    fn hold(&self) {
        self.with(|actor| actor.cell().hold());
    }

    fn go_on(&self) {
        self.with(|actor| actor.cell().go_on());
    }

    fn end(&self, phase: Phase) {
        self.with(|actor| actor.cell().end(phase));
    }
}
