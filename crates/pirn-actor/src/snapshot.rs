//! Snapshots: a list of all actors.

use crate::edges;
use crate::identity::{ByNumber, Identity, empty};
use crate::life::{Actor, Load};
use crate::poison::locked;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The number of tables: several, so that carriers that make actors do not contend for one lock.
const SHARDS: usize = 16;

/// Three words for each actor: there may be millions.
type Table = ByNumber<Weak<dyn Actor>>;

#[repr(align(64))]
struct Shard(Mutex<Table>);

static ACTORS: [Shard; SHARDS] = [const { Shard(Mutex::new(empty())) }; SHARDS];

fn shard(identity: &Identity) -> &'static Mutex<Table> {
    &ACTORS[identity.number() as usize % SHARDS].0
}

/// Adds an actor.
pub(crate) fn enter(identity: &Identity, seen: Weak<dyn Actor>) {
    locked(shard(identity)).insert(identity.number(), seen);
}

/// Takes out an actor that has ended.
pub(crate) fn forget(identity: &Identity) {
    take_out(locked(shard(identity)), identity);
}

/// Takes out an actor, and drops its entry after the lock is released.
fn take_out(mut table: MutexGuard<'_, Table>, identity: &Identity) {
    let entry = table.remove(&identity.number());
    drop(table);
    drop(entry);
}

/// Takes out an actor if `ends` returns that it has ended. Returns false if it has not, or if the
/// table is locked: its owner may wait for a lock that the caller holds.
pub(crate) fn forget_if(identity: &Identity, ends: impl FnOnce() -> bool) -> bool {
    let Ok(table) = shard(identity).try_lock() else {
        return false;
    };
    if !ends() {
        return false;
    }
    take_out(table, identity);
    true
}

/// The data of an actor in a snapshot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActorInfo {
    /// The actor's name.
    pub name: Arc<str>,
    /// The type of its state.
    pub kind: &'static str,
    /// The number of messages that it has begun.
    pub begun: u64,
    /// The number of messages that wait in its mailbox.
    pub waiting: usize,
    /// The number of senders that wait for room in its mailbox.
    pub senders: usize,
    /// The name of the actor for which it waits, in an ask or for room in a mailbox.
    pub waits_for: Option<Arc<str>>,
}

/// Returns all actors that have not ended, in the order in which they were made, including pools,
/// their workers and supervisors. The data of different actors is not from the same moment.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let log = actor::Builder::new().name("log").consumer(|line: String| println!("{line}"));
/// log.send("hello".to_string()).unwrap();
/// let actors = actor::snapshot::take();
/// assert!(actors.iter().any(|actor| &*actor.name == "log"));
/// ```
pub fn take() -> Vec<ActorInfo> {
    let mut actors = Vec::new();
    for shard in &ACTORS {
        let table = locked(&shard.0);
        for entry in table.values() {
            // Dropped before the lock is released: the actor of a scope is taken out before the
            // scope ends.
            let Some(seen) = entry.upgrade() else {
                continue;
            };
            actors.push((seen.identity().clone(), seen.kind(), seen.load()));
        }
    }
    actors.sort_by_key(|(identity, ..)| identity.number());
    let info = |(identity, kind, load): (Identity, _, Load)| ActorInfo {
        name: identity.name(),
        kind,
        begun: load.begun,
        waiting: load.waiting,
        senders: load.senders,
        waits_for: edges::waits_for(identity.number()).map(|to| to.name()),
    };
    actors.into_iter().map(info).collect()
}
