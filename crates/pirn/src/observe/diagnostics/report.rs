//! Reporting: a diagnostic is counted, kept for dumps, and written, but not too often.

use super::settings::Kind;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pirn_rt::lock::Lock;
use pirn_rt::{notices, sys};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The time after which a site is written again.
const PERIOD_NS: u64 = 60_000_000_000;
/// The number of sites that are remembered at most.
const SITES: usize = 256;
/// The number of diagnostics that are kept for dumps.
const KEPT: usize = 32;

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

/// A diagnostic that was found a while ago.
#[allow(dead_code)] // without dumps
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    /// The ids of the threads that it is about.
    pub(crate) threads: Vec<u64>,
    /// The time of `CLOCK_REALTIME`, in nanoseconds.
    pub(crate) at: u64,
}

static TOTALS: [AtomicU64; Kind::ALL.len()] = [const { AtomicU64::new(0) }; Kind::ALL.len()];

/// The last diagnostics, in a ring: how many were ever kept, and the ring.
static KEEP: Lock<(usize, [Option<Arc<Recent>>; KEPT])> = Lock::new((0, [const { None }; KEPT]));

/// Forgets what was found in the parent process.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub(super) unsafe fn after_fork() {
    for total in &TOTALS {
        total.store(0, Relaxed); // Relaxed: statistics only.
    }
    // SAFETY: the caller's contract.
    unsafe { KEEP.renew((0, [const { None }; KEPT])) };
}

/// Returns how often each diagnostic has been found, by name.
pub(crate) fn totals() -> impl Iterator<Item = (&'static str, u64)> {
    let counts = TOTALS.iter().map(|count| count.load(Relaxed)); // Relaxed: statistics only.
    Kind::ALL.into_iter().map(Kind::name).zip(counts)
}

/// Returns the last diagnostics that were found, the oldest first.
#[allow(dead_code)] // without dumps
pub(crate) fn recent() -> Vec<Arc<Recent>> {
    let copy = {
        let kept = KEEP.lock(); // Nothing is allocated under it.
        let mut copy = [const { None }; KEPT];
        for (number, place) in copy.iter_mut().enumerate() {
            place.clone_from(&kept.1[(kept.0 + number) % KEPT]);
        }
        copy
    };
    copy.into_iter().flatten().collect()
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
        TOTALS[kind as usize].fetch_add(1, Relaxed); // Relaxed: statistics only.
        let again = self.admit(kind, site, sys::now());
        keep(&report);
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

/// Keeps a diagnostic for dumps.
fn keep(report: &Report) {
    let recent = Arc::new(Recent {
        kind: report.kind.name(),
        text: report.text.clone(),
        threads: report.threads.clone(),
        at: sys::clock(libc::CLOCK_REALTIME),
    });
    let old = {
        let mut kept = KEEP.lock();
        let place = kept.0 % KEPT;
        kept.0 += 1;
        kept.1[place].replace(recent)
    };
    drop(old); // Frees memory: not under the lock.
}

#[cfg(test)]
mod tests;
