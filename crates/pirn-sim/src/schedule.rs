//! What a run has done, as a list of its switches, and what is left of the list if each switch that
//! a failure does not need is dropped.

use core::fmt;
use pirn_rt::sched::simulation::Point;
use serde::{Deserialize, Serialize};

/// One thread was followed by another that was not simply the oldest runnable one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Switch {
    /// The thread that was left: threads are numbered in the order in which they are made, from 0,
    /// the test itself.
    pub from: u32,
    /// How many points that thread had passed.
    pub at: u64,
    /// Whether it left because it waited, or ended; otherwise it was at a point.
    pub waits: bool,
    /// The thread that followed.
    pub to: u32,
    /// What kind of point it was at last; none: it has passed none.
    #[serde(with = "kind")]
    pub kind: Option<Point>,
}

/// Points by their names.
pub(crate) mod kind {
    use super::Point;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const ALL: [Point; 7] = [
        Point::Spawn,
        Point::Futex,
        Point::Lock,
        Point::Unlock,
        Point::Call,
        Point::Atomic,
        Point::Place,
    ];

    pub(crate) fn serialize<S: Serializer>(kind: &Option<Point>, to: S) -> Result<S::Ok, S::Error> {
        kind.map(|kind| format!("{kind:?}")).serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Point>, D::Error> {
        let name = Option::<String>::deserialize(from)?;
        Ok(name.and_then(|name| ALL.into_iter().find(|it| format!("{it:?}") == name)))
    }
}

/// As in `PIRN_SIM_SCHEDULE`: `0@13>1` if thread 1 follows thread 0 at its 13th point, and
/// `0@13w>1` if thread 0 waits after that point.
impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = if self.waits { "w" } else { "" };
        write!(f, "{}@{}{waits}>{}", self.from, self.at, self.to)
    }
}

/// Reads a schedule: switches with commas between. `None`: the text is no schedule.
pub(crate) fn parsed(text: &str) -> Option<Vec<Switch>> {
    let one = |text: &str| {
        let (from, rest) = text.trim().split_once('@')?;
        let (at, to) = rest.split_once('>')?;
        let (at, waits) = at.strip_suffix('w').map_or((at, false), |at| (at, true));
        Some(Switch {
            from: from.parse().ok()?,
            at: at.parse().ok()?,
            waits,
            to: to.parse().ok()?,
            kind: None,
        })
    };
    let switches = text.split(',').filter(|it| !it.trim().is_empty());
    switches.map(one).collect()
}

/// Drops switches of a failing schedule for as long as `fails` says that the rest still fails, by
/// halves, quarters and so on (Zeller's `ddmin` without its complements). `None`: the whole list
/// does not fail.
pub(crate) fn shrunk(
    switches: &[Switch],
    mut fails: impl FnMut(&[Switch]) -> bool,
) -> Option<Vec<Switch>> {
    let mut kept = switches.to_vec();
    if !fails(&kept) {
        return None;
    }
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let (mut start, mut dropped) = (0, false);
        while start < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(start..(start + size).min(kept.len()));
            match fails(&fewer) {
                true => (kept, dropped) = (fewer, true),
                false => start += size,
            }
        }
        size = match size {
            1 if dropped => 1,
            1 => 0,
            size => size.div_ceil(2),
        };
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(at: u64) -> Switch {
        Switch {
            from: 1,
            at,
            waits: false,
            to: 2,
            kind: None,
        }
    }

    #[test]
    fn a_schedule_is_read_as_it_is_written() {
        let waits = Switch {
            waits: true,
            ..switch(9)
        };
        assert_eq!(format!("{waits},{}", switch(7)), "1@9w>2,1@7>2");
        assert_eq!(parsed("1@9w>2, 1@7>2"), Some(vec![waits, switch(7)]));
        assert_eq!(parsed(""), Some(vec![]));
        assert_eq!(parsed("1@9"), None);
    }

    #[test]
    fn only_the_switches_that_a_failure_needs_are_left() {
        let all: Vec<_> = (0..88).map(switch).collect();
        let needed = [switch(13), switch(70)];
        let mut runs = 0;
        let left = shrunk(&all, |some| {
            runs += 1;
            needed.iter().all(|one| some.contains(one))
        });
        assert_eq!(left.unwrap(), needed);
        assert!(runs < 60, "{runs} runs");
        assert_eq!(shrunk(&all, |_| false), None);
        assert_eq!(shrunk(&all, |_| true).unwrap(), []);
    }
}
