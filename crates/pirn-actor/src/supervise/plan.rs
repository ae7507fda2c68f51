//! Which child is taken down next, and which one is brought up: the rules, without the doing.
//!
//! ```text
//!              rise            ready
//!       down --------> rising --------> up
//!        ^               |  |           |
//!        |   a failure   |  +---- a group that restarts: doomed
//!        +---------------+              |
//!        |                              | told to pause: all after it are down
//!        +--- it pauses ------------ falling ---- too late ---> stuck --- it pauses ---> down
//! ```
//!
//! Children that belong together go down in reverse order, one after the other, and come up in
//! order, each when the one before is ready. Under one-for-one each belongs to itself, but while
//! the tree starts and ends all belong together.

use std::ops::Range;
use std::time::Instant;

/// Who is restarted with a child that fails.
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

/// Where a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// It has no state: it was not begun, is held, or has ended and is begun anew.
    Down,
    /// Its recipe is at work.
    Rising,
    Up,
    /// It is to be taken down, and does not know yet.
    Doomed,
    /// It has been told to pause, or to end.
    Falling,
    /// It did not hear in time that it is to pause. When it does, it begins anew.
    Stuck,
    /// It has ended, and is not begun anew.
    Over,
    /// It did not hear in time that it is to end.
    Lost,
}

impl At {
    /// Nothing has to happen to it.
    pub(super) fn is_settled(self) -> bool {
        matches!(self, At::Up | At::Stuck | At::Over | At::Lost)
    }

    fn goes_down(self) -> bool {
        matches!(self, At::Doomed | At::Falling)
    }
}

/// Where a child is, and what it waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) at: At,
    /// A child that is down stays there until then.
    pub(super) due: Option<Instant>,
}

impl Place {
    pub(super) const NEW: Place = Place {
        at: At::Down,
        due: None,
    };

    fn is_due(self, now: Instant) -> bool {
        self.at == At::Down && self.due.is_none_or(|due| due <= now)
    }
}

/// Returns the child that is to be told to pause or to end.
pub(super) fn next_down(places: &[Place], together: bool) -> Option<usize> {
    let doomed = |place: &Place| place.at == At::Doomed;
    if together {
        let last = places.iter().rposition(|place| place.at.goes_down())?;
        doomed(&places[last]).then_some(last)
    } else {
        places.iter().rposition(doomed)
    }
}

/// Returns the child that is to be brought up.
pub(super) fn next_up(places: &[Place], together: bool, now: Instant) -> Option<usize> {
    if together {
        if places.iter().any(|place| place.at.goes_down()) {
            return None;
        }
        let first = places.iter().position(|place| !place.at.is_settled())?;
        places[first].is_due(now).then_some(first)
    } else {
        places.iter().position(|place| place.is_due(now))
    }
}

/// Returns the earliest time after `now` at which a child may be brought up.
pub(super) fn next_due(places: &[Place], now: Instant) -> Option<Instant> {
    let down = places.iter().filter(|place| place.at == At::Down);
    down.filter_map(|place| place.due)
        .filter(|due| *due > now)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn places(at: &[At]) -> Vec<Place> {
        at.iter().map(|&at| Place { at, due: None }).collect()
    }

    #[test]
    fn a_group_goes_down_from_the_last_to_the_first_one_at_a_time() {
        let down = |at: &[At]| next_down(&places(at), true);
        assert_eq!(down(&[At::Doomed, At::Doomed, At::Up]), Some(1));
        assert_eq!(down(&[At::Doomed, At::Falling, At::Down]), None);
        assert_eq!(down(&[At::Doomed, At::Down, At::Down]), Some(0));
        assert_eq!(down(&[At::Doomed, At::Stuck, At::Over]), Some(0));
    }

    #[test]
    fn a_group_comes_up_in_order_each_when_the_one_before_is_ready() {
        let up = |at: &[At]| next_up(&places(at), true, Instant::now());
        assert_eq!(up(&[At::Down, At::Down, At::Falling]), None);
        assert_eq!(up(&[At::Up, At::Down, At::Down]), Some(1));
        assert_eq!(up(&[At::Up, At::Rising, At::Down]), None);
        assert_eq!(up(&[At::Stuck, At::Over, At::Down]), Some(2));
        // One that fails while one after it comes up does not wait for that: it may be asked by it.
        assert_eq!(up(&[At::Down, At::Rising, At::Down]), Some(0));
    }

    #[test]
    fn children_that_do_not_belong_together_do_not_wait_for_each_other() {
        let mixed = places(&[At::Rising, At::Falling, At::Down]);
        assert_eq!(next_up(&mixed, false, Instant::now()), Some(2));
        let mixed = places(&[At::Doomed, At::Falling]);
        assert_eq!(next_down(&mixed, false), Some(0));
    }

    #[test]
    fn a_child_that_is_down_waits_for_its_time() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut one = places(&[At::Down]);
        one[0].due = Some(later);
        assert_eq!(next_up(&one, true, now), None);
        assert_eq!(next_up(&one, false, now), None);
        assert_eq!(next_due(&one, now), Some(later));
        assert_eq!(next_up(&one, true, later), Some(0));
        assert_eq!(next_due(&one, later), None);
    }
}
