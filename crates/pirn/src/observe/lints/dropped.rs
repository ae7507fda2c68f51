//! The lint for dropped events: recordings have lost some, because they were overwritten before
//! they were read.

use super::report::Report;
use super::{Context, Look};
use crate::config::lints::Lint;
use crate::observe::events;

/// See the module's documentation.
pub(super) struct Dropped {
    least: u64,
    /// How many had been lost when that was last reported.
    known: u64,
}

impl Dropped {
    pub(super) fn new(least: u64) -> Dropped {
        Dropped { least, known: 0 }
    }

    /// Takes note of how many have been lost in all. Returns how many of them are to be reported.
    fn note(&mut self, lost: u64) -> Option<u64> {
        let more = lost.saturating_sub(self.known);
        (more >= self.least).then(|| {
            self.known = lost;
            more
        })
    }
}

impl Look for Dropped {
    fn look(&mut self, context: &mut Context<'_>) {
        if let Some(more) = self.note(events::lost()) {
            let text = format!(
                "{more} events were overwritten before a recording had read them, so it has gaps. \
                 Read it faster, or record for a shorter time"
            );
            context
                .reporter
                .report(Report::new(Lint::DroppedEvents, (), text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dropped;

    #[test]
    fn each_loss_is_reported_once() {
        let mut dropped = Dropped::new(10);
        assert_eq!(dropped.note(0), None);
        assert_eq!(dropped.note(9), None);
        assert_eq!(dropped.note(12), Some(12));
        assert_eq!(dropped.note(12), None);
        assert_eq!(dropped.note(25), Some(13));
    }
}
