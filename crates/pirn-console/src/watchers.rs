//! The pages that are connected, and what they show: dumps are taken while there is a page, of
//! single threads only while one shows these.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pirn_live::{Live, Want};

/// Each thread. No program has more.
pub const ALL: Want = Want::All { max: 10_000_000 };

/// With more threads alive than this, each dump of all is taken because a user asks for it by a
/// button: the process is busy with it for a second or more.
pub const MANY: u64 = 100_000;

/// A page that shows single threads asks for them with each dump. One that has not for this long
/// shows something else by now.
const ASKED: Duration = Duration::from_secs(15);

/// The pages that are connected.
pub struct Watchers {
    live: Arc<Live>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pages: usize,
    /// When a page asked for single threads last.
    asked: Option<Instant>,
}

impl Watchers {
    pub fn new(live: Arc<Live>) -> Watchers {
        Watchers {
            live,
            state: Mutex::default(),
        }
    }

    /// Counts a page until the result is dropped.
    pub fn enter(&self) -> Watcher<'_> {
        let mut state = self.lock();
        state.pages += 1;
        self.keep(&state);
        Watcher(self)
    }

    /// A page shows single threads.
    pub fn asks_for_threads(&self) {
        let mut state = self.lock();
        state.asked = Some(Instant::now());
        self.keep(&state);
    }

    /// Whether there are so many threads that single ones are shown only on request.
    pub fn are_many(&self) -> bool {
        self.live
            .last()
            .is_some_and(|sample| sample.threads.all() > MANY)
    }

    /// Has dumps taken of what is looked at. To be called now and then.
    pub fn look_again(&self) {
        self.keep(&self.lock());
    }

    /// `state` is locked: a page that comes while another goes must not be overtaken.
    fn keep(&self, state: &State) {
        let threads = state.asked.is_some_and(|asked| asked.elapsed() < ASKED);
        self.live.keep(match state.pages {
            0 => None,
            _ if threads && !self.are_many() => Some(ALL),
            _ => Some(Want::Examples),
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page that is connected.
pub struct Watcher<'a>(&'a Watchers);

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.pages -= 1;
        self.0.keep(&state);
    }
}
