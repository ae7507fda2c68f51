//! The scopes of a dump as a tree.

use crate::model::{Dump, Scope, Thread};
use std::collections::{HashMap, HashSet};

/// A scope and its place in the tree.
pub(crate) struct Placed<'a> {
    pub scope: &'a Scope,
    /// Its parent, if that is in the dump.
    #[cfg_attr(not(feature = "formats"), expect(dead_code))]
    pub parent: Option<u64>,
    /// How many scopes it is in.
    pub depth: usize,
}

/// Returns all scopes, each followed by those that were opened in it.
///
/// Each is there once, whatever the dump says: of several with one id the first, and of scopes that
/// are each other's parents one becomes the first of its tree.
pub(crate) fn in_order(dump: &Dump) -> Vec<Placed<'_>> {
    let known: HashSet<u64> = dump.scopes.iter().map(|scope| scope.id).collect();
    let mut below: HashMap<Option<u64>, Vec<&Scope>> = HashMap::new();
    for scope in &dump.scopes {
        // A parent that ended meanwhile is not there.
        let parent = scope.parent.filter(|id| known.contains(id));
        below.entry(parent).or_default().push(scope);
    }
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let mut seen = HashSet::new();
    let roots = below.remove(&None).unwrap_or_default();
    for root in roots.iter().copied().chain(&dump.scopes) {
        let mut pending = vec![Placed {
            scope: root,
            parent: None,
            depth: 0,
        }];
        while let Some(next) = pending.pop() {
            if !seen.insert(next.scope.id) {
                continue;
            }
            let (parent, depth) = (Some(next.scope.id), next.depth + 1);
            placed.push(next);
            let scopes = below.remove(&parent).unwrap_or_default();
            pending.extend(scopes.into_iter().rev().map(|scope| Placed {
                scope,
                parent,
                depth,
            }));
        }
    }
    placed
}

/// Returns the threads of each scope. If the dump lacks a thread's scope, the thread is under
/// `None`.
pub(crate) fn members(dump: &Dump) -> HashMap<Option<u64>, Vec<&Thread>> {
    let known: HashSet<u64> = dump.scopes.iter().map(|scope| scope.id).collect();
    let mut members: HashMap<Option<u64>, Vec<&Thread>> = HashMap::new();
    for thread in &dump.threads {
        members
            .entry(thread.scope.filter(|id| known.contains(id)))
            .or_default()
            .push(thread);
    }
    members
}
