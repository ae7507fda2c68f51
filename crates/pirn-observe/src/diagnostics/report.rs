//! Reporting: a diagnostic is counted, kept for dumps, and written, but not too often.

use crate::findings::{self, Kind};
use pirn_rt::{environment, sys};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// The time after which a site is written again.
const PERIOD_NS: u64 = 60_000_000_000;
/// The number of sites that are remembered at most.
const SITES: usize = 256;

/// A diagnostic that was found.
pub(super) struct Report {
    pub(super) kind: Kind,
    /// Identifies where or on what it was found: it is written once per site and
    /// [period](PERIOD_NS).
    pub(super) site: u64,
    /// What happened, on what, and what to do.
    pub(super) text: String,
    /// The ids of the threads that it is about.
    pub(super) threads: Vec<u64>,
}

impl Report {
    pub(super) fn new(kind: Kind, site: impl Hash, text: String) -> Report {
        let mut hasher = DefaultHasher::new();
        site.hash(&mut hasher);
        Report {
            kind,
            site: hasher.finish(),
            text,
            threads: Vec::new(),
        }
    }
}

/// Writes diagnostics, and remembers which sites were written: when, and how often each was found
/// since, without being written.
#[derive(Default)]
pub(super) struct Reporter {
    written: HashMap<(Kind, u64), (u64, u32)>,
}

impl Reporter {
    /// Counts a diagnostic, and writes it unless its site was written a moment ago.
    pub(super) fn report(&mut self, report: Report) {
        let Report { kind, site, .. } = report;
        let again = self.admit(kind, site, sys::now());
        findings::keep(kind, &report.text, &report.threads);
        let Some(again) = again else { return };
        if !environment::notices_are_off() {
            let again = match again {
                0 => String::new(),
                times => format!(" ({times} more since the last such line)"),
            };
            let (head, rest) = report.text.split_once('\n').unwrap_or((&report.text, ""));
            let line = format!("pirn: {}: {head}{again}\n{rest}", kind.name());
            // One write, so that other threads' lines do not come between.
            sys::complain(&[&line]);
        }
    }

    /// Returns, if a site may be written now, how often it was found since the last line about it.
    fn admit(&mut self, kind: Kind, site: u64, now: u64) -> Option<u32> {
        if let Some((at, again)) = self.written.get_mut(&(kind, site)) {
            if now - *at < PERIOD_NS {
                *again += 1;
                return None;
            }
            *at = now;
            return Some(core::mem::take(again));
        }
        if self.written.len() == SITES {
            self.written.retain(|_, (at, _)| now - *at < PERIOD_NS);
        }
        // More than 256 new sites per minute are too many to read.
        let is_admitted = self.written.len() < SITES;
        is_admitted.then(|| {
            self.written.insert((kind, site), (now, 0));
            0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_written_once_per_period_and_says_how_often_it_was_not() {
        let mut reporter = Reporter::default();
        let kind = Kind::PoolFull;
        assert_eq!(reporter.admit(kind, 1, 0), Some(0));
        assert_eq!(reporter.admit(kind, 1, 5), None);
        assert_eq!(reporter.admit(kind, 1, PERIOD_NS - 1), None);
        assert_eq!(reporter.admit(kind, 2, 5), Some(0), "another site");
        assert_eq!(
            reporter.admit(Kind::StuckCarrier, 1, 5),
            Some(0),
            "another kind"
        );
        assert_eq!(reporter.admit(kind, 1, PERIOD_NS), Some(2));
        assert_eq!(reporter.admit(kind, 1, PERIOD_NS + 1), None);
    }

    #[test]
    fn memory_of_sites_is_bounded() {
        let mut reporter = Reporter::default();
        let sites = 10 * SITES as u64;
        let written = (0..sites).filter(|&site| reporter.admit(Kind::PoolFull, site, 9).is_some());
        assert_eq!(written.count(), SITES);
        assert_eq!(reporter.written.len(), SITES);
        let later = 9 + PERIOD_NS;
        assert_eq!(reporter.admit(Kind::PoolFull, sites, later), Some(0));
        assert_eq!(reporter.written.len(), 1);
    }
}
