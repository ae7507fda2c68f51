//! How a schedule is searched for: which thread goes on at a point, and which follows one that
//! waits.
//!
//! No strategy is the best for all programs, so each seed draws one ([`Strategy::drawn`]).
//! docs/simulation.md has the shares of seeds by which each finds four kinds of bugs.

use crate::random::Stream;
use crate::schedule::Switch;
use core::fmt;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A way to choose the next thread.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Strategy {
    /// Each runnable thread is equally likely at each point.
    #[default]
    RandomWalk,
    /// The running thread goes on, but for one point in this many.
    StickyWalk(u32),
    /// Each order of the points is equally likely, as far as the [`Census`] of an earlier run tells
    /// how many there are: a thread goes on with the share of points that it has left, and the
    /// threads that it has yet to make (Zhao et al., "Selectively Uniform Concurrency Testing",
    /// ASPLOS 2025, without the selection).
    UniformWalk(Census),
    /// Probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010): the thread with the
    /// highest priority runs, and priorities are drawn; at `changes` points out of the first
    /// `points`, the running thread's becomes the lowest.
    Pct {
        /// The number of points at which a priority changes.
        changes: u32,
        /// The number of points among which these are drawn.
        points: u64,
    },
    /// These switches, and where a thread waits, the oldest runnable one.
    Replay(Vec<Switch>),
}

/// The threads of a run, by number: who made each, and how many points it had.
pub type Census = Arc<[(u32, u64)]>;

impl Strategy {
    /// Draws a strategy for a program of which this is known.
    pub(crate) fn drawn(seed: u64, census: &Census) -> Strategy {
        match seed % 5 {
            0 => Strategy::RandomWalk,
            1 | 3 => Strategy::UniformWalk(Arc::clone(census)),
            2 => Strategy::sticky(seed),
            _ => Strategy::pct(seed, census.iter().map(|it| it.1).sum()),
        }
    }

    /// Draws a strategy for a whole program, most of whose points are calls, few and far between:
    /// a walk finds the most.
    pub(crate) fn of_program(seed: u64) -> Strategy {
        match seed % 5 {
            0..=2 => Strategy::RandomWalk,
            3 => Strategy::sticky(seed),
            _ => Strategy::pct(seed, 300),
        }
    }

    fn sticky(seed: u64) -> Strategy {
        Strategy::StickyWalk(2 << (seed / 5 % 4))
    }

    fn pct(seed: u64, points: u64) -> Strategy {
        Strategy::Pct {
            changes: 1 + (seed / 5 % 3) as u32,
            points,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::RandomWalk => f.write_str("random walk"),
            Strategy::StickyWalk(one_in) => write!(f, "sticky walk, 1 in {one_in}"),
            Strategy::UniformWalk(_) => f.write_str("uniform walk"),
            Strategy::Pct { changes, points } => write!(f, "PCT, {changes} in {points}"),
            Strategy::Replay(switches) => write!(f, "{} switches", switches.len()),
        }
    }
}

/// How many points the threads of a [`UniformWalk`](Strategy::UniformWalk) have left.
struct Left {
    census: Census,
    /// By number: its own points, and the points of all threads that it makes, and that these make,
    /// less what is counted for threads that have been made.
    points: Vec<u64>,
    made: usize,
}

impl Left {
    fn new(census: Census) -> Left {
        let mut points: Vec<u64> = census.iter().map(|it| it.1).collect();
        // Each thread has a higher number than its maker.
        for number in (1..census.len()).rev() {
            points[census[number].0 as usize] += points[number];
        }
        Left {
            census,
            points,
            made: 0,
        }
    }

    /// Notes that there is a thread with the next number.
    fn made(&mut self) {
        if let Some(&(maker, _)) = self.census.get(self.made).filter(|_| self.made > 0) {
            self.points[maker as usize] -= self.points[self.made];
        }
        self.made += 1;
    }

    /// Returns how many points a thread has left: at least one, as it runs.
    fn of(&self, thread: Candidate) -> u64 {
        let all = self.points.get(thread.number as usize).copied();
        all.unwrap_or(0).saturating_sub(thread.points).max(1)
    }

    /// Returns the place of a thread that is drawn by the points that are left; `None`: the
    /// running one.
    fn drawn(
        &self,
        running: Option<Candidate>,
        others: &[Candidate],
        stream: &mut Stream,
    ) -> Option<usize> {
        let own = running.map_or(0, |it| self.of(it));
        let all = others.iter().map(|it| self.of(*it)).sum::<u64>() + own;
        let mut drawn = stream.below(all);
        others.iter().position(|it| {
            let left = self.of(*it);
            let is_it = drawn < left;
            drawn = drawn.wrapping_sub(left);
            is_it
        })
    }
}

/// A thread to choose from, or the one that runs.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    /// Its number: threads are numbered in the order in which they are made.
    pub(crate) number: u32,
    /// How many points it has passed.
    pub(crate) points: u64,
}

/// A strategy in the middle of a run.
pub(crate) struct Chooser {
    strategy: Strategy,
    /// With PCT: the priority of each thread, by number.
    priorities: Vec<u64>,
    /// With PCT: the points at which priorities change.
    changes: Vec<u64>,
    /// With PCT: the priority of the thread that was lowered last.
    lowest: u64,
    /// With a uniform walk.
    left: Option<Left>,
    /// The running thread, and how many points it has passed since it was chosen.
    alone: (u32, u64),
}

/// After so many points in a row a thread is taken for one that spins, and gives way: else it would
/// run for ever with PCT, and with a list of switches that lacks the one that has ended it.
const MOST_ALONE: u64 = 1000;

/// Priorities that are drawn are above those that are lowered.
const DRAWN: u64 = 1 << 32;

