//! A worker of a pool: an actor with the pool's state, whose mailbox gets *work loops* instead of
//! messages.
//!
//! A work loop takes message after message until the pool has no more. Then the worker is free, and
//! its thread ends; the pool calls it with another work loop. A loop that a panic breaks
//! off, or that gives way to messages that the worker has sent to itself, is followed by another
//! one: behind those messages, and after the recipe has made a new state.

use super::cell::PoolCell;
use super::ready::Entry;
use super::rules::Tag;
use crate::actor::{Context, Item, Ref};
use crate::envelope::{Envelope, Parcel};
use crate::error::discard;
use crate::life::{Actor, Life, Load};
use crate::mailbox::{Patience, Phase, Then};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

pub(super) struct Worker<S: Send + 'static> {
    actor: Ref<S>,
    /// The worker has not looked yet.
    pub(super) is_new: Mark,
    /// The worker's state is being made, for the first time or after a failure.
    pub(super) is_made: Mark,
    /// The worker has a work loop, has nothing else to do, and has not looked yet.
    pub(super) is_called: Mark,
    /// The worker is one too many, and is ending.
    pub(super) is_retired: Mark,
    /// The number of work loops given to the worker. Counted under the pool's lock.
    loops: AtomicU64,
    /// The number of the pool's messages that the worker has begun.
    begun: AtomicU64,
}

/// How a worker takes a work loop that the pool gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// Its thread is to be started, and then begins the loop.
    ToIdle,
    /// It was about to leave its thread, and begins the loop at once.
    ToRunning,
    /// It may be at a message to itself, and begins the loop afterwards.
    ToBusy,
    /// It is ending.
    Refused,
}

/// A flag. Read and changed under the pool's lock only.
pub(super) struct Mark(AtomicBool);

impl Mark {
    pub(super) fn set(&self) {
        // Relaxed: the pool's lock is held.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        // Relaxed: the pool's lock is held.
        self.0.load(Ordering::Relaxed)
    }

    /// Clears the flag. Returns true if it was set.
    pub(super) fn take(&self) -> bool {
        // Relaxed: the pool's lock is held.
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
            loops: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        })
    }

    pub(super) fn actor(&self) -> &Ref<S> {
        &self.actor
    }

    /// Gives the worker a work loop. Called under the pool's lock.
    pub(super) fn give_work(self: &Arc<Self>, pool: Arc<PoolCell<S>>) -> Given {
        let worker = Arc::clone(self);
        let work = Envelope::new(WorkLoop { pool, worker });
        let (mailbox, at) = (&self.actor.cell().mailbox, self.actor.identity());
        match mailbox.push(work, Patience::None, at, Envelope::displace) {
            Err(_) => return Given::Refused,
            Ok((Then::Start, _)) => return self.count(Given::ToIdle),
            Ok((Then::Nothing, _)) => {}
        }
        let load = mailbox.load();
        let given = self.count(Given::ToRunning);
        // Relaxed: the pool's lock is held.
        let loops = self.loops.load(Ordering::Relaxed);
        match load.begun + load.waiting as u64 > loops {
            true => Given::ToBusy,
            false => given,
        }
    }

    fn count(&self, given: Given) -> Given {
        // Relaxed: the pool's lock is held.
        self.loops.fetch_add(1, Ordering::Relaxed);
        given
    }

    /// Counts a message of the pool as begun.
    pub(super) fn begins(&self) {
        // Relaxed: a number for snapshots.
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts the thread of a worker that had nothing to do.
    pub(super) fn start(&self) {
        self.actor.cell().then(Then::Start);
    }
}

/// The worker's actor, with the pool's messages for its load.
impl<S: Send + 'static> Actor for Worker<S> {
    fn life(&self) -> &Life {
        self.actor.life()
    }

    fn this(&self) -> Arc<dyn Actor> {
        self.actor.this()
    }

    fn end(&self, phase: Phase) {
        self.actor.end(phase);
    }

    fn kind(&self) -> &'static str {
        self.actor.kind()
    }

    fn load(&self) -> Load {
        Load {
            // Relaxed: a number for snapshots.
            begun: self.begun.load(Ordering::Relaxed),
            ..Load::default()
        }
    }
}

/// A worker's task: it handles messages of the pool.
pub(super) struct WorkLoop<S: Send + 'static> {
    pool: Arc<PoolCell<S>>,
    worker: Arc<Worker<S>>,
}

impl<S: Send + 'static> Parcel<S, Context<S>> for WorkLoop<S> {
    fn deliver(self, state: &mut S, context: &Context<S>) {
        let mut turn = Running {
            work: self,
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

/// A work loop that has begun.
struct Running<S: Send + 'static> {
    work: WorkLoop<S>,
    /// The tag of the message that is being handled.
    held: Option<Tag>,
    /// No message was left.
    is_over: bool,
}

impl<S: Send + 'static> Running<S> {
    fn next(&mut self) -> Option<Item<S>> {
        let WorkLoop { pool, worker } = &self.work;
        let Some(Entry { item, tag }) = pool.look(worker, self.held.take()) else {
            self.is_over = true;
            return None;
        };
        self.held = Some(tag);
        Some(item)
    }

    /// Returns true if the worker has something else to do before its next message.
    fn gives_way(&self) -> bool {
        let WorkLoop { pool, worker } = &self.work;
        let mailbox = &worker.actor.cell().mailbox;
        mailbox.clear_interrupt();
        if mailbox.is_quiet() {
            return false;
        }
        let phase = mailbox.phase();
        // The handler has ended the worker, which ends the pool.
        pool.end(phase);
        phase != Phase::Closing
    }
}

impl<S: Send + 'static> Drop for Running<S> {
    fn drop(&mut self) {
        if !self.is_over {
            self.work.pool.pause(&self.work.worker, self.held);
        }
    }
}
