//! What the threads that watch have found, and what they are asked for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Settings;
use super::dumps::{Snapshot, Want};
use super::history::History;
use super::sample::Sample;

/// Whether the process answers. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// There are samples.
    Alive,
    /// There has been no sample.
    Silent {
        /// For how long.
        seconds: u64,
        /// What may be the reason; it may be empty.
        why: String,
    },
    /// There will be none any more, and why.
    Ended(String),
}

/// The state, and a way to wait for changes.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// See [`Shared`].
#[derive(Debug)]
pub(super) struct State {
    /// How often anything has changed that is shown.
    pub revision: u64,
    pub history: History,
    pub status: Status,
    /// Why the last dump failed.
    pub trouble: Option<String>,
    /// The threads are to end.
    pub stop: bool,
    /// The interval that samples are to have. Dumps are not taken more often.
    pub interval: Duration,
    /// Dumps of this kind are wanted again and again.
    pub kept: Option<Want>,
    /// A dump of each of these kinds is wanted once.
    pub asked: Vec<Want>,
    /// How many dumps there have been, and how many have failed.
    pub dumps: u64,
    pub failures: u64,
    /// Until then the process is left in peace.
    pub rests_until: Instant,
    pub examples: Option<Arc<Snapshot>>,
    pub all: Option<Arc<Snapshot>>,
}

impl State {
    /// Returns the newest dump that has what is wanted.
    pub fn newest(&self, want: Want) -> Option<Arc<Snapshot>> {
        let kept = match want {
            Want::Examples => &self.examples,
            Want::All { .. } => &self.all,
        };
        kept.clone().filter(|snapshot| snapshot.has(want))
    }

    /// Whether the process is to be left in peace.
    pub fn must_rest(&self) -> bool {
        Instant::now() < self.rests_until
    }
}

impl Shared {
    pub fn new(settings: &Settings) -> Shared {
        let state = State {
            revision: 0,
            history: History::new(settings.history),
            status: Status::Alive,
            trouble: None,
            stop: false,
            interval: settings.interval,
            kept: None,
            asked: Vec::new(),
            dumps: 0,
            failures: 0,
            rests_until: Instant::now(),
            examples: None,
            all: None,
        };
        Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// A thread that has panicked leaves nothing half done here: each change is one assignment.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has changed, but not longer than `patience`.
    pub fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        patience: Duration,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, patience);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes everybody who waits.
    pub fn tell(&self) {
        self.changed.notify_all();
    }

    /// Changes what is asked for.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.tell();
    }

    /// Changes what is shown.
    pub fn show(&self, change: impl FnOnce(&mut State)) {
        self.change(|state| {
            change(state);
            state.revision += 1;
        });
    }

    pub fn add(&self, sample: Sample) {
        self.show(|state| {
            state.history.add(sample);
            state.status = Status::Alive;
        });
    }
}
