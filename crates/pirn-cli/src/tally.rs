//! What the users of one run have seen: latencies and errors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// How many different errors are kept to be shown.
const SHOWN: usize = 5;

/// The longest latency that can be told from longer ones: two hours, in microseconds.
const LONGEST: u64 = 7_200_000_000;

/// The counts that all users of a run share.
pub struct Tally {
    answered: AtomicU64,
    latencies: Mutex<Histogram<u64>>,
    errors: Mutex<Errors>,
}

/// How many errors there were, and the first few different ones with how often each occurred.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// All of them.
    pub count: u64,
    /// The first few kinds.
    pub first: Vec<(String, u64)>,
}

impl Tally {
    /// Nothing seen yet.
    pub fn new() -> Self {
        // To three digits, and of a size that does not depend on what is recorded.
        let latencies = Histogram::new_with_max(LONGEST, 3).expect("the bounds are allowed");
        Tally {
            answered: AtomicU64::new(0),
            latencies: Mutex::new(latencies),
            errors: Mutex::default(),
        }
    }

    /// A request was answered after `latency`.
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

    /// Something failed.
    pub fn failed(&self, error: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.count += 1;
        if let Some((_, count)) = errors.first.iter_mut().find(|(known, _)| known == error) {
            *count += 1;
        } else if errors.first.len() < SHOWN {
            errors.first.push((error.to_owned(), 1));
        }
    }

    /// How many requests were answered so far.
    pub fn answered_so_far(&self) -> u64 {
        // Relaxed: see `answered`.
        self.answered.load(Ordering::Relaxed)
    }

    /// The latencies in microseconds.
    pub fn latencies(&self) -> Histogram<u64> {
        self.latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The errors.
    pub fn errors(&self) -> Errors {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests;
