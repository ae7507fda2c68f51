//! Which actor waits for which: deadlocks are found before anybody waits in one.
//!
//! An actor that waits, for an answer or for room in a mailbox, has one thread and waits for one
//! other actor: one edge. Before it waits, it follows the edges. If they lead back to itself, no
//! actor on the way can go on, and the ask fails with their names in place of waiting for ever.
//!
//! All edges are in one table under one lock, so of the actors that close a circle at the same
//! time only the last one sees it, and fails; the others get their answers. Threads that are no
//! actors have no edges, and do not pay for this.
//!
//! Where somebody on the way gives up earlier than the one who looks, there is no deadlock: that
//! one's time limit breaks the circle, and is what its user has asked for.
//!
//! Rejected: an atomic pointer per actor in place of the table. A walk over pointers needs the
//! actors kept alive, and then two that close a circle together both fail.

use crate::error::Cycle;
use crate::identity::{Identity, works_for};
use crate::poison::locked;
use crate::time::Limit;
use std::collections::HashMap;
use std::sync::Mutex;

struct Edge {
    from: Identity,
    to: Identity,
    limit: Limit,
}

/// From an actor's number to whom it waits for.
static EDGES: Mutex<Option<HashMap<u64, Edge>>> = Mutex::new(None);

/// The running thread's actor waits, for as long as this exists.
pub(crate) struct Waits(Option<u64>);

impl Waits {
    /// The running thread is about to wait for this actor.
    ///
    /// # Errors
    /// The names on the way, if that would be for ever.
    pub(crate) fn for_actor(to: &Identity, limit: Limit) -> Result<Waits, Cycle> {
        let Some(from) = works_for() else {
            return Ok(Waits(None));
        };
        let mut edges = locked(&EDGES);
        let edges = edges.get_or_insert_default();
        if let Some(cycle) = circle(edges, &from, to, limit) {
            return Err(cycle);
        }
        let number = from.number();
        let to = to.clone();
        edges.insert(number, Edge { from, to, limit });
        Ok(Waits(Some(number)))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            let edge = locked(&EDGES)
                .as_mut()
                .and_then(|edges| edges.remove(&number));
            drop(edge);
        }
    }
}

/// Returns whom an actor waits for.
pub(crate) fn waits_for(number: u64) -> Option<Identity> {
    let edges = locked(&EDGES);
    let edge = edges.as_ref()?.get(&number)?;
    Some(edge.to.clone())
}

/// Follows the edges from `to`. Returns the names if they lead to `from`, and nobody on the way
/// gives up before `limit`.
fn circle(
    edges: &HashMap<u64, Edge>,
    from: &Identity,
    to: &Identity,
    limit: Limit,
) -> Option<Cycle> {
    let mut way = vec![from];
    let mut at = to;
    while at != from {
        way.push(at);
        let edge = edges.get(&at.number())?;
        if edge.limit.is_before(limit) {
            return None;
        }
        debug_assert_eq!(edge.from, *at);
        at = &edge.to;
    }
    Some(Cycle::new(way.into_iter().map(Identity::name).collect()))
}
