//! Which child is taken down next, and which one is brought up: the rules, without the actions.
//!
//! ```text
//!             bring up           ready
//!       down --------> starting --------> running
//!        ^               |  |                |
//!        |   a failure   |  +--- to stop, with the group that restarts
//!        +---------------+             |
//!        |                             | told to pause: all after it are down
//!        +--- it pauses ---------- stopping ---- too late ---> stuck --- it pauses ---> down
//! ```
//!
//! Children that belong together go down in reverse order, one after the other, and come up in
//! order, each when the child before is ready. Under one-for-one each child belongs to itself only,
//! but while the tree starts, pauses and ends all belong together.

use std::ops::Range;
use std::time::Instant;

/// Which children are restarted with a child that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    OneForOne,
    OneForAll,
    RestForOne,
}

impl Strategy {
    /// Returns the children that are restarted with this one.
    pub(super) fn affected(self, failed: usize, children: usize) -> Range<usize> {
        match self {
            Strategy::OneForOne => failed..failed + 1,
            Strategy::OneForAll => 0..children,
            Strategy::RestForOne => failed..children,
        }
    }
}

/// The stage of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has no state: it was not begun, is held, or has ended and is to be replaced.
    Down,
    /// Its recipe runs.
    Starting,
    Running,
    /// It is to be taken down, and was not told yet.
    ToStop,
    /// It was told to pause or to end.
    Stopping,
    /// It did not pause in time. It restarts when it pauses.
    Stuck,
    /// It has ended, and is not replaced.
    Ended,
    /// It did not end in time.
    Abandoned,
}

impl Stage {
    /// Returns true if there is nothing to do or to wait for.
    pub(super) fn is_settled(self) -> bool {
        matches!(
            self,
            Stage::Running | Stage::Stuck | Stage::Ended | Stage::Abandoned
        )
    }

    fn goes_down(self) -> bool {
        matches!(self, Stage::ToStop | Stage::Stopping)
    }
}

/// The stage of a child, and the time for which it waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) stage: Stage,
    /// A child that is down stays down until then.
    pub(super) due: Option<Instant>,
}

impl Status {
    pub(super) const NEW: Status = Status {
        stage: Stage::Down,
        due: None,
    };

    fn is_due(self, now: Instant) -> bool {
        self.stage == Stage::Down && self.due.is_none_or(|due| due <= now)
    }
}

/// Returns the next child to be told to pause or to end.
pub(super) fn next_down(statuses: &[Status], together: bool) -> Option<usize> {
    let to_stop = |status: &Status| status.stage == Stage::ToStop;
    if together {
        let last = statuses
            .iter()
            .rposition(|status| status.stage.goes_down())?;
        to_stop(&statuses[last]).then_some(last)
    } else {
        statuses.iter().rposition(to_stop)
    }
}

/// Returns the next child to be brought up.
pub(super) fn next_up(statuses: &[Status], together: bool, now: Instant) -> Option<usize> {
    if together {
        if statuses.iter().any(|status| status.stage.goes_down()) {
            return None;
        }
        let first = statuses
            .iter()
            .position(|status| !status.stage.is_settled())?;
        statuses[first].is_due(now).then_some(first)
    } else {
        statuses.iter().position(|status| status.is_due(now))
    }
}

/// Returns the earliest time after `now` at which a child may be brought up.
pub(super) fn next_due(statuses: &[Status], now: Instant) -> Option<Instant> {
    let down = statuses.iter().filter(|status| status.stage == Stage::Down);
    down.filter_map(|status| status.due)
        .filter(|due| *due > now)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn statuses(stages: &[Stage]) -> Vec<Status> {
        stages
            .iter()
            .map(|&stage| Status { stage, due: None })
            .collect()
    }

    #[test]
    fn a_group_goes_down_from_the_last_to_the_first_one_at_a_time() {
        let down = |at: &[Stage]| next_down(&statuses(at), true);
        assert_eq!(
            down(&[Stage::ToStop, Stage::ToStop, Stage::Running]),
            Some(1)
        );
        assert_eq!(down(&[Stage::ToStop, Stage::Stopping, Stage::Down]), None);
        assert_eq!(down(&[Stage::ToStop, Stage::Down, Stage::Down]), Some(0));
        assert_eq!(down(&[Stage::ToStop, Stage::Stuck, Stage::Ended]), Some(0));
    }

    #[test]
    fn a_group_comes_up_in_order_each_when_the_one_before_is_ready() {
        let up = |at: &[Stage]| next_up(&statuses(at), true, Instant::now());
        assert_eq!(up(&[Stage::Down, Stage::Down, Stage::Stopping]), None);
        assert_eq!(up(&[Stage::Running, Stage::Down, Stage::Down]), Some(1));
        assert_eq!(up(&[Stage::Running, Stage::Starting, Stage::Down]), None);
        assert_eq!(up(&[Stage::Stuck, Stage::Ended, Stage::Down]), Some(2));
        // A child that fails while one after it starts does not wait for that one, which may be
        // asking it.
        assert_eq!(up(&[Stage::Down, Stage::Starting, Stage::Down]), Some(0));
    }

    #[test]
    fn children_that_do_not_belong_together_do_not_wait_for_each_other() {
        let mixed = statuses(&[Stage::Starting, Stage::Stopping, Stage::Down]);
        assert_eq!(next_up(&mixed, false, Instant::now()), Some(2));
        let mixed = statuses(&[Stage::ToStop, Stage::Stopping]);
        assert_eq!(next_down(&mixed, false), Some(0));
    }

    #[test]
    fn a_child_that_is_down_waits_for_its_time() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut one = statuses(&[Stage::Down]);
        one[0].due = Some(later);
        assert_eq!(next_up(&one, true, now), None);
        assert_eq!(next_up(&one, false, now), None);
        assert_eq!(next_due(&one, now), Some(later));
        assert_eq!(next_up(&one, true, later), Some(0));
        assert_eq!(next_due(&one, later), None);
    }
}
