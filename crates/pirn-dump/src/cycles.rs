//! Threads that wait for each other in a circle.
//!
//! A thread that joins, or waits for a lock, waits for one thread; the owner of a scope waits for
//! all of the scope's subtasks. Each of them has to come first, so every circle is a deadlock, if
//! no wait in it has a deadline.

use super::{Finding, LockKind, Thread, Wait, WaitKind};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;

/// A thread that cannot go on before others have done something.
///
/// # Examples
/// ```
/// use pirn_dump::{Blocker, Waiter, cycles};
///
/// let joins = |thread, other| Waiter { thread, scope: 0, blocker: Blocker::Thread(other) };
/// let waiters = [joins(1, 2), joins(2, 3), joins(3, 2)];
/// assert_eq!(cycles(&waiters), [[2, 3]]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The thread's id.
    pub thread: u64,
    /// The id of the scope that it is a subtask of; 0: none.
    pub scope: u64,
    /// Whom it waits for.
    pub blocker: Blocker,
}

/// Whom a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// The thread with this id.
    Thread(u64),
    /// All subtasks of the scope with this id.
    Scope(u64),
}

/// Returns circles of threads that wait for each other, each thread followed by one that it waits
/// for, beginning with the lowest id.
///
/// Of circles that have threads in common, one is returned. It takes time in proportion to the
/// number of waiters.
pub fn cycles(waiters: &[Waiter]) -> Vec<Vec<u64>> {
    let graph = Graph::new(waiters);
    let mut found: Vec<_> = graph
        .entangled()
        .into_iter()
        .filter_map(|group| graph.circle_in(&group))
        .collect();
    found.sort();
    found
}

/// Returns what to tell people about a circle: `threads` in its order, each with what it waits for.
///
/// # Examples
/// ```
/// use pirn_dump::{Thread, Wait, cycle_finding};
///
/// let joins = |id, thread| Thread { id, wait: Wait::Join { thread }, ..Thread::default() };
/// let finding = cycle_finding(&[joins(1, 2), joins(2, 1)]);
/// assert_eq!(
///     finding.text,
///     "2 threads wait for each other: #1 joins #2, #2 joins #1",
/// );
/// ```
pub fn cycle_finding(threads: &[Thread]) -> Finding {
    // Whose owners are guessed.
    let is_futex = |wait: &Wait| matches!(wait.kind(), WaitKind::Lock(LockKind::Futex));
    let probably = match threads.iter().any(|thread| is_futex(&thread.wait)) {
        true => "probably ",
        false => "",
    };
    let mut text = match threads {
        [_] => format!("a thread {probably}waits for itself: "),
        _ => format!("{} threads {probably}wait for each other: ", threads.len()),
    };
    for (i, thread) in threads.iter().enumerate() {
        let next = &threads[(i + 1) % threads.len()];
        let (this, next) = (label(thread), label(next));
        let comma = if i > 0 { ", " } else { "" };
        // Writing to a string does not fail.
        let _ = match &thread.wait {
            Wait::Join { .. } => write!(text, "{comma}{this} joins {next}"),
            Wait::Scope { id } => write!(
                text,
                "{comma}{this} waits for scope {id}, unless it is cancelled, and so for {next}"
            ),
            Wait::Lock { address, what, .. } => {
                let kind = match what {
                    LockKind::RwLock => "the lock for writing",
                    LockKind::Futex => "the lock at",
                    kind => kind.word(),
                };
                write!(
                    text,
                    "{comma}{this} waits for {kind} {address:#x} of {next}"
                )
            }
            _ => write!(text, "{comma}{this} waits for {next}"),
        };
    }
    Finding {
        kind: "wait-cycle".into(),
        text,
        threads: threads.iter().map(|thread| thread.id).collect(),
    }
}

/// Returns a thread's id, and its name if it has one.
fn label(thread: &Thread) -> String {
    match &thread.name {
        Some(name) => format!("#{} {:?}", thread.id, String::from_utf8_lossy(name)),
        None => format!("#{}", thread.id),
    }
}

/// Waiters by number, and whom each waits for.
struct Graph<'a> {
    waiters: &'a [Waiter],
    by_thread: HashMap<u64, usize>,
    /// The waiters among the subtasks of each scope.
    members: HashMap<u64, Vec<usize>>,
}

