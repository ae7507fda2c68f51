//! An actor: identity, mailbox, state, end.

use super::context::Context;
use super::ending::{Ending, Mortal};
use super::overtime::Overtime;
use super::recipe::Recipe;
use super::runner;
use super::threads::Threads;
use crate::edges;
use crate::envelope::Envelope;
use crate::error::{Exit, Failure};
use crate::identity::Identity;
use crate::mailbox::{Mailbox, Overflow, Phase, Then};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct Cell<S> {
    pub(super) identity: Identity,
    pub(super) mailbox: Mailbox<Envelope<S, Context<S>>>,
    /// The state. Locked by the runner for as long as it runs, and by nobody else.
    pub(super) body: Mutex<Body<S>>,
    pub(super) ending: Ending,
    /// The number of `Ref`s and addresses. When the last one is dropped, the actor is closed.
    references: AtomicUsize,
    pub(super) options: Options,
}

/// What the runner works with.
pub(crate) struct Body<S> {
    pub(crate) state: Option<S>,
    pub(crate) recipe: Recipe<S>,
}

/// What a builder has decided. One word: there may be a million actors.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) rare: Option<Arc<Rare>>,
}

impl Options {
    pub(crate) fn threads(&self) -> Threads {
        let rare = self.rare.as_deref();
        rare.map_or_else(Threads::default, |rare| rare.threads.clone())
    }
}

/// Is told the name of a message's type.
pub(crate) type OnUndelivered = Arc<dyn Fn(&str) + Send + Sync>;

/// What few builders decide.
#[derive(Clone, Default)]
pub(crate) struct Rare {
    pub(crate) threads: Threads,
    /// Is told the names of messages that were never begun.
    pub(crate) on_undelivered: Option<OnUndelivered>,
    pub(crate) supervisor: Option<Overseer>,
    /// How long a message may take.
    pub(crate) overtime: Option<Arc<Overtime>>,
    /// The least time between the starts of two messages.
    pub(crate) least_between: Option<core::time::Duration>,
    /// How often the actor is restarted by itself.
    pub(crate) restarts: Option<crate::Restarts>,
}

/// What a supervisor has to do with an actor.
#[derive(Clone)]
pub(crate) struct Overseer {
    /// Is told what happens.
    pub(crate) tell: Arc<dyn Fn(Change) + Send + Sync>,
    /// After a failure the actor is held, until the supervisor has it go on or ends it.
    pub(crate) holds: bool,
}

/// What a supervisor is told of its actor. Of the end, it is told as everybody is.
#[derive(Debug)]
pub(crate) enum Change {
    /// The recipe has made a state.
    Ready,
    /// The state is dropped, and the mailbox is held: after this failure, or because that was asked
    /// for.
    Held(Option<Failure>),
}

impl<S: Send + 'static> Cell<S> {
    /// Makes an actor, with one reference, which is the caller's to release.
    pub(super) fn new(
        identity: Identity,
        bounds: (usize, Overflow),
        body: Body<S>,
        options: Options,
    ) -> Arc<Cell<S>> {
        // SAFETY: it borrows nothing.
        unsafe { Cell::borrowing(identity, bounds, body, options) }
    }
}

impl<S: Send> Cell<S> {
    /// Does the same for a state that borrows.
    ///
    /// # Safety
    /// What it borrows, it borrows until the actor's end has been published.
    pub(crate) unsafe fn borrowing(
        identity: Identity,
        (capacity, overflow): (usize, Overflow),
        body: Body<S>,
        options: Options,
    ) -> Arc<Cell<S>> {
        let cell = Arc::new(Cell {
            identity,
            mailbox: Mailbox::new(capacity, overflow),
            body: Mutex::new(body),
            ending: Ending::new(),
            references: AtomicUsize::new(1),
            options,
        });
        Arc::as_ptr(&cell).expose_provenance(); // for `this`
        cell
    }

    /// Returns the `Arc` that this is in. A `Weak` in each actor would be another word, and there
    /// may be a million.
    fn this(&self) -> Arc<Cell<S>> {
        let address = core::ptr::from_ref(self).addr();
        let cell = core::ptr::with_exposed_provenance::<Cell<S>>(address);
        // SAFETY: there are no others than those made by `borrowing`, in an `Arc`, whose provenance
        // it has exposed. Who borrows one has, or has borrowed, an `Arc` of it, so it is counted.
        unsafe {
            Arc::increment_strong_count(cell);
            Arc::from_raw(cell)
        }
    }

    /// Does what a change of the mailbox has made necessary.
    pub(crate) fn then(&self, then: Then) {
        if then == Then::Start {
            runner::start(self.this());
        }
    }

    /// Counts a reference.
    pub(crate) fn retain(&self) {
        // Relaxed: as in `Arc`, who makes another reference has one.
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a reference as gone, and closes the actor with the last one.
    pub(crate) fn release(&self) {
        // Relaxed: what the owner of the reference has sent is in the mailbox, under its lock.
        if self.references.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end(Phase::Closing);
        }
    }

    /// Has the actor pause after the current message, and drop its state.
    pub(crate) fn hold(&self) {
        let then = self.mailbox.hold();
        edges::interrupted(&self.identity);
        self.then(then);
    }

    /// Has an actor that is held begin anew.
    pub(crate) fn go_on(&self) {
        let then = self.mailbox.release();
        self.then(then);
    }

    /// Has the actor end in this way.
    pub(crate) fn end(&self, phase: Phase) {
        let is_closed = phase == Phase::Closing && self.mailbox.is_stopping();
        if is_closed || runner::end_idle(self, phase) {
            return;
        }
        let then = self.mailbox.end(phase);
        if phase == Phase::Killing {
            edges::interrupted(&self.identity);
        }
        self.then(then);
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn mailbox(&self) -> &Mailbox<Envelope<S, Context<S>>> {
        &self.mailbox
    }

    /// Returns how it has ended, if it has.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.ending.exit()
    }
}

impl<S: Send> Mortal for Cell<S> {
    fn ending(&self) -> &Ending {
        &self.ending
    }
}
