//! Reporting: a diagnostic is counted, kept for dumps, and written, but not too often.

use crate::findings::{self, Kind};
use pirn_rt::{notices, sys};
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

/// Writes diagnostics, and remembers which.
pub(super) struct Reporter {
    said: Vec<Said>,
}

/// A site that was written.
struct Said {
    kind: Kind,
    site: u64,
    at: u64,
    /// How often it was found since, without being written.
    again: u32,
}

impl Reporter {
    pub(super) fn new() -> Reporter {
        Reporter { said: Vec::new() }
    }

    /// Counts a diagnostic, and writes it unless its site was written a moment ago.
    pub(super) fn report(&mut self, report: Report) {
        let Report { kind, site, .. } = report;
        let again = self.admit(kind, site, sys::now());
        findings::keep(kind, &report.text, &report.threads);
        let Some(again) = again else { return };
        if !notices::are_off() {
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

    /// Does the same, if there is anything to report.
    pub(super) fn report_any(&mut self, report: Option<Report>) {
        if let Some(report) = report {
            self.report(report);
        }
    }

    /// Returns, if a site may be written now, how often it was found since the last line about it.
    fn admit(&mut self, kind: Kind, site: u64, now: u64) -> Option<u32> {
        let same = |said: &&mut Said| said.kind == kind && said.site == site;
        if let Some(said) = self.said.iter_mut().find(same) {
            if now - said.at < PERIOD_NS {
                said.again += 1;
                return None;
            }
            said.at = now;
            return Some(core::mem::take(&mut said.again));
        }
        if self.said.len() == SITES {
            self.said.retain(|said| now - said.at < PERIOD_NS);
        }
        // More than 256 new sites per minute are too many to read.
        if self.said.len() == SITES {
            return None;
        }
        self.said.push(Said {
            kind,
            site,
            at: now,
            again: 0,
        });
        Some(0)
    }
}

#[cfg(test)]
mod tests;
