//! Comparing two dumps of a program: which groups have grown.

use crate::model::{Dump, Group, Place, WaitKind};
use crate::names::Names;
use crate::text;
use crate::text::words::{Count, Duration, People, Time, counted};
use crate::view::{Shown, View};
use std::collections::HashMap;
use std::io::{self, Write};

/// What has changed between two dumps, of one process or of two runs of a program.
///
/// Groups are the same if they have the same functions and lines in their stacks, wait for the same
/// kind of thing, and were spawned at the same place. A leak of threads is a group that only grows.
///
/// # Examples
/// ```
/// use pirn_dump::{Diff, Dump, Group, Names};
/// let dump = |count| Dump { groups: vec![Group { count, ..Group::default() }], ..Dump::default() };
/// let (earlier, later) = (dump(10), dump(25));
/// let names = Names::plain(&earlier);
/// let diff = Diff::of(&earlier, &names, &later, &names);
/// assert_eq!((diff.grown()[0].before, diff.grown()[0].after), (10, 25));
/// ```
#[derive(Clone, Debug)]
pub struct Diff {
    grown: Vec<Change>,
    shrunk: Vec<Change>,
    unchanged: usize,
}

/// How a group has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// How many threads it had in the earlier dump.
    pub before: u64,
    /// How many threads it has in the later one.
    pub after: u64,
    /// The largest part of the group in the later dump: an index into [`Dump::groups`]. None if the
    /// group is not there any more.
    pub group: Option<u32>,
}

/// What makes groups of two dumps the same.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    frames: Vec<(String, Option<u32>)>,
    wait: WaitKind,
    place: Option<Place>,
}

impl Key {
    fn of(dump: &Dump, names: &Names, group: &Group) -> Key {
        let stack = group
            .stack
            .and_then(|index| dump.stacks.get(index as usize));
        let frames = stack.map_or_else(Vec::new, |stack| names.shown(stack));
        let place = group
            .place
            .and_then(|index| dump.places.get(index as usize));
        Key {
            frames: frames
                .iter()
                .map(|frame| (frame.name(), frame.line))
                .collect(),
            wait: group.wait,
            place: place.cloned(),
        }
    }
}

impl Diff {
    /// Compares two dumps.
    pub fn of(earlier: &Dump, earlier_names: &Names, later: &Dump, later_names: &Names) -> Diff {
        let mut changes: HashMap<Key, Change> = HashMap::new();
        let nothing = || Change {
            before: 0,
            after: 0,
            group: None,
        };
        // The largest comes first, and represents those that differ in their state only.
        for (group, index) in later.groups.iter().zip(0..) {
            let change = changes
                .entry(Key::of(later, later_names, group))
                .or_insert_with(nothing);
            change.after = change.after.saturating_add(group.count);
            change.group.get_or_insert(index);
        }
        for group in &earlier.groups {
            let change = changes
                .entry(Key::of(earlier, earlier_names, group))
                .or_insert_with(nothing);
            change.before = change.before.saturating_add(group.count);
        }
        let unchanged = changes
            .values()
            .filter(|change| change.before == change.after)
            .count();
        let mut changes: Vec<Change> = changes.into_values().collect();
        // By size, and among equals in the order of the later dump.
        changes.sort_by_key(|it| (std::cmp::Reverse(it.after.abs_diff(it.before)), it.group));
        changes.retain(|change| change.before != change.after);
        let (grown, shrunk) = changes
            .into_iter()
            .partition(|change| change.after > change.before);
        Diff {
            grown,
            shrunk,
            unchanged,
        }
    }

    /// Returns the groups that have grown, by how much, most first.
    pub fn grown(&self) -> &[Change] {
        &self.grown
    }

    /// Returns the groups that have become smaller or are gone, by how much, most first.
    pub fn shrunk(&self) -> &[Change] {
        &self.shrunk
    }

