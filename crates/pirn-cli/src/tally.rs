//! The latencies and errors that the users of one run have seen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// The number of different errors that are kept for display.
const SHOWN: usize = 5;

/// The longest latency that is told apart from longer ones: two hours, in microseconds.
const LONGEST: u64 = 7_200_000_000;

/// The counts that all users of a run share.
pub struct Tally {
    answered: AtomicU64,
    latencies: Mutex<Histogram<u64>>,
    errors: Mutex<Errors>,
}

/// The number of errors, and the first few different ones with how often each occurred.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// The number of all errors.
    pub count: u64,
    /// The first few kinds.
    pub first: Vec<(String, u64)>,
}

impl Tally {
    /// Returns empty counts.
    pub fn new() -> Self {
        // To three digits, and of a size that does not depend on the recorded values.
        let latencies = Histogram::new_with_max(LONGEST, 3).expect("the bounds are allowed");
        Tally {
            answered: AtomicU64::new(0),
            latencies: Mutex::new(latencies),
            errors: Mutex::default(),
        }
    }

    /// Records a request that was answered after `latency`.
    pub fn answered(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let mut latencies = self
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        latencies.saturating_record(micros);
        drop(latencies);
        // Relaxed: a count for the progress line, which orders nothing.
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a failure.
    pub fn failed(&self, error: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.count += 1;
        if let Some((_, count)) = errors.first.iter_mut().find(|(known, _)| known == error) {
            *count += 1;
        } else if errors.first.len() < SHOWN {
            errors.first.push((error.to_owned(), 1));
        }
    }

    /// Returns the number of requests answered so far.
    pub fn answered_so_far(&self) -> u64 {
        // Relaxed: see `answered`.
        self.answered.load(Ordering::Relaxed)
    }

    /// Returns the latencies in microseconds.
    pub fn latencies(&self) -> Histogram<u64> {
        self.latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the errors.
    pub fn errors(&self) -> Errors {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests;
