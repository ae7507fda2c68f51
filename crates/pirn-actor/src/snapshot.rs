//! All actors that there are, for people.

use crate::edges;
use crate::identity::{ByNumber, Identity};
use crate::life::{Actor, Load};
use crate::poison::locked;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The number of tables: several, so that carriers that make actors do not contend.
const SHARDS: usize = 16;

/// Three words for each actor: there may be millions.
type Table = ByNumber<Weak<dyn Actor>>;

#[repr(align(64))]
struct Shard(Mutex<Option<Table>>);

static ACTORS: [Shard; SHARDS] = [const { Shard(Mutex::new(None)) }; SHARDS];

fn shard(identity: &Identity) -> &'static Mutex<Option<Table>> {
    &ACTORS[identity.number() as usize % SHARDS].0
}

/// Enters an actor.
pub(crate) fn enter(identity: &Identity, seen: Weak<dyn Actor>) {
    let mut table = locked(shard(identity));
    table
        .get_or_insert_default()
        .insert(identity.number(), seen);
}

/// Takes an actor out that has ended.
pub(crate) fn forget(identity: &Identity) {
    take_out(locked(shard(identity)), identity);
}

/// Takes an actor out, and drops its entry outside of the lock.
fn take_out(mut table: MutexGuard<'_, Option<Table>>, identity: &Identity) {
    let entry = table
        .as_mut()
        .and_then(|table| table.remove(&identity.number()));
    drop(table);
    drop(entry);
}

/// Takes an actor out, if `ends` says that it has ended. Returns false if it has not, or if that
/// was not tried: another thread has the table, which may wait for a lock that the caller has.
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

/// What [`take`] knows of an actor.
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
    /// The actor that it waits for, in an ask or for room in a mailbox.
    pub waits_for: Option<Arc<str>>,
}

/// Returns all actors that have not ended, in the order in which they were made: pools, their
/// workers and supervisors as well. Each is seen at a moment of its own.
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
        for entry in table.iter().flat_map(Table::values) {
            // Dropped before the lock: an actor of a scope is taken out before the scope ends.
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
