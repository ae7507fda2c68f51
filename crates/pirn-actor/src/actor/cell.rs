//! An actor: identity, mailbox, state, end.

use super::context::Context;
use super::ending::Ending;
use super::recipe::Recipe;
use super::threads::Threads;
use crate::envelope::Envelope;
use crate::error::Exit;
use crate::identity::Identity;
use crate::mailbox::{Mailbox, Overflow, Phase, Then};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

pub(crate) struct Cell<S> {
    pub(super) identity: Identity,
    pub(super) mailbox: Mailbox<Envelope<S, Context<S>>>,
    /// The state. Locked by the runner for as long as it runs, and by nobody else.
    pub(super) body: Mutex<Body<S>>,
    pub(super) ending: Ending,
    /// The number of `Ref`s and addresses. When the last one is dropped, the actor is closed.
    references: AtomicUsize,
    pub(super) options: Options,
    /// Starts a runner.
    start: fn(Arc<Cell<S>>),
    this: Weak<Cell<S>>,
}

/// What the runner works with.
pub(super) struct Body<S> {
    pub(super) state: Option<S>,
    pub(super) recipe: Recipe<S>,
}

/// What a builder has decided.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) threads: Threads,
    pub(crate) rare: Option<Arc<Rare>>,
}

/// Is told the name of a message's type.
pub(crate) type OnUndelivered = Arc<dyn Fn(&str) + Send + Sync>;

/// What few builders decide.
#[derive(Clone, Default)]
pub(crate) struct Rare {
    /// Is told the names of messages that were never begun.
    pub(crate) on_undelivered: Option<OnUndelivered>,
    /// Is told of each failure; then the actor is held until its supervisor releases or ends it.
    pub(crate) on_failure: Option<Arc<dyn Fn(crate::Failure) + Send + Sync>>,
    /// The least time between the starts of two messages.
    pub(crate) least_between: Option<core::time::Duration>,
    /// How often the actor is restarted by itself.
    pub(crate) restarts: Option<crate::Restarts>,
}

impl<S: Send> Cell<S> {
    pub(super) fn new(
        identity: Identity,
        (capacity, overflow): (usize, Overflow),
        body: Body<S>,
        options: Options,
        start: fn(Arc<Cell<S>>),
    ) -> Arc<Cell<S>> {
        Arc::new_cyclic(|this| Cell {
            identity,
            mailbox: Mailbox::new(capacity, overflow),
            body: Mutex::new(body),
            ending: Ending::new(),
            references: AtomicUsize::new(0),
            options,
            start,
            this: Weak::clone(this),
        })
    }

    /// Does what a change of the mailbox has made necessary.
    pub(crate) fn then(&self, then: Then) {
        if then == Then::Start {
            let this = self.this.upgrade().expect("who borrows it is in the count");
            (self.start)(this);
        }
    }

    /// Counts a reference.
    pub(super) fn retain(&self) {
        // Relaxed: as in `Arc`, who makes another reference has one.
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a reference as gone, and closes the actor with the last one.
    pub(super) fn release(&self) {
        // Relaxed: what the owner of the reference has sent is in the mailbox, under its lock.
        if self.references.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end(Phase::Closing);
        }
    }

    /// Has the actor end in this way.
    pub(crate) fn end(&self, phase: Phase) {
        let then = self.mailbox.end(phase);
        self.then(then);
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn ending(&self) -> &Ending {
        &self.ending
    }

    pub(crate) fn mailbox(&self) -> &Mailbox<Envelope<S, Context<S>>> {
        &self.mailbox
    }

    /// Returns how it has ended, if it has.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.ending.exit()
    }

    /// Returns it again, counted.
    pub(crate) fn arc(&self) -> Option<Arc<Cell<S>>> {
        self.this.upgrade()
    }
}
