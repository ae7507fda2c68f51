//! The lint for crowded locks: many virtual threads wait for one address.

use super::report::Report;
use super::{Context, Look, kernel};
use crate::config::lints::Lint;
use pirn_rt::blocking::parking_lot;

/// See the module's documentation.
pub(super) struct Crowds {
    many: usize,
    /// The addresses of the crowds of the last look: each is counted once.
    known: Vec<usize>,
}

impl Crowds {
    pub(super) fn new(many: u64) -> Crowds {
        Crowds {
            many: many as usize,
            known: Vec::new(),
        }
    }
}

impl Look for Crowds {
    fn look(&mut self, context: &mut Context<'_>) {
        let mut found = Vec::new();
        parking_lot::crowded(self.many, |address, waiting| found.push((address, waiting)));
        for &(address, waiting) in &found {
            if !self.known.contains(&address) {
                let text = text(address, waiting, self.many);
                let report = Report::new(Lint::CrowdedLock, address, text);
                context.reporter.report(report);
            }
        }
        self.known = found.into_iter().map(|(address, _)| address).collect();
    }
}

fn text(address: usize, waiting: usize, many: usize) -> String {
    let place = kernel::origin(address);
    let place = match place == format!("{address:#x}") {
        true => place,
        false => format!("{address:#x} ({place})"),
    };
    format!(
        "about {waiting} virtual threads wait for one address, {place}: a lock, a condition \
         variable or a channel. Each wake serves one of them; if it is a lock, split it or hold it \
         for less time. `pirn dump` shows who waits there (the limit: PIRN_LINTS=crowded-lock={many})"
    )
}
