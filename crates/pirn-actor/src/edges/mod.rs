//! Which actor waits for which: deadlocks are found before anybody waits in one.
//!
//! An actor that waits, for an answer or for room in a mailbox, has one thread and one *edge*. The
//! edge says what it waits for:
//!
//! ```text
//!   for an actor      until that one has answered, or has room
//!   for a pool        until any of its workers has
//!   for a pipeline    until each stage has that the message has not passed
//! ```
//!
//! Before an actor waits, it follows the edges (`search.rs`). If nobody that it waits for can ever
//! go on, because they wait for each other and for it, the ask fails with their names in place of
//! waiting for ever.
//!
//! The edges are in several tables, each under a lock of its own. An actor puts its edge into the
//! table first and looks then, so of two that close a circle at the same time one sees the other's
//! edge at least. The look takes one lock at a time, and none where a table is empty, as almost all
//! are. What it finds may be a circle of edges that were never there at the same time. So an actor
//! that has found a circle locks all tables, looks once more, and takes its own edge out if the
//! circle is still there: only one actor of a circle fails, and the others get their answers.
//! Threads that are no actors have no edges, and do not pay for this.
//!
//! A wait is over before its thread has taken the edge out: the actor that answers is at its next
//! message by then. So the actor that ends a wait says so first, by [`Over`]. What it waits for
//! itself comes after that, and takes the lock of its table: a thread that has locked all tables
//! and sees the one edge sees that the other one is over.
//!
//! An asker whose request overflow displaces from a mailbox is told so under that mailbox's lock: a
//! thread that sees the message that came in its place sees that the wait is over.
//!
//! A wait that is interrupted is over as well. A thread that kills an actor, or holds it to restart
//! it, takes its edge out, and one that is about to wait looks under the lock whether it has been
//! interrupted before.
//!
//! Where a waiter on the way gives up earlier than the searching one, there is no deadlock: that
//! one's time limit breaks the circle, and is what its user has asked for.
//!
//! Rejected: one table under one lock, which all asks of actors then share; an atomic pointer per
//! actor, since a walk over pointers needs the actors kept alive.

mod search;

use crate::error::Cycle;
use crate::identity::{ByNumber, Identity, about_to_wait, works, works_for};
use crate::life::Actor;
use crate::poison::locked;
use crate::time::Limit;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use pirn::thread;
use std::sync::{Arc, Mutex};

/// What a thread waits for.
#[derive(Clone)]
pub(crate) enum To {
    Actor(Identity),
    /// Any of several actors.
    AnyOf(Arc<dyn AnyOf>),
    /// All stages of a pipeline that are left.
    Way(Arc<Way>),
}

/// Actors of which any does, as workers of a pool do.
pub(crate) trait AnyOf: Actor {
    /// Returns the numbers of all who may do it, or nothing if others may join them.
    fn all(&self) -> Option<Vec<u64>>;
}

/// The way of a message through a pipeline.
pub(crate) struct Way {
    stages: Box<[To]>,
    /// The number of stages that the message has passed.
    passed: AtomicUsize,
}

impl Way {
    pub(crate) fn new(stages: Vec<To>) -> Way {
        Way {
            stages: stages.into(),
            passed: AtomicUsize::new(0),
        }
    }

    /// The message leaves a stage: called by that one, before it hands the message on.
    pub(crate) fn pass(&self) {
        // Relaxed: as for `Over`.
        self.passed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the stages that the message has not passed.
    fn left(&self) -> &[To] {
        let passed = self.passed.load(Ordering::Relaxed);
        self.stages.get(passed..).unwrap_or_default()
    }
}

impl To {
    /// Returns who is waited for first, for people.
    fn first(&self) -> Option<&Identity> {
        match self {
            To::Actor(identity) => Some(identity),
            To::AnyOf(staff) => Some(staff.identity()),
            To::Way(way) => way.left().first()?.first(),
        }
    }
}

impl fmt::Debug for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first() {
            Some(first) => first.fmt(f),
            None => f.write_str("nobody"),
        }
    }
}

