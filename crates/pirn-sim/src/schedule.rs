//! What a run has done, as a list of its switches, and what is left of the list if each switch that
//! a failure does not need is dropped.

use pirn_rt::sched::simulation::Point;

/// One thread was followed by another that was not simply the oldest runnable one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    pub kind: Option<Point>,
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
