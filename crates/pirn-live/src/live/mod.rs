//! Watching one process: what it counts, line by line, and dumps of its threads.
//!
//! ```text
//!   thread `watch`   reads the lines of the server's command `watch` ---> history of samples
//!   thread `dumps`   asks for dumps, no more often than the process
//!                    can easily bear, and finds names           ---> newest snapshot of each kind
//!                                                                          |
//!   the view: asks for what there is, or waits until there is more
//! ```
//!
//! Neither thread ever waits for the one that shows. A process is known by its number and its start
//! time: another one with the same number is never taken for it.

mod dumps;
mod history;
mod identity;
mod keys;
mod sample;
mod shared;
mod watch;
mod window;

pub use dumps::{Snapshot, Want};
pub use identity::Identity;
pub use keys::keys;
pub use sample::{CarrierSample, Counters, Latency, Sample};
pub use shared::Status;
pub use window::Window;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::attach::Failure;
use shared::Shared;

/// How a process is watched.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From one sample to the next.
    pub interval: Duration,
    /// How many samples are kept.
    pub history: usize,
    /// Dumps are taken at most this often, not more often than samples, and never so often that the
    /// process spends more than a tenth of a processor on them.
    pub pace: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            interval: Duration::from_secs(1),
            history: 600,
            pace: Duration::from_secs(2),
        }
    }
}

/// A process that is watched, until this is dropped.
#[derive(Debug)]
pub struct Live {
    identity: Identity,
    shared: Arc<Shared>,
}

impl Live {
    /// Begins to watch the process with this number. The first sample comes a moment later.
    pub fn connect(pid: u32, settings: Settings) -> Result<Live, Failure> {
        let identity = Identity::read(pid)?;
        let answer = watch::ask(&identity, settings.interval)?;
        let shared = Arc::new(Shared::new(&settings));
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let spawned = thread::Builder::new().name(name.into()).spawn(body);
            spawned.map(drop).map_err(|error| Failure::Own {
                doing: "start a thread",
                error,
            })
        };
        // From here on, so that an error ends the thread that has begun.
        let live = Live {
            identity: identity.clone(),
            shared: Arc::clone(&shared),
        };
        let (of_watch, known) = (Arc::clone(&shared), identity.clone());
        let interval = settings.interval;
        spawn(
            "watch",
            Box::new(move || watch::run(&of_watch, &known, answer, interval)),
        )?;
        let pace = settings.pace;
        spawn(
            "dumps",
            Box::new(move || dumps::run(&shared, &identity, pace)),
        )?;
        Ok(live)
    }

    /// Returns which process it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the samples that are kept, oldest first.
    pub fn history(&self) -> Vec<Arc<Sample>> {
        self.shared.lock().history.all()
    }

    /// Returns the newest sample.
    #[allow(dead_code, reason = "for those that show the newest only")]
    pub fn last(&self) -> Option<Arc<Sample>> {
        self.shared.lock().history.last()
    }

    /// Returns whether the process answers.
    pub fn status(&self) -> Status {
        self.shared.lock().status.clone()
    }

    /// Returns why the last dump failed, if it did.
    pub fn trouble(&self) -> Option<String> {
        self.shared.lock().trouble.clone()
    }

    /// Returns how long it takes until the next dump is taken, if one is wanted.
    pub fn rests_for(&self) -> Duration {
        let until = self.shared.lock().rests_until;
        until.saturating_duration_since(Instant::now())
    }

    /// Has samples taken at another interval from now on.
    pub fn set_interval(&self, interval: Duration) {
        self.shared.change(|state| state.interval = interval);
    }

    /// Has dumps of this kind taken again and again from now on; `None`: none.
    pub fn keep(&self, want: Option<Want>) {
        self.shared.change(|state| state.kept = want);
    }

    /// Returns the newest dump of this kind that there is.
    pub fn snapshot(&self, want: Want) -> Option<Arc<Snapshot>> {
        self.shared.lock().newest(want)
    }

    /// Returns a dump that is taken now if the process can bear one; otherwise the newest of this
    /// kind. Waits for it.
    #[allow(dead_code, reason = "for those that show a page when it is asked for")]
    pub fn fresh(&self, want: Want, patience: Duration) -> Result<Arc<Snapshot>, String> {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        let (known, failed) = (state.dumps, state.failures);
        if let (Some(newest), true) = (state.newest(want), state.must_rest()) {
            return Ok(newest);
        }
        if !state.asked.contains(&want) {
            state.asked.push(want);
        }
        self.shared.tell();
        loop {
            match state.newest(want) {
                Some(newest) if newest.number > known => return Ok(newest),
                newest if state.failures > failed => {
                    return newest.ok_or_else(|| state.trouble.clone().unwrap_or_default());
                }
                _ => {}
            }
            if let Status::Ended(text) = &state.status {
                return Err(text.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let waited = patience.as_secs_f64();
                let late = || format!("there has been no dump for {waited} s");
                return state.newest(want).ok_or_else(late);
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Returns a number that grows whenever there is something new.
    pub fn revision(&self) -> u64 {
        self.shared.lock().revision
    }

    /// Waits until the number is larger than `seen`, but not longer than `patience`, and returns
    /// it.
    pub fn wait(&self, seen: u64, patience: Duration) -> u64 {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if state.revision > seen || left.is_zero() {
                return state.revision;
            }
            state = self.shared.wait(state, left);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.change(|state| state.stop = true);
    }
}
