//! What the diagnostics have found: counted for metrics, and the last ones kept for dumps.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pirn_dump::Finding;
use pirn_rt::lock::Lock;
use std::sync::Arc;

/// The number of diagnostics that are kept.
const MOST: usize = 32;

/// A condition that is not an error, but that the operator probably wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    StuckCarrier,
    SparesExhausted,
    PoolFull,
    GrowingSite,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 4] = [
        Kind::StuckCarrier,
        Kind::SparesExhausted,
        Kind::PoolFull,
        Kind::GrowingSite,
    ];

    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// The names of all kinds, in the order of their numbers.
pub const NAMES: [&str; Kind::ALL.len()] = [
    "stuck-carrier",
    "spares-exhausted",
    "pool-full",
    "growing-site",
];

static TOTALS: [AtomicU64; Kind::ALL.len()] = [const { AtomicU64::new(0) }; Kind::ALL.len()];

/// The last diagnostics, in a ring: how many were ever kept, and the ring.
static KEPT: Lock<(usize, [Option<Arc<Finding>>; MOST])> = Lock::new((0, [const { None }; MOST]));

/// Forgets what was found in the parent process.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub unsafe fn after_fork() {
    for total in &TOTALS {
        total.store(0, Relaxed); // Relaxed: statistics only.
    }
    // SAFETY: the caller's contract.
    unsafe { KEPT.renew((0, [const { None }; MOST])) };
}

/// Returns how often each diagnostic has been found, in the order of their numbers.
pub fn totals() -> [u64; Kind::ALL.len()] {
    TOTALS.each_ref().map(|count| count.load(Relaxed)) // Relaxed: statistics only.
}

/// Returns the last diagnostics that were found, the oldest first.
pub fn recent() -> Vec<Finding> {
    let copy = {
        let kept = KEPT.lock(); // Nothing is allocated under it.
        let mut copy = [const { None }; MOST];
        for (number, place) in copy.iter_mut().enumerate() {
            place.clone_from(&kept.1[(kept.0 + number) % MOST]);
        }
        copy
    };
    let recent = copy.iter().flatten();
    recent.map(|finding| Finding::clone(finding)).collect()
}

/// Counts a diagnostic, and keeps the first line of its text for dumps.
pub fn keep(kind: Kind, text: &str, threads: &[u64]) {
    TOTALS[kind as usize].fetch_add(1, Relaxed); // Relaxed: statistics only.
    let recent = Arc::new(Finding {
        kind: kind.name().into(),
        text: text.lines().next().unwrap_or_default().to_owned(),
        threads: threads.to_owned(),
    });
    let old = {
        let mut kept = KEPT.lock();
        let place = kept.0 % MOST;
        kept.0 += 1;
        kept.1[place].replace(recent)
    };
    drop(old); // Frees memory: not under the lock.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_numbers() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn the_last_ones_are_kept_in_order() {
        for number in 0..2 * MOST {
            keep(Kind::GrowingSite, &format!("kept {number}"), &[]);
        }
        let texts = recent().into_iter().map(|finding| finding.text);
        assert!(texts.eq((MOST..2 * MOST).map(|number| format!("kept {number}"))));
        assert!(totals()[Kind::GrowingSite as usize] >= MOST as u64);
    }
}