impl Chooser {
    pub(crate) fn new(strategy: Strategy, stream: &mut Stream) -> Chooser {
        let changes = match strategy {
            Strategy::Pct { changes, points } => (0..changes)
                .map(|_| 1 + stream.below(points.max(1)))
                .collect(),
            _ => Vec::new(),
        };
        let left = match &strategy {
            Strategy::UniformWalk(census) => Some(Left::new(Arc::clone(census))),
            _ => None,
        };
        Chooser {
            alone: (0, 0),
            left,
            strategy,
            priorities: Vec::new(),
            changes,
            lowest: DRAWN,
        }
    }

    /// Notes that there is a thread with the next number.
    pub(crate) fn made(&mut self, stream: &mut Stream) {
        if let Strategy::Pct { .. } = self.strategy {
            self.priorities.push(DRAWN + stream.below(DRAWN));
        }
        if let Some(left) = &mut self.left {
            left.made();
        }
    }

    /// Notes that the thread with this number yields: others that wait for it, or spin, must get
    /// their turn.
    pub(crate) fn yielded(&mut self, number: u32) {
        if let Some(priority) = self.priorities.get_mut(number as usize) {
            self.lowest -= 1;
            *priority = self.lowest;
        }
    }

    /// Returns the place in `others` of the thread that follows the running one, which is at the
    /// point with this number of the run; `None`: it goes on.
    pub(crate) fn at_point(
        &mut self,
        running: Candidate,
        point: u64,
        others: &[Candidate],
        stream: &mut Stream,
    ) -> Option<usize> {
        let among = others.len() as u64;
        let spins = self.spins(running.number);
        if spins {
            self.yielded(running.number);
        }
        match &self.strategy {
            Strategy::Replay(switches) => match find(switches, running, false) {
                Some(switch) => others.iter().position(|other| other.number == switch.to),
                None if spins => after(running.number, others),
                None => None,
            },
            Strategy::StickyWalk(one_in) if stream.below(u64::from(*one_in)) != 0 => None,
            Strategy::RandomWalk | Strategy::StickyWalk(_) => match stream.below(among + 1) {
                last if last == among => None,
                place => Some(place as usize),
            },
            Strategy::UniformWalk(_) => self.left.as_ref()?.drawn(Some(running), others, stream),
            Strategy::Pct { .. } => {
                if self.changes.contains(&point) {
                    self.yielded(running.number);
                }
                let best = self.best(others)?;
                let priority = |thread: Candidate| self.priorities[thread.number as usize];
                (priority(others[best]) > priority(running)).then_some(best)
            }
        }
    }

    /// Returns the place of the thread that follows one that waits or has yielded. There is at
    /// least one.
    pub(crate) fn after_wait(
        &mut self,
        left: Candidate,
        others: &[Candidate],
        stream: &mut Stream,
    ) -> usize {
        match &self.strategy {
            Strategy::Replay(switches) => find(switches, left, true)
                .and_then(|switch| others.iter().position(|other| other.number == switch.to))
                .unwrap_or_else(|| oldest(others)),
            Strategy::RandomWalk | Strategy::StickyWalk(_) => {
                stream.below(others.len() as u64) as usize
            }
            Strategy::UniformWalk(_) => {
                let left = self.left.as_ref();
                left.and_then(|left| left.drawn(None, others, stream))
                    .unwrap_or(0)
            }
            Strategy::Pct { .. } => self.best(others).unwrap_or(0),
        }
    }

    /// Counts a point of the running thread. Returns whether it has passed many in a row.
    fn spins(&mut self, number: u32) -> bool {
        if self.alone.0 != number {
            self.alone = (number, 0);
        }
        self.alone.1 += 1;
        self.alone.1.is_multiple_of(MOST_ALONE)
    }

    /// Returns the place of the thread with the highest priority.
    fn best(&self, others: &[Candidate]) -> Option<usize> {
        let priority = |&place: &usize| self.priorities[others[place].number as usize];
        (0..others.len()).max_by_key(priority)
    }
}

/// Returns the place of the thread that was made first.
fn oldest(others: &[Candidate]) -> usize {
    (0..others.len())
        .min_by_key(|&place| others[place].number)
        .unwrap_or(0)
}

/// Returns the place of the thread that comes after this number, in turns.
fn after(number: u32, others: &[Candidate]) -> Option<usize> {
    let turn = |&place: &usize| others[place].number.wrapping_sub(number);
    (0..others.len()).min_by_key(turn)
}

fn find(switches: &[Switch], from: Candidate, waits: bool) -> Option<&Switch> {
    switches.iter().find(|switch| {
        switch.waits == waits && (switch.from, switch.at) == (from.number, from.points)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;

    #[test]
    fn a_thread_that_spins_gives_way_to_each_of_the_others() {
        let pct = Strategy::Pct {
            changes: 1,
            points: 10,
        };
        for strategy in [Strategy::Replay(Vec::new()), pct] {
            let stream = &mut Streams::new(1).schedule;
            let mut chooser = Chooser::new(strategy, stream);
            (0..4).for_each(|_| chooser.made(stream));
            let (mut running, mut ran) = (0, vec![0]);
            for point in 1..=20 * MOST_ALONE {
                let candidate = |number| Candidate { number, points: 1 };
                let others: Vec<_> = (0..4).filter(|it| *it != running).map(candidate).collect();
                if let Some(place) = chooser.at_point(candidate(running), point, &others, stream) {
                    running = others[place].number;
                    ran.push(running);
                }
            }
            ran.sort_unstable();
            ran.dedup();
            assert_eq!(ran, [0, 1, 2, 3]);
        }
    }
}
