//! What the reporter counts, look by look: calls that wait for the pool, and threads per place of
//! spawning.

use super::carriers::{name, place};
use super::report::{Report, Reporter};
use crate::findings::Kind;
use core::panic::Location;
use pirn_rt::reactor::jobs::Load;
use pirn_rt::sched::runtime::Runtime;
use pirn_rt::stack::region;
use pirn_rt::vthread::table;
use std::collections::HashMap;
use std::fmt::Write;

/// A full pool: calls wait for one of its threads, and there can be no more.
///
/// The pool takes calls in the order in which they came. So if it has taken fewer calls since a
/// look than waited at the look, one of the waiting calls has waited ever since.
pub(super) struct Pool {
    limit: u64,
    /// The number of calls that had been taken, and the number that waited, when the reporter first
    /// saw the wait that it watches.
    mark: Option<(u32, usize)>,
    /// For how long that wait has lasted.
    waited: u64,
    /// Whether that wait has been reported.
    reported: bool,
}

impl Pool {
    pub(super) fn new(limit: u64) -> Pool {
        Pool {
            limit,
            mark: None,
            waited: 0,
            reported: false,
        }
    }

    /// Takes note of a look, `step` ns after the last. Returns whether to report it.
    fn note(&mut self, load: &Load, step: u64) -> bool {
        if load.busy < load.limit || load.waiting == 0 {
            (self.mark, self.waited, self.reported) = (None, 0, false);
            return false;
        }
        match self.mark {
            Some((taken, waiting)) if (load.taken.wrapping_sub(taken) as usize) < waiting => {
                self.waited += step;
            }
            _ => {
                self.mark = Some((load.taken, load.waiting));
                (self.waited, self.reported) = (0, false);
            }
        }
        let late = self.waited >= self.limit && !self.reported;
        self.reported |= late;
        late
    }

    pub(super) fn look(&mut self, runtime: &Runtime, step: u64, reporter: &mut Reporter) {
        let load = runtime.pool.load();
        if self.note(&load, step) {
            let text = text(&load, self.waited);
            reporter.report(Report::new(Kind::PoolFull, (), text));
        }
    }
}

fn text(load: &Load, waited: u64) -> String {
    let ids = &load.some[..load.busy.min(load.some.len())];
    let mut calls: Vec<String> = ids
        .iter()
        .filter_map(|&id| place(id))
        .map(|place| name(place.call))
        .collect();
    calls.sort_unstable();
    let mut text = format!(
        "a call has waited for a thread of the pool for {:.1} s: all {} threads make calls",
        waited as f64 / 1e9,
        load.limit,
    );
    let most = calls.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    if let Some(same) = most {
        // Writing to a string does not fail.
        let _ = write!(text, ", {} of {} in {}", same.len(), ids.len(), same[0]);
    }
    let _ = write!(
        text,
        ", and {} calls wait; raise PIRN_MAX_BLOCKING_THREADS={}, or find out why these calls take \
         so long",
        load.waiting, load.limit
    );
    text
}

/// The slots per look: about 1 ms.
const PER_LOOK: usize = 20_000;
/// The least number of looks from one round to the next.
const LOOKS: u32 = 10;
/// The number of rounds in a row in which a count must rise: two minutes, or more.
const STREAK: u32 = 12;

type Site = &'static Location<'static>;

/// The threads spawned at one place in the code only become more.
///
/// Threads are counted in rounds, a part of the slots per look, so that the cost of a look does not
/// grow with the number of threads. A site is reported when its count has risen in each of
/// [`STREAK`] rounds, and by the limit in all.
pub(super) struct Growth {
    limit: usize,
    /// Where this round goes on; `None`: it has come to the end.
    next: Option<u32>,
    /// The looks of this round.
    looks: u32,
    counts: HashMap<Site, usize>,
    /// What the rounds before have found.
    known: HashMap<Site, Rise>,
}

/// The threads of one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rise {
    /// Their number when they began to rise, and now.
    from: usize,
    to: usize,
    /// The number of rounds in which they have risen.
    rounds: u32,
}

