//! How groups have grown: the window of the last seconds.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use pirn_dump::Dump;

/// Growth is seen over so long, or from one dump to the next if those are rarer.
const WINDOW: Duration = Duration::from_secs(10);

/// How large groups were.
#[derive(Debug, Default)]
pub struct Growth {
    /// Oldest first. The first is the newest of those that are older than the window.
    counts: VecDeque<(Instant, HashMap<u64, u64>)>,
}

impl Growth {
    /// Adds a dump, and returns how much each of its groups has grown since the begin of the
    /// window, and how long that is; `None`: there was no dump before.
    pub fn add(
        &mut self,
        dump: &Dump,
        keys: &[u64],
        taken: Instant,
    ) -> Option<(Vec<i64>, Duration)> {
        let mut counts = HashMap::new();
        for (key, group) in keys.iter().zip(&dump.groups) {
            *counts.entry(*key).or_insert(0) += group.count;
        }
        let is_old = |it: &(Instant, _)| taken.saturating_duration_since(it.0) >= WINDOW;
        while self.counts.get(1).is_some_and(is_old) {
            self.counts.pop_front();
        }
        let earlier = self.counts.front().filter(|(begin, _)| *begin < taken);
        let growth = earlier.map(|(begin, before)| {
            let change = |key: &u64| {
                let before = before.get(key).copied().unwrap_or(0);
                counts.get(key).copied().unwrap_or(0) as i64 - before as i64
            };
            (
                keys.iter().map(change).collect(),
                taken.saturating_duration_since(*begin),
            )
        });
        // A page that is turned back to shows a dump that may be older than the last one.
        if self.counts.back().is_none_or(|(last, _)| *last < taken) {
            self.counts.push_back((taken, counts));
        }
        growth
    }

    /// Forgets all: other threads are counted from now on.
    pub fn clear(&mut self) {
        self.counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pirn_dump::Group;

    #[test]
    fn growth_is_that_of_the_window() {
        let begin = Instant::now();
        let mut growth = Growth::default();
        let mut add = |seconds, groups: &[(u64, u64)]| {
            let group = |&(_, count): &(u64, u64)| Group {
                count,
                ..Group::default()
            };
            let dump = Dump {
                groups: groups.iter().map(group).collect(),
                ..Dump::default()
            };
            let keys: Vec<u64> = groups.iter().map(|(key, _)| *key).collect();
            let added = growth.add(&dump, &keys, begin + Duration::from_secs(seconds));
            added.map(|(change, window)| (change, window.as_secs()))
        };
        assert_eq!(add(0, &[(1, 100), (2, 5)]), None);
        assert_eq!(add(4, &[(1, 110), (2, 5)]), Some((vec![10, 0], 4)));
        assert_eq!(
            add(8, &[(1, 120), (3, 7)]),
            Some((vec![20, 7], 8)),
            "3 is new"
        );
        assert_eq!(add(12, &[(1, 120), (2, 4)]), Some((vec![20, -1], 12)));
        assert_eq!(
            add(14, &[(1, 120)]),
            Some((vec![10], 10)),
            "the first is forgotten"
        );
        assert_eq!(
            add(13, &[(1, 100)]),
            Some((vec![-10], 9)),
            "a dump of before"
        );
        assert_eq!(add(60, &[(1, 0)]), Some((vec![-120], 46)), "dumps are rare");
    }
}
