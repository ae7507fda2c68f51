//! What a supervisor can do to a child, whatever the child is.

use super::events::Reporter;
use crate::actor::{Builder, Recipe, Ref};
use crate::error::Failure;
use crate::mailbox::Phase;
use crate::poison::locked;
use std::sync::{Arc, Mutex};

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

type Make<S> = Box<dyn FnMut() -> Result<S, Failure> + Send>;

/// The place of a recipe while no actor has it.
type Home<S> = Arc<Mutex<Option<Make<S>>>>;

/// An actor with handlers.
pub(super) struct Leaf<S: Send + 'static> {
    builder: Builder,
    recipe: Home<S>,
    /// The actor, for those who look it up. It keeps the actor open.
    actor: Arc<Mutex<Option<Ref<S>>>>,
}

impl<S: Send + 'static> Leaf<S> {
    pub(super) fn new(
        builder: Builder,
        recipe: impl FnMut() -> Result<S, Failure> + Send + 'static,
    ) -> Leaf<S> {
        Leaf {
            builder,
            recipe: Arc::new(Mutex::new(Some(Box::new(recipe)))),
            actor: Arc::default(),
        }
    }

    pub(super) fn actor(&self) -> Arc<Mutex<Option<Ref<S>>>> {
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

/// A recipe that an actor has. It comes home with the actor's end: the next one makes its state by
/// the same recipe.
struct Lent<S> {
    make: Option<Make<S>>,
    home: Home<S>,
}

impl<S> Drop for Lent<S> {
    fn drop(&mut self) {
        *locked(&self.home) = self.make.take();
    }
}

impl<S: Send + 'static> Node for Leaf<S> {
    fn begin(&mut self, name: &Arc<str>, reporter: Reporter) -> Result<(), Failure> {
        let make = locked(&self.recipe).take();
        let mut lent = Lent {
            make,
            home: Arc::clone(&self.recipe),
        };
        let recipe = Recipe::new(move || match &mut lent.make {
            Some(make) => make(),
            None => Err(Failure::new("the actor before has its recipe")),
        });
        let builder = self.builder.clone().name(Arc::clone(name));
        let builder = builder.supervisor(reporter.overseer());
        let actor = builder
            .spawn_recipe(recipe)
            .map_err(|error| Failure::new(error.to_string()))?;
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
