//! The tree of scopes.

use std::collections::{HashMap, HashSet};

use pirn_dump::{Dump, Scope, show};
use serde::Serialize;

use super::looked::{Made, grouped};
use super::row::{Words, cut};
use crate::request::Query;
use pirn_live::Live;

/// How many scopes are sent, and how many of one parent: those with the most subtasks.
const MAX: usize = 1_000;
const OF_ONE: usize = 50;
/// No program nests scopes deeper.
const DEEP: usize = 64;

/// The answer to `scopes`.
#[derive(Serialize)]
pub struct Scopes {
    #[serde(flatten)]
    made: Made,
    all: usize,
    /// Threads that are in no scope.
    outside: u64,
    tree: Vec<Node>,
    /// Those at the top that are not in the tree.
    more: usize,
}

#[derive(Serialize)]
struct Node {
    id: u64,
    name: Option<String>,
    owner: Option<u64>,
    owner_name: Option<String>,
    cancelled: bool,
    subtasks: u64,
    scopes: Vec<Node>,
    /// Scopes in this one that are not in the tree.
    more: usize,
}

/// Answers with the tree.
pub fn scopes(live: &Live, _: &Query) -> Result<Scopes, String> {
    let snapshot = grouped(live)?;
    let dump = &snapshot.dump;
    let words = Words(&snapshot);
    let mut below = below(dump);
    let mut room = MAX;
    let (tree, more) = nodes(None, &mut below, &|id| words.name(id), &mut room, 0);
    let inside: u64 = dump.scopes.iter().map(|scope| scope.members).sum();
    Ok(Scopes {
        made: Made::of(&snapshot),
        all: dump.scopes.len(),
        outside: (dump.totals.listed + dump.totals.unlisted_new).saturating_sub(inside),
        tree,
        more,
    })
}

/// Returns the scopes by their parents. One whose parent is gone is at the top.
fn below(dump: &Dump) -> HashMap<Option<u64>, Vec<&Scope>> {
    let known: HashSet<u64> = dump.scopes.iter().map(|scope| scope.id).collect();
    let mut below: HashMap<Option<u64>, Vec<&Scope>> = HashMap::new();
    for scope in &dump.scopes {
        let parent = scope
            .parent
            .filter(|id| known.contains(id) && *id != scope.id);
        below.entry(parent).or_default().push(scope);
    }
    for scopes in below.values_mut() {
        scopes.sort_by_key(|scope| (std::cmp::Reverse(scope.members), scope.id));
    }
    below
}

/// Makes the part of the tree below a scope, and counts what is left out. Each scope is taken from
/// `below`, so a circle has an end.
fn nodes(
    parent: Option<u64>,
    below: &mut HashMap<Option<u64>, Vec<&Scope>>,
    owner_name: &dyn Fn(u64) -> Option<String>,
    room: &mut usize,
    depth: usize,
) -> (Vec<Node>, usize) {
    let scopes = below.remove(&parent).unwrap_or_default();
    let count = if depth < DEEP {
        scopes.len().min(OF_ONE).min(*room)
    } else {
        0
    };
    *room -= count;
    let mut made = Vec::new();
    for scope in &scopes[..count] {
        let (inner, more) = nodes(Some(scope.id), below, owner_name, room, depth + 1);
        made.push(Node {
            id: scope.id,
            name: scope
                .name
                .as_deref()
                .map(|name| cut(&show::plain(name.as_bytes()))),
            owner: scope.owner,
            owner_name: scope.owner.and_then(owner_name),
            cancelled: scope.cancelled,
            subtasks: scope.members,
            scopes: inner,
            more,
        });
    }
    (made, scopes.len() - count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(scopes: &[(u64, Option<u64>)]) -> (Vec<Node>, usize) {
        let scope = |&(id, parent): &(u64, Option<u64>)| Scope {
            id,
            parent,
            members: id,
            ..Scope::default()
        };
        let dump = Dump {
            scopes: scopes.iter().map(scope).collect(),
            ..Dump::default()
        };
        nodes(None, &mut below(&dump), &|_| None, &mut MAX.clone(), 0)
    }

    #[test]
    fn scopes_are_below_their_parents_largest_first() {
        let (tree, more) = tree(&[(1, None), (2, Some(1)), (3, Some(1)), (4, Some(99))]);
        let ids = |nodes: &[Node]| nodes.iter().map(|node| node.id).collect::<Vec<_>>();
        assert_eq!((ids(&tree), more), (vec![4, 1], 0));
        assert_eq!(ids(&tree[1].scopes), [3, 2]);
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let many: Vec<_> = (1..=200).map(|id| (id, None)).collect();
        let (top, more) = tree(&many);
        assert_eq!((top.len(), more, top[0].id), (OF_ONE, 150, 200));
        let deep: Vec<_> = (1..=200).map(|id| (id, (id > 1).then(|| id - 1))).collect();
        assert_eq!(tree(&deep).0.len(), 1);
        // A circle has no top.
        assert_eq!(tree(&[(1, Some(2)), (2, Some(1))]).0.len(), 0);
        assert_eq!(tree(&[(1, Some(1))]).0.len(), 1);
    }
}