impl Growth {
    pub(super) fn new(limit: u64) -> Growth {
        Growth {
            limit: limit as usize,
            next: Some(0),
            looks: 0,
            counts: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// Goes on with this round.
    fn count(&mut self) {
        for _ in 0..PER_LOOK {
            let Some(slot) = self.next.and_then(region::next_open) else {
                self.next = None;
                return;
            };
            self.next = Some(slot.0 + 1);
            // A thread of the program's own schedulers counts as well.
            if let Some(site) = table::look(slot, |core| core.place()) {
                *self.counts.entry(site).or_default() += 1;
            }
        }
    }

    /// Ends the round. Returns the sites that are to be reported.
    fn end_round(&mut self) -> Vec<(Site, Rise)> {
        (self.next, self.looks) = (Some(0), 0);
        let mut report = Vec::new();
        let mut rises = HashMap::with_capacity(self.counts.len());
        for (site, to) in self.counts.drain() {
            let fresh = Rise {
                from: to,
                to,
                rounds: 0,
            };
            let mut rise = match self.known.get(site) {
                Some(&before) if to > before.to => Rise {
                    to,
                    rounds: before.rounds + 1,
                    ..before
                },
                _ => fresh,
            };
            if rise.rounds >= STREAK && rise.to - rise.from >= self.limit {
                report.push((site, rise));
                rise = fresh; // Reported again if it goes on.
            }
            rises.insert(site, rise);
        }
        self.known = rises;
        report
    }

    pub(super) fn look(&mut self, reporter: &mut Reporter) {
        self.looks += 1;
        self.count();
        if self.next.is_some() || self.looks < LOOKS {
            return;
        }
        for (site, rise) in self.end_round() {
            let text = format!(
                "the virtual threads spawned at {site} have only become more: from {} to {}, in {} \
                 looks in a row. If they never end, they are a leak: `pirn dump --diff` shows what \
                 they wait for; join them, or fork them in a scope (the limit: \
                 PIRN_DIAGNOSTICS=growing-site={})",
                rise.from, rise.to, rise.rounds, self.limit
            );
            reporter.report(Report::new(Kind::GrowingSite, site, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(busy: usize, waiting: usize, taken: u32) -> Load {
        Load {
            waiting,
            busy,
            some: [0; _],
            limit: 2,
            taken,
        }
    }

    #[test]
    fn only_a_call_that_has_waited_all_the_time_counts() {
        let mut pool = Pool::new(10);
        assert!(!pool.note(&load(1, 5, 0), 10), "threads are on their way");
        assert!(!pool.note(&load(2, 5, 3), 10));
        assert!(!pool.note(&load(2, 5, 8), 10), "those five have been taken");
        assert!(pool.note(&load(2, 9, 12), 10), "the fifth has not");
        assert!(!pool.note(&load(2, 9, 12), 10), "that is known");
        assert!(!pool.note(&load(2, 9, 13), 10));
        assert!(pool.note(&load(2, 9, 14), 10), "another one");
        assert!(!pool.note(&load(2, 0, 30), 10));
    }

    #[track_caller]
    fn round(growth: &mut Growth, site: Site, count: usize) -> Vec<(Site, Rise)> {
        growth.counts.insert(site, count);
        growth.end_round()
    }

    #[test]
    fn a_site_that_rises_all_the_time_and_by_the_limit_is_reported_once() {
        let here = Location::caller();
        let mut growth = Growth::new(STREAK as u64);
        for count in 0..STREAK as usize {
            assert_eq!(round(&mut growth, here, count), []);
        }
        let rise = Rise {
            from: 0,
            to: STREAK as usize,
            rounds: STREAK,
        };
        assert_eq!(round(&mut growth, here, STREAK as usize), [(here, rise)]);
        assert_eq!(round(&mut growth, here, 100), []);
    }

    #[test]
    fn one_that_falls_or_stands_still_begins_anew() {
        let here = Location::caller();
        let mut growth = Growth::new(1);
        for count in (0..10 * STREAK as usize).map(|i| i / 2) {
            assert_eq!(round(&mut growth, here, count), []);
        }
        let mut small = Growth::new(1000);
        for count in 0..100 {
            assert_eq!(round(&mut small, here, count), [], "below the limit");
        }
    }
}