impl<'a> Graph<'a> {
    fn new(waiters: &'a [Waiter]) -> Graph<'a> {
        let joined: HashSet<u64> = waiters
            .iter()
            .filter_map(|waiter| match waiter.blocker {
                Blocker::Scope(id) => Some(id),
                Blocker::Thread(_) => None,
            })
            .collect();
        let mut by_thread = HashMap::with_capacity(waiters.len());
        let mut members: HashMap<u64, Vec<usize>> = HashMap::new();
        for (number, waiter) in waiters.iter().enumerate() {
            by_thread.insert(waiter.thread, number);
            if joined.contains(&waiter.scope) {
                members.entry(waiter.scope).or_default().push(number);
            }
        }
        Graph {
            waiters,
            by_thread,
            members,
        }
    }

    /// Returns the waiter, of those that this one waits for, with this index.
    fn blocker(&self, waiter: usize, index: usize) -> Option<usize> {
        match self.waiters[waiter].blocker {
            Blocker::Thread(id) if index == 0 => self.by_thread.get(&id).copied(),
            Blocker::Thread(_) => None,
            Blocker::Scope(id) => self.members.get(&id)?.get(index).copied(),
        }
    }

    fn blockers(&self, waiter: usize) -> impl Iterator<Item = usize> + '_ {
        (0..).map_while(move |index| self.blocker(waiter, index))
    }

    /// Returns the groups of waiters in which each waits for each, at least indirectly, also for
    /// itself: the strongly connected components, by Tarjan's algorithm, with a stack of its own.
    fn entangled(&self) -> Vec<Vec<usize>> {
        const NEW: usize = usize::MAX;
        let count = self.waiters.len();
        let (mut order, mut lowest) = (vec![NEW; count], vec![NEW; count]);
        let mut open = Vec::new();
        let mut is_open = vec![false; count];
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut found = Vec::new();
        let mut next = 0;
        for start in 0..count {
            if order[start] != NEW {
                continue;
            }
            path.push((start, 0));
            while let Some(&mut (waiter, ref mut index)) = path.last_mut() {
                if *index == 0 && order[waiter] == NEW {
                    (order[waiter], lowest[waiter]) = (next, next);
                    next += 1;
                    open.push(waiter);
                    is_open[waiter] = true;
                }
                if let Some(blocker) = self.blocker(waiter, *index) {
                    *index += 1;
                    if order[blocker] == NEW {
                        path.push((blocker, 0));
                    } else if is_open[blocker] {
                        lowest[waiter] = lowest[waiter].min(order[blocker]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(before, _)) = path.last() {
                    lowest[before] = lowest[before].min(lowest[waiter]);
                }
                if lowest[waiter] == order[waiter] {
                    let group = close(&mut open, &mut is_open, waiter);
                    if group.len() > 1 || self.blockers(waiter).any(|b| b == waiter) {
                        found.push(group);
                    }
                }
            }
        }
        found
    }

    /// Returns a shortest circle through the lowest id of a group.
    fn circle_in(&self, group: &[usize]) -> Option<Vec<u64>> {
        let first = *group
            .iter()
            .min_by_key(|&&waiter| self.waiters[waiter].thread)?;
        let inside: HashSet<usize> = group.iter().copied().collect();
        let mut came_from = HashMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(waiter) = queue.pop_front() {
            for blocker in self.blockers(waiter).filter(|b| inside.contains(b)) {
                if blocker == first {
                    let mut circle = vec![waiter];
                    while let Some(&before) = came_from.get(circle.last()?) {
                        circle.push(before);
                    }
                    circle.reverse();
                    return Some(circle.iter().map(|&w| self.waiters[w].thread).collect());
                }
                if let Entry::Vacant(entry) = came_from.entry(blocker) {
                    entry.insert(waiter);
                    queue.push_back(blocker);
                }
            }
        }
        None // Not reached: in such a group there is a way back.
    }
}

/// Takes the waiters off the list of open ones, down to `last`.
fn close(open: &mut Vec<usize>, is_open: &mut [bool], last: usize) -> Vec<usize> {
    let at = open.iter().rposition(|&waiter| waiter == last);
    let group = open.split_off(at.unwrap_or_default());
    group.iter().for_each(|&waiter| is_open[waiter] = false);
    group
}

#[cfg(test)]
mod tests;
