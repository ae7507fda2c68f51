//! Growing spawn sites: the threads spawned at one place in the code only become more.
//!
//! Threads are counted in rounds, a part of the slots per look, so that the cost of a look does not
//! grow with the number of threads. A site is reported when its count has risen in each of
//! [`STREAK`] rounds, and by the limit in all.

use super::report::Report;
use super::{Context, Look};
use crate::findings::Kind;
use core::panic::Location;
use pirn_rt::stack::region;
use pirn_rt::vthread::table;
use std::collections::HashMap;

/// The slots per look: about 1 ms.
const PER_LOOK: usize = 20_000;
/// The least number of looks from one round to the next.
const LOOKS: u32 = 10;
/// The number of rounds in a row in which a count must rise: two minutes, or more.
const STREAK: u32 = 12;

type Site = &'static Location<'static>;

/// See the module's documentation.
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
}

impl Look for Growth {
    fn look(&mut self, context: &mut Context<'_>) {
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
            context
                .reporter
                .report(Report::new(Kind::GrowingSite, site, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
