//! Putting threads that are alike into groups.

use crate::model::{Dump, End, Group, State, Thread, WaitKind};
use crate::names::Names;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// How many members of a group are examples.
const EXAMPLES: usize = 3;

/// Puts threads into groups, one after the other.
///
/// # Examples
/// ```
/// use pirn_dump::{Grouper, Thread};
/// let mut grouper = Grouper::default();
/// for number in 0..10 {
///     grouper.add(&Thread { id: 1 + u64::from(number), ..Thread::default() }, number);
/// }
/// let groups = grouper.finish();
/// assert_eq!((groups[0].count, &groups[0].examples[..]), (10, &[0, 1, 2][..]));
/// ```
#[derive(Debug, Default)]
pub struct Grouper {
    numbers: HashMap<Key, usize>,
    groups: Vec<Group>,
}

/// What members of a group have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    stack: Option<u32>,
    state: State,
    wait: WaitKind,
    timed: bool,
    place: Option<u32>,
}

/// How a stack is shown: functions and lines, and its end.
type Look = (Vec<(String, Option<u32>)>, End);

impl Key {
    fn of(group: &Group) -> Key {
        let &Group {
            stack,
            state,
            wait,
            timed,
            place,
            ..
        } = group;
        Key {
            stack,
            state,
            wait,
            timed,
            place,
        }
    }
}

impl Group {
    /// Adds the members of another group.
    fn absorb(&mut self, other: Group) {
        self.count = self.count.saturating_add(other.count);
        if self.object != other.object {
            self.object = None;
        }
        self.oldest = earlier(self.oldest, other.oldest);
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }
}

/// Returns the earlier of two times, if there are any.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl Grouper {
    /// Puts a thread into its group. It becomes an example if the group has too few; `index` is
    /// then the thread's in [`Dump::threads`]. Returns whether it has become one.
    pub fn add(&mut self, thread: &Thread, index: u32) -> bool {
        let key = Key {
            stack: thread.stack,
            state: thread.state,
            wait: thread.wait.kind(),
            timed: thread.until.is_some(),
            place: thread.place,
        };
        let number = match self.numbers.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.groups.push(Group {
                    stack: thread.stack,
                    state: thread.state,
                    wait: thread.wait.kind(),
                    timed: thread.until.is_some(),
                    place: thread.place,
                    object: thread.wait.object(),
                    ..Group::default()
                });
                *entry.insert(self.groups.len() - 1)
            }
        };
        let group = &mut self.groups[number];
        group.count += 1;
        if group.object != thread.wait.object() {
            group.object = None;
        }
        group.oldest = earlier(group.oldest, thread.unmoved_since);
        let is_example = group.examples.len() < EXAMPLES;
        if is_example {
            group.examples.push(index);
        }
        is_example
    }

    /// Returns the groups, largest first.
    pub fn finish(mut self) -> Vec<Group> {
        // Of groups of one size the one that was begun first comes first.
        self.groups
            .sort_by_key(|group| std::cmp::Reverse(group.count));
        self.groups
    }
}

impl Dump {
    /// Groups the threads that are listed anew, and counts them: for a dump of which some were
    /// removed.
    pub fn regroup(&mut self) {
        let mut grouper = Grouper::default();
        let mut by_state = [0; 5];
        for (thread, index) in self.threads.iter().zip(0..) {
            grouper.add(thread, index);
            by_state[thread.state as usize] += 1;
        }
        self.groups = grouper.finish();
        self.totals.by_state = by_state;
        self.totals.listed = self.threads.len() as u64;
        self.totals.unclaimed = self
            .groups
            .iter()
            .filter(|it| it.stack.is_none())
            .map(|it| it.count)
            .sum();
    }

    /// Makes one group of those whose stacks have the same functions and lines when shown without
    /// the runtime's frames: there are several ways through the runtime into the same wait.
    ///
    /// Threads and groups refer to the first of such stacks from then on. The others stay, so that
    /// the stacks' numbers do not change.
    pub fn merge_alike(&mut self, names: &Names) {
        let mut first: HashMap<Look, u32> = HashMap::new();
        let stacks = self.stacks.iter().zip(0..).map(|(stack, index)| {
            let frames = names.shown(stack);
            let frames = frames
                .iter()
                .map(|frame| (frame.name(), frame.line))
                .collect();
            *first.entry((frames, stack.end)).or_insert(index)
        });
        let stacks: Vec<u32> = stacks.collect();
        let replace = |stack: &mut Option<u32>| {
            *stack = stack
                .and_then(|index| stacks.get(index as usize).copied())
                .or(*stack);
        };
        self.threads
            .iter_mut()
            .for_each(|thread| replace(&mut thread.stack));
        let mut numbers: HashMap<Key, usize> = HashMap::new();
        let mut merged: Vec<Group> = Vec::new();
        for mut group in std::mem::take(&mut self.groups) {
            replace(&mut group.stack);
            match numbers.entry(Key::of(&group)) {
                Entry::Occupied(entry) => merged[*entry.get()].absorb(group),
                Entry::Vacant(entry) => {
                    entry.insert(merged.len());
                    merged.push(group);
                }
            }
        }
        merged.sort_by_key(|group| std::cmp::Reverse(group.count));
        self.groups = merged;
    }