    /// Writes it as text: the groups that have grown with their stacks, and how many others there
    /// are. `later` and `names` are what it was made of.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(
        &self,
        earlier: &Dump,
        later: &Dump,
        names: &Names,
        view: &View,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        write_head(earlier, later, out)?;
        let shown = Shown {
            dump: later,
            names,
            view,
        };
        let people = People::of(later);
        let max = view.max.unwrap_or(usize::MAX);
        for change in self.grown.iter().take(max) {
            let growth = Count(change.after - change.before);
            writeln!(
                out,
                "\n+{growth}, from {} to {}:",
                Count(change.before),
                Count(change.after)
            )?;
            if let Some(group) = change
                .group
                .and_then(|index| later.groups.get(index as usize))
            {
                text::write_group(&shown, group, &people, out)?;
            }
        }
        let rest = self.grown.len().saturating_sub(max) as u64;
        if rest > 0 {
            writeln!(out, "\n{} more that grew", counted(rest, "group"))?;
        }
        let lost = self
            .shrunk
            .iter()
            .fold(0_u64, |sum, it| sum.saturating_add(it.before - it.after));
        let (shrunk, same) = (self.shrunk.len() as u64, self.unchanged as u64);
        writeln!(
            out,
            "\n{} grew, {} shrank by {}, {} stayed as large",
            counted(self.grown.len() as u64, "group"),
            Count(shrunk),
            counted(lost, "thread"),
            Count(same)
        )
    }
}

/// Writes when the dumps were made, and the numbers of threads.
fn write_head(earlier: &Dump, later: &Dump, out: &mut dyn Write) -> io::Result<()> {
    let between = later.process.end.saturating_sub(earlier.process.end);
    writeln!(
        out,
        "from {} to {}, {}: {} before, {} after; {} started, {} ended",
        Time(earlier.process.end),
        Time(later.process.end),
        Duration(between),
        counted(earlier.totals.listed, "thread"),
        Count(later.totals.listed),
        Count(later.totals.started.saturating_sub(earlier.totals.started)),
        Count(later.totals.ended.saturating_sub(earlier.totals.ended)),
    )?;
    if (earlier.process.pid, earlier.process.started) != (later.process.pid, later.process.started)
    {
        writeln!(out, "these are different processes")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{everything, names};

    /// The sample, with other numbers of threads in its groups, and loaded at another address.
    fn with_counts(counts: &[u64], moved: u64) -> Dump {
        let mut dump = everything();
        dump.groups.truncate(counts.len());
        for (group, count) in dump.groups.iter_mut().zip(counts) {
            group.count = *count;
        }
        for module in &mut dump.modules {
            (module.start, module.end) = (module.start + moved, module.end + moved);
            module.bias += moved;
        }
        for stack in &mut dump.stacks {
            stack
                .frames
                .iter_mut()
                .filter(|it| **it > 0x1000)
                .for_each(|it| *it += moved);
        }
        dump
    }

    fn diff(earlier: &Dump, later: &Dump) -> (Diff, String) {
        let (earlier_names, names) = (names(earlier), names(later));
        let diff = Diff::of(earlier, &earlier_names, later, &names);
        let mut text = Vec::new();
        diff.write(earlier, later, &names, &View::default(), &mut text)
            .unwrap();
        (diff, String::from_utf8(text).unwrap())
    }

    #[test]
    fn what_grew_is_shown_most_first() {
        let (diff, text) = diff(
            &with_counts(&[5, 5, 5, 9], 0),
            &with_counts(&[6, 5, 1005, 2, 3], 0),
        );
        let grown: Vec<_> = diff
            .grown()
            .iter()
            .map(|it| (it.before, it.after, it.group))
            .collect();
        assert_eq!(
            grown,
            [(5, 1005, Some(2)), (0, 3, Some(4)), (5, 6, Some(0))]
        );
        assert_eq!(diff.shrunk().len(), 1);
        assert!(
            text.contains("\n+1,000, from 5 to 1,005:\n1,005 threads waiting for a futex"),
            "{text}"
        );
        assert!(
            text.ends_with("\n3 groups grew, 1 shrank by 7 threads, 1 stayed as large\n"),
            "{text}"
        );
    }

    #[test]
    fn another_run_of_the_program_is_compared_by_names() {
        let (mut earlier, later) = (with_counts(&[5, 5], 0), with_counts(&[5, 8], 0x50_0000));
        earlier.process.pid += 1;
        let (diff, text) = diff(&earlier, &later);
        assert_eq!((diff.grown().len(), diff.shrunk().len()), (1, 0), "{text}");
        assert!(text.contains("these are different processes"));
    }

    #[test]
    fn the_same_dump_has_not_changed() {
        let (diff, text) = diff(&everything(), &everything());
        assert!(diff.grown().is_empty() && diff.shrunk().is_empty());
        assert!(
            text.ends_with("0 groups grew, 0 shrank by 0 threads, 14 stayed as large\n"),
            "{text}"
        );
    }
}
