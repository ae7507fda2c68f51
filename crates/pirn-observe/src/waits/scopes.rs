//! Scopes that are on no list.

use pirn_dump::{Scope, Thread, Wait};
use std::collections::{HashMap, HashSet};

/// Adds the scopes of `pirn::thread::scope` to the open `scopes`: they are
/// found by the listed `threads` that belong to them.
pub fn complete(mut scopes: Vec<Scope>, threads: &[Thread]) -> Vec<Scope> {
    let known: HashSet<u64> = scopes.iter().map(|scope| scope.id).collect();
    let mut others: HashMap<u64, Scope> = HashMap::new();
    for thread in threads {
        if let Some(id) = thread.scope.filter(|id| !known.contains(id)) {
            let scope = others.entry(id).or_default();
            scope.id = id;
            scope.members += 1;
        }
    }
    for thread in threads {
        if let Wait::Scope { id } = thread.wait
            && let Some(scope) = others.get_mut(&id)
        {
            scope.owner = Some(thread.id);
            scope.parent = thread.scope;
        }
    }
    scopes.extend(others.into_values());
    scopes.sort_unstable_by_key(|scope| scope.id);
    scopes
}
