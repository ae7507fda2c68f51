//! Which actor waits for which: finds a deadlock before the actor that would close it waits.
//!
//! An actor that waits, for an answer or for room in a mailbox, has one thread and one *edge*. The
//! edge names its target:
//!
//! ```text
//!   an actor      the wait ends when the actor has answered, or has room
//!   a pool        the wait ends when any of its workers has
//!   a pipeline    the wait ends when each stage has that the message has not passed
//! ```
//!
//! Before an actor waits, it follows the edges (`search.rs`). If none of the actors that it waits
//! for can ever continue, because they wait for each other and for it, its ask fails with their
//! names instead of waiting for ever.
//!
//! The edges are in several tables, each under its own lock. An actor puts its edge into a table
//! first and searches then, so of two actors that close a circle at the same time at least one sees
//! the other's edge. The search takes one lock at a time, and no lock of an empty table, as almost
//! all tables are. It may find a circle of edges that never existed at the same time. So an actor
//! that has found a circle locks all tables, searches once more, and takes its own edge out if the
//! circle is still there: only one actor of a circle fails, and the others get their answers.
//! Threads that are not actors have no edges, and do not pay for this.
//!
//! A wait is over before its thread has taken the edge out: the answering actor has already moved
//! on to its next message. So the actor that ends a wait marks it with [`Over`] first. Its own next
//! edge comes after that, under the lock of its table: a thread that has locked all tables and sees
//! that edge also sees that the other wait is over.
//!
//! If overflow displaces a request from a mailbox, its asker is told under the lock of that
//! mailbox: a thread that sees the message that took its place sees that the wait is over.
//!
//! An interrupt ends a wait, too. A thread that kills an actor, or holds it for a restart, takes
//! its edge out, and a thread that is about to wait checks under the lock whether it was
//! interrupted before.
//!
//! If an actor on the path gives up earlier than the searching one, there is no deadlock: its time
//! limit breaks the circle, as its user asked.
//!
//! Rejected: one table under one lock, which all asks of actors would share; an atomic pointer per
//! actor, since a walk over pointers needs the actors kept alive.

mod search;

use crate::error::Cycle;
use crate::identity::{ByNumber, Identity, about_to_wait, empty, works, works_for};
use crate::life::Actor;
use crate::poison::locked;
use crate::time::Limit;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use pirn::thread;
use std::sync::{Arc, Mutex};

/// The target of a wait.
#[derive(Clone)]
pub(crate) enum To {
    Actor(Identity),
    /// Any of several actors.
    AnyOf(Arc<dyn AnyOf>),
    /// All stages of a pipeline that the message has not passed.
    Way(Arc<Way>),
}

/// Actors any of which can end a wait, as the workers of a pool.
pub(crate) trait AnyOf: Actor {
    /// Returns the numbers of all members, or `None` if others may join them.
    fn all(&self) -> Option<Vec<u64>>;
}

/// The route of a message through a pipeline.
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

    /// Notes that the message leaves a stage. Called by that stage before it hands the message on.
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
    /// Returns the first actor of the target, for logs and dumps.
    fn first(&self) -> Option<&Identity> {
        match self {
            To::Actor(identity) => Some(identity),
            To::AnyOf(any) => Some(any.identity()),
            To::Way(way) => way.left().first()?.first(),
        }
    }
}

impl fmt::Debug for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first() {
            Some(first) => first.fmt(f),
            None => f.write_str("no actor"),
        }
    }
}

/// Marks a wait of the thread that made this as over. Empty on a thread that works for no actor: no
/// search looks at its waits.
#[derive(Clone, Default)]
pub(crate) struct Over(Option<Arc<AtomicBool>>);

impl Over {
    pub(crate) fn new() -> Over {
        Over(works().then(Arc::default))
    }

    pub(crate) fn set(&self) {
        if let Some(is_over) = &self.0 {
            // Relaxed: a thread that has to see this either sees an edge that the running thread
            // puts into a table later, under the table's lock, or has taken an item that the
            // running thread has put into a mailbox, under the mailbox's lock, which the running
            // thread holds now.
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

/// From an actor's number to its edge.
type Edges = ByNumber<Edge>;

/// The number of tables. An actor's number modulo this is the index of its table.
const TABLES: usize = 128;

#[repr(align(64))]
struct Table {
    edges: Mutex<Edges>,
    /// The number of edges, read without the lock.
    count: AtomicUsize,
}

static EDGES: [Table; TABLES] = [const {
    Table {
        edges: Mutex::new(empty()),
        count: AtomicUsize::new(0),
    }
}; TABLES];

impl Table {
    fn of(number: u64) -> &'static Table {
        &EDGES[number as usize % TABLES]
    }

    fn insert(&self, edges: &mut Edges, edge: Edge) {
        edges.insert(edge.from.number(), edge);
        // SeqCst: each of two actors that wait for each other counts its edge, and then loads the
        // other one's count in `Search::with_edge`. At least one of them sees the other's edge
        // counted.
        self.count.swap(edges.len(), Ordering::SeqCst);
    }

    fn remove(&self, edges: &mut Edges, number: u64) -> Option<Edge> {
        let edge = edges.remove(&number);
        // Relaxed: a thread that sees a count that is too high takes the lock.
        self.count.store(edges.len(), Ordering::Relaxed);
        edge
    }
}

/// The edge of the running thread's actor, which waits while this exists or until the wait is over.
pub(crate) struct Waits(Option<u64>);

impl Waits {
    /// Called before the running thread waits for `to`. The thread that ends the wait may know
    /// `over` already.
    ///
    /// # Errors
    /// The names on the circle, if the wait would last for ever.
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

/// Takes out the edge of an actor that was interrupted: its wait, if any, is over.
pub(crate) fn interrupted(actor: &Identity) {
    drop(Waits(Some(actor.number())));
}

/// Returns the actor for which an actor waits.
pub(crate) fn waits_for(number: u64) -> Option<Identity> {
    let edges = locked(&Table::of(number).edges);
    let edge = edges.get(&number)?;
    let first = edge.to.first().cloned()?;
    (!edge.over.is_set()).then_some(first)
}
