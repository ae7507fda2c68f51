//! A worker of a pool: an actor with the pool's state, whose mailbox gets *shifts* and not
//! messages.
//!
//! A shift takes message after message from the pool until there is none. Then the worker is free,
//! and its thread goes; the pool calls it with another shift. A shift that a panic ends, or that
//! gives way to messages that the worker has sent to itself, is followed by another one: behind
//! those, and when the recipe has made a new state.

use super::crew::Crew;
use super::ready::Entry;
use super::rules::Tag;
use crate::actor::{Context, Item, Ref};
use crate::envelope::{Envelope, Parcel};
use crate::error::{discard, short_name};
use crate::identity::Identity;
use crate::mailbox::{Phase, Then};
use crate::snapshot;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

pub(super) struct Worker<S: Send + 'static> {
    actor: Ref<S>,
    /// It has not looked yet.
    pub(super) is_new: Mark,
    /// Its state is being made, for the first time or after a failure.
    pub(super) is_made: Mark,
    /// It has a shift, has nothing else to do, and has not come to look.
    pub(super) is_called: Mark,
    /// It is one too many, and is ending.
    pub(super) is_retired: Mark,
    /// The number of shifts that it was given. Counted under the crew's lock.
    shifts: AtomicU64,
    /// The number of the pool's messages that it has begun.
    begun: AtomicU64,
}

/// What a worker does with a shift that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// It begins the shift as soon as its thread is started.
    ToIdle,
    /// It was about to leave its thread, and begins the shift at once.
    ToRunning,
    /// It may be at a message to itself, and begins the shift afterwards.
    ToBusy,
    /// It is ending.
    Refused,
}

/// Something that holds, or not. Looked at and changed under the crew's lock only.
pub(super) struct Mark(AtomicBool);

impl Mark {
    pub(super) fn set(&self) {
        // Relaxed: under a lock.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        // Relaxed: under a lock.
        self.0.load(Ordering::Relaxed)
    }

    /// Takes the mark away. Returns whether it was there.
    pub(super) fn take(&self) -> bool {
        // Relaxed: under a lock.
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl<S: Send + 'static> Worker<S> {
    pub(super) fn new(actor: Ref<S>) -> Arc<Worker<S>> {
        Arc::new(Worker {
            actor,
            is_new: Mark(AtomicBool::new(true)),
            is_made: Mark(AtomicBool::new(true)),
            is_called: Mark(AtomicBool::new(false)),
            is_retired: Mark(AtomicBool::new(false)),
            shifts: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        })
    }

    pub(super) fn actor(&self) -> &Ref<S> {
        &self.actor
    }

    /// Has the worker look for messages. Called under the crew's lock.
    pub(super) fn give_shift(self: &Arc<Self>, crew: Arc<Crew<S>>) -> Given {
        let worker = Arc::clone(self);
        let shift = Envelope::new(Shift { crew, worker });
        let mailbox = self.actor.cell().mailbox();
        match mailbox.try_push(shift, Envelope::displace) {
            Err(_) => return Given::Refused,
            Ok((Then::Start, _)) => return self.count(Given::ToIdle),
            Ok((Then::Nothing, _)) => {}
        }
        let load = mailbox.load();
        let given = self.count(Given::ToRunning);
        // Relaxed: under a lock.
        let shifts = self.shifts.load(Ordering::Relaxed);
        match load.begun + load.waiting as u64 > shifts {
            true => Given::ToBusy,
            false => given,
        }
    }

    fn count(&self, given: Given) -> Given {
        // Relaxed: under a lock.
        self.shifts.fetch_add(1, Ordering::Relaxed);
        given
    }

    /// Counts a message of the pool as begun.
    pub(super) fn begins(&self) {
        // Relaxed: for people.
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts the thread of a worker that had nothing to do.
    pub(super) fn start(&self) {
        self.actor.cell().then(Then::Start);
    }

    /// Has the worker end.
    pub(super) fn end(&self, phase: Phase) {
        self.actor.cell().end(phase);
    }
}

impl<S: Send + 'static> snapshot::Seen for Worker<S> {
    fn identity(&self) -> &Identity {
        self.actor.cell().identity()
    }

    fn kind(&self) -> &'static str {
        short_name::<S>()
    }

    fn load(&self) -> snapshot::Load {
        snapshot::Load {
            // Relaxed: for people.
            begun: self.begun.load(Ordering::Relaxed),
            waiting: 0,
            senders: 0,
        }
    }
}

/// The worker's task: the pool's messages.
pub(super) struct Shift<S: Send + 'static> {
    crew: Arc<Crew<S>>,
    worker: Arc<Worker<S>>,
}

impl<S: Send + 'static> Parcel<S, Context<S>> for Shift<S> {
    fn deliver(self, state: &mut S, context: &Context<S>) {
        let mut turn = Turn {
            shift: self,
            held: None,
            is_over: false,
        };
        while let Some(message) = turn.next() {
            match message.is_wanted() {
                true => message.deliver(state, context),
                false => discard(message),
            }
            if turn.gives_way() {
                break;
            }
        }
    }
}

/// A shift that has been begun.
struct Turn<S: Send + 'static> {
    shift: Shift<S>,
    /// What the message that is being handled holds.
    held: Option<Tag>,
    /// There was nothing left to do.
    is_over: bool,
}

impl<S: Send + 'static> Turn<S> {
    fn next(&mut self) -> Option<Item<S>> {
        let Shift { crew, worker } = &self.shift;
        let Some(Entry { item, tag }) = crew.look(worker, self.held.take()) else {
            self.is_over = true;
            return None;
        };
        self.held = Some(tag);
        Some(item)
    }

    /// Returns true if the worker has something else to do before the next message.
    fn gives_way(&self) -> bool {
        let Shift { crew, worker } = &self.shift;
        let mailbox = worker.actor.cell().mailbox();
        mailbox.clear_interrupt();
        if mailbox.is_quiet() {
            return false;
        }
        let phase = mailbox.phase();
        // The handler has ended the worker, which is to end the pool.
        crew.end(phase);
        phase != Phase::Closing
    }
}

impl<S: Send + 'static> Drop for Turn<S> {
    fn drop(&mut self) {
        if !self.is_over {
            self.shift.crew.pause(&self.shift.worker, self.held);
        }
    }
}