    /// Whether all threads that were looked at are in [`threads`](Dump::threads), and not only the
    /// groups' examples.
    pub fn lists_all(&self) -> bool {
        self.threads.len() as u64 >= self.totals.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LockKind, Stack, Wait};

    fn locked(id: u64, address: u64, since: Option<u64>) -> Thread {
        let wait = Wait::Lock {
            address,
            what: LockKind::Futex,
            owner: None,
            waiters: None,
        };
        Thread {
            id,
            wait,
            state: State::Waiting,
            stack: Some(0),
            unmoved_since: since,
            ..Thread::default()
        }
    }

    fn groups(threads: &[Thread]) -> Vec<Group> {
        let mut grouper = Grouper::default();
        threads.iter().zip(0..).for_each(|(thread, index)| {
            grouper.add(thread, index);
        });
        grouper.finish()
    }

    #[test]
    fn the_object_is_said_only_if_all_have_it() {
        let same = groups(&[locked(1, 8, None), locked(2, 8, None)]);
        assert_eq!((same.len(), same[0].object), (1, Some(8)));
        let different = groups(&[locked(1, 8, None), locked(2, 16, None), locked(3, 8, None)]);
        assert_eq!((different.len(), different[0].object), (1, None));
    }

    #[test]
    fn the_oldest_is_the_oldest() {
        let group = groups(&[
            locked(1, 8, None),
            locked(2, 8, Some(9)),
            locked(3, 8, Some(7)),
        ]);
        assert_eq!(group[0].oldest, Some(7));
    }

    #[test]
    fn the_largest_comes_first_and_differences_make_groups() {
        let mut threads = vec![locked(1, 8, None), locked(2, 8, None), locked(3, 8, None)];
        threads[0].stack = Some(1);
        assert_eq!(
            groups(&threads)
                .iter()
                .map(|group| group.count)
                .collect::<Vec<_>>(),
            [2, 1]
        );
        threads[1].until = Some(1);
        assert_eq!(groups(&threads).len(), 3);
    }

    #[test]
    fn stacks_that_look_alike_make_one_group() {
        let mut dump = crate::samples::everything();
        let names = crate::samples::names(&dump);
        // The same as the first, as shown, and one that is shown with another end.
        dump.stacks[1] = Stack {
            runtime_frames: 0,
            exact_first: false,
            ..dump.stacks[0].clone()
        };
        dump.stacks.push(Stack {
            end: End::Lost,
            ..dump.stacks[0].clone()
        });
        dump.threads = vec![
            locked(1, 8, Some(9)),
            locked(2, 16, Some(7)),
            locked(3, 8, None),
            locked(4, 8, None),
        ];
        dump.threads[1].stack = Some(1);
        dump.threads[3].stack = Some(2);
        dump.regroup();
        assert_eq!(dump.groups.len(), 3);
        dump.merge_alike(&names);
        let shown: Vec<_> = dump
            .groups
            .iter()
            .map(|it| (it.stack, it.count, it.object, it.oldest))
            .collect();
        assert_eq!(
            shown,
            [(Some(0), 3, None, Some(7)), (Some(2), 1, Some(8), None)]
        );
        assert_eq!(dump.groups[0].examples, [0, 2, 1]);
        assert_eq!(dump.threads[1].stack, Some(0));
    }

    #[test]
    fn a_dump_is_counted_anew() {
        let mut dump = crate::samples::everything();
        assert!(dump.lists_all());
        dump.threads.truncate(4);
        assert!(!dump.lists_all());
        dump.regroup();
        assert_eq!((dump.totals.listed, dump.totals.unclaimed), (4, 1));
        assert_eq!(dump.totals.by_state, [1, 0, 0, 3, 0]);
        assert_eq!(dump.groups.iter().map(|group| group.count).sum::<u64>(), 4);
    }
}
