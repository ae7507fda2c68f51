//! The search for circles.
//!
//! An actor is *stuck* if all members of a [`Group`] that it needs are stuck: any member could end
//! its wait, and none ever will. The search works from the other end. It takes all waiting actors
//! that it reaches for stuck, and then removes each actor whose groups all have a member that is
//! not stuck, until nothing changes. If the searching actor is left, and is on a path from itself
//! to itself, there is a circle.
//!
//! A stuck actor that is on no such path waits for a circle of others. Those were told, or have
//! chosen to give up in time, so the searching actor gets no error.

use super::{EDGES, Edge, Edges, TABLES, Table, To};
use crate::error::Cycle;
use crate::identity::Identity;
use crate::poison::locked;
use crate::time::Limit;
use core::sync::atomic::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, MutexGuard};

/// Actors any of which can end a wait.
struct Group {
    name: Identity,
    numbers: Vec<u64>,
}

struct Search<'a> {
    /// All tables, locked. If `None`, each table is locked while it is searched.
    tables: Option<Vec<MutexGuard<'static, Edges>>>,
    /// The actor that is about to wait, and its time limit.
    from: &'a Identity,
    limit: Limit,
}

/// Returns the names on the path from an actor to itself, if it would be stuck in a wait for `to`.
/// Takes its edge out of the table in that case.
pub(super) fn circle(from: &Identity, to: &To, limit: Limit) -> Option<Cycle> {
    let mut search = Search {
        tables: None,
        from,
        limit,
    };
    if let To::Actor(to) = to
        && to != from
        && search.waits(to.number()).is_none()
    {
        return None; // as almost always
    }
    search.cycle()?;
    search.tables = Some(EDGES.iter().map(|table| locked(&table.edges)).collect());
    let cycle = search.cycle()?;
    let number = from.number();
    let mut tables = search.tables?;
    let edge = Table::of(number).remove(&mut tables[number as usize % TABLES], number);
    drop(tables);
    drop(edge);
    Some(cycle)
}

impl Search<'_> {
    fn cycle(&self) -> Option<Cycle> {
        let stuck = self.stuck();
        stuck.contains_key(&self.from.number()).then_some(())?;
        self.way(&stuck)
    }

    /// Calls `f` with the edge of an actor, if it has one.
    fn with_edge<R>(&self, number: u64, f: impl FnOnce(&Edge) -> R) -> Option<R> {
        if let Some(tables) = &self.tables {
            return tables[number as usize % TABLES].get(&number).map(f);
        }
        let table = Table::of(number);
        // SeqCst: pairs with the swap in `Table::insert`.
        if table.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        locked(&table.edges).get(&number).map(f)
    }

    /// Returns the target of an actor's wait, unless the actor gives up before the searching one.
    fn waits(&self, number: u64) -> Option<To> {
        let stuck_for = |edge: &Edge| {
            let is_stuck = !edge.over.is_set() && !edge.limit.is_before(self.limit);
            is_stuck.then(|| edge.to.clone())
        };
        self.with_edge(number, stuck_for)?
    }

    /// Returns the groups of this target: its wait needs one member of each. Leaves out a group
    /// that others may join, since one of them could end the wait.
    fn groups(&self, to: &To) -> Vec<Group> {
        match to {
            To::Actor(identity) => vec![Group {
                name: identity.clone(),
                numbers: vec![identity.number()],
            }],
            To::AnyOf(any) => {
                let name = any.identity().clone();
                let numbers = any.all().filter(|numbers| !numbers.is_empty());
                let group = numbers.map(|numbers| Group { name, numbers });
                group.into_iter().collect()
            }
            To::Way(way) => way.left().iter().flat_map(|to| self.groups(to)).collect(),
        }
    }

    /// Returns the stuck actors among all for which the searching actor would wait, directly or
    /// through others, each with its groups.
    fn stuck(&self) -> HashMap<u64, Vec<Group>> {
        let mut waiting = HashMap::new();
        let mut order = Vec::new();
        let mut next = vec![self.from.number()];
        while let Some(number) = next.pop() {
            if waiting.contains_key(&number) {
                continue;
            }
            let Some(to) = self.waits(number) else {
                continue;
            };
            let groups = self.groups(&to);
            next.extend(groups.iter().flat_map(|group| &group.numbers));
            waiting.insert(number, groups);
            order.push(number);
        }
        loop {
            let before = waiting.len();
            // The actors found last are the first that can continue.
            for number in order.iter().rev() {
                let is_stuck = |group: &Group| {
                    let mut numbers = group.numbers.iter();
                    numbers.all(|number| waiting.contains_key(number))
                };
                let groups = waiting.get(number);
                if groups.is_some_and(|groups| !groups.iter().any(is_stuck)) {
                    waiting.remove(number);
                }
            }
            if waiting.len() == before {
                break;
            }
        }
        // Keeps only the groups for which an actor is stuck.
        let stuck: HashSet<u64> = waiting.keys().copied().collect();
        for groups in waiting.values_mut() {
            groups.retain(|group| group.numbers.iter().all(|number| stuck.contains(number)));
        }
        waiting
    }

    /// Returns the names on the shortest path from the searching actor to itself, through stuck
    /// actors.
    fn way(&self, stuck: &HashMap<u64, Vec<Group>>) -> Option<Cycle> {
        let from = self.from.number();
        // From an actor to the one before it on the path, and the group that contains it.
        let mut before: HashMap<u64, (u64, &Group)> = HashMap::new();
        let mut next = VecDeque::from([from]);
        while !before.contains_key(&from) {
            let at = next.pop_front()?;
            for group in &stuck[&at] {
                for number in &group.numbers {
                    before.entry(*number).or_insert_with(|| {
                        next.push_back(*number);
                        (at, group)
                    });
                }
            }
        }
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut at = from;
        loop {
            let (last, group) = before[&at];
            if group.numbers.len() > 1 {
                names.push(group.name.name());
            }
            names.push(self.identity(last).name());
            at = last;
            if at == from {
                break;
            }
        }
        names.reverse();
        Some(Cycle::new(names))
    }

    fn identity(&self, number: u64) -> Identity {
        let from = self.with_edge(number, |edge| edge.from.clone());
        from.unwrap_or_else(|| self.from.clone())
    }
}
