//! The search for circles.
//!
//! An actor is *stuck* if it waits for others of which some part (see [`Group`]) cannot do what is
//! needed, because all who might are stuck. Those are found from the other end: all who wait are
//! taken for stuck, and then each that has one that can go on in each group is not, until nothing
//! changes. If the one who looks is left, and is on the way from itself to itself, there is a
//! circle.
//!
//! One that is stuck, and not on such a way, waits for a circle of others. They were told, or have
//! chosen to give up in time, and it is not the one to be told now.

use super::{Edges, To};
use crate::error::Cycle;
use crate::identity::Identity;
use crate::time::Limit;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Actors of which any does what is needed.
struct Group {
    name: Identity,
    numbers: Vec<u64>,
}

struct Search<'a> {
    edges: &'a Edges,
    /// Who is about to wait, for what, until when.
    from: &'a Identity,
    to: &'a To,
    limit: Limit,
}

/// Returns the names on the way from an actor to itself, if it would be stuck when it waits for
/// this.
pub(super) fn circle(edges: &Edges, from: &Identity, to: &To, limit: Limit) -> Option<Cycle> {
    let search = Search {
        edges,
        from,
        to,
        limit,
    };
    if let To::Actor(to) = to
        && to != from
        && search.waits(to.number()).is_none()
    {
        return None; // as almost always
    }
    let stuck = search.stuck();
    stuck.contains_key(&from.number()).then_some(())?;
    search.way(&stuck)
}

impl Search<'_> {
    /// Returns what an actor waits for, unless it gives up before the one who looks.
    fn waits(&self, number: u64) -> Option<&To> {
        if number == self.from.number() {
            return Some(self.to);
        }
        let edge = self.edges.get(&number)?;
        let is_stuck = !edge.over.is_set() && !edge.limit.is_before(self.limit);
        is_stuck.then_some(&edge.to)
    }

    /// Returns those of whom this needs one each. Those whom others may join are left out, since
    /// there the others may do it.
    fn groups(&self, to: &To) -> Vec<Group> {
        match to {
            To::Actor(identity) => vec![Group {
                name: identity.clone(),
                numbers: vec![identity.number()],
            }],
            To::AnyOf(staff) => staff
                .all()
                .filter(|numbers| !numbers.is_empty())
                .map(|numbers| Group {
                    name: staff.identity().clone(),
                    numbers,
                })
                .into_iter()
                .collect(),
            To::Way(way) => way.left().iter().flat_map(|to| self.groups(to)).collect(),
        }
    }

    /// Returns all whom the one who looks would wait for, directly or through others, and who are
    /// stuck then, each with what it waits for.
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
            let groups = self.groups(to);
            next.extend(groups.iter().flat_map(|group| &group.numbers));
            waiting.insert(number, groups);
            order.push(number);
        }
        loop {
            let before = waiting.len();
            // Those that were found last are the first to go on.
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
        // What is left for those who stay is what they are stuck for.
        let stuck: HashSet<u64> = waiting.keys().copied().collect();
        for groups in waiting.values_mut() {
            groups.retain(|group| group.numbers.iter().all(|number| stuck.contains(number)));
        }
        waiting
    }

    /// Returns the names on the shortest way from the one who looks to itself, through those who
    /// are stuck.
    fn way(&self, stuck: &HashMap<u64, Vec<Group>>) -> Option<Cycle> {
        let from = self.from.number();
        // From an actor to the one before it on the way, and the group in which it is.
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

    fn identity(&self, number: u64) -> &Identity {
        match self.edges.get(&number) {
            Some(edge) if number != self.from.number() => &edge.from,
            _ => self.from,
        }
    }
}