/// Says that a wait of the thread that has made it is over. Nothing, on a thread that works for no
/// actor: nobody looks at its waits.
#[derive(Clone, Default)]
pub(crate) struct Over(Option<Arc<AtomicBool>>);

impl Over {
    pub(crate) fn new() -> Over {
        Over(works().then(Arc::default))
    }

    pub(crate) fn set(&self) {
        if let Some(is_over) = &self.0 {
            // Relaxed: who has to see it sees an edge as well that the running thread puts into the
            // table afterwards, under its lock; or has taken what the running thread has put into a
            // mailbox, under that one's lock, which it holds now.
            is_over.store(true, Ordering::Relaxed);
        }
    }

    fn is_set(&self) -> bool {
        // Relaxed: see `set`.
        let is_over = self.0.as_ref();
        is_over.is_some_and(|is_over| is_over.load(Ordering::Relaxed))
    }
}

struct Edge {
    from: Identity,
    to: To,
    limit: Limit,
    over: Over,
}

/// From an actor's number to what it waits for.
type Edges = ByNumber<Edge>;

/// The number of tables. An actor's is that of its number.
const TABLES: usize = 128;

#[repr(align(64))]
struct Table {
    edges: Mutex<Option<Edges>>,
    /// The number of edges, for those that look without the lock.
    count: AtomicUsize,
}

static EDGES: [Table; TABLES] = [const {
    Table {
        edges: Mutex::new(None),
        count: AtomicUsize::new(0),
    }
}; TABLES];

impl Table {
    fn of(number: u64) -> &'static Table {
        &EDGES[number as usize % TABLES]
    }

    fn insert(&self, edges: &mut Option<Edges>, edge: Edge) {
        let edges = edges.get_or_insert_default();
        edges.insert(edge.from.number(), edge);
        // SeqCst: each of two actors that wait for each other counts its edge, and then looks at
        // the other one's count. One of them at least sees the other's edge counted.
        self.count.swap(edges.len(), Ordering::SeqCst);
    }

    fn remove(&self, edges: &mut Option<Edges>, number: u64) -> Option<Edge> {
        let edges = edges.as_mut()?;
        let edge = edges.remove(&number);
        // Relaxed: a thread that sees a count that is too high takes the lock.
        self.count.store(edges.len(), Ordering::Relaxed);
        edge
    }
}

/// The running thread's actor waits, for as long as this exists, or until the wait is over.
pub(crate) struct Waits(Option<u64>);

impl Waits {
    /// The running thread is about to wait for this. Who ends the wait may know of it already.
    ///
    /// # Errors
    /// The names on the way, if that would be for ever.
    pub(crate) fn begin(to: &To, limit: Limit, over: &Over) -> Result<Waits, Cycle> {
        let Some(from) = works_for() else {
            return Ok(Waits(None));
        };
        about_to_wait();
        let table = Table::of(from.number());
        {
            let mut edges = locked(&table.edges);
            if over.is_set() || thread::is_interrupted() {
                return Ok(Waits(None)); // It does not wait, or not for long.
            }
            let edge = Edge {
                from: from.clone(),
                to: to.clone(),
                limit,
                over: over.clone(),
            };
            table.insert(&mut edges, edge);
        }
        let waits = Waits(Some(from.number()));
        match search::circle(&from, to, limit) {
            None => Ok(waits),
            Some(cycle) => Err(cycle),
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            let table = Table::of(number);
            let edge = table.remove(&mut locked(&table.edges), number);
            drop(edge);
        }
    }
}

/// An actor has been interrupted: what it waits for, if anything, is over for it.
pub(crate) fn interrupted(actor: &Identity) {
    drop(Waits(Some(actor.number())));
}

/// Returns whom an actor waits for.
pub(crate) fn waits_for(number: u64) -> Option<Identity> {
    let edges = locked(&Table::of(number).edges);
    let edge = edges.as_ref()?.get(&number)?;
    let first = edge.to.first().cloned()?;
    (!edge.over.is_set()).then_some(first)
}
