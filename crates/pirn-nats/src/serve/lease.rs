//! The lease of a name, and the thread that keeps it.
//!
//! ```text
//!   taken            kept             kept                       the server
//!     |----- 3/10 -----|----- 3/10 -----|----- 3/10 ---..          drops it
//!     |---------------- 8/10 ----------------| (if not kept) killed   |
//!     |------------------------- 10/10 -------------------------------|
//! ```
//!
//! Each span begins *before* the request to the server is sent, so the holder's lease ends before
//! the server's, and has a fifth of its length for the handler to end when it is interrupted.

use crate::engine::{Names, NotHeld};
use crate::poison::locked;
use core::time::Duration;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// How long it may take to give a name back.
const RELEASE: Duration = Duration::from_secs(2);

pub(super) struct Lease {
    name: String,
    holder: Vec<u8>,
    /// The revision at which it was taken.
    fence: u64,
    length: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    until: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Held,
    Released,
    Lost,
}

impl Lease {
    /// Takes a name.
    pub(super) fn take(
        names: &dyn Names,
        name: &str,
        holder: Vec<u8>,
        length: Duration,
        limit: Duration,
    ) -> Result<Lease, NotHeld> {
        let sent = Instant::now();
        let fence = names.take(name, &holder, limit)?;
        Ok(Lease {
            name: name.to_string(),
            holder,
            fence,
            length,
            state: Mutex::new(State {
                until: sent + length * 8 / 10,
                phase: Phase::Held,
            }),
            changed: Condvar::new(),
        })
    }

    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// Returns true as long as no other holder can have the name.
    pub(super) fn holds(&self) -> bool {
        let state = locked(&self.state);
        state.phase == Phase::Held && Instant::now() < state.until
    }

    /// Has the name given back.
    pub(super) fn release(&self) {
        let mut state = locked(&self.state);
        if state.phase == Phase::Held {
            state.phase = Phase::Released;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Keeps the name until it is to be given back. Calls `lost` if it cannot be kept.
    pub(super) fn keep(&self, names: &dyn Names, lost: impl FnOnce()) {
        let period = self.length * 3 / 10;
        let (mut revision, mut pause) = (self.fence, period);
        loop {
            let Some(left) = self.wait(pause) else {
                return names.release(&self.name, revision, RELEASE);
            };
            let sent = Instant::now();
            let kept = match left.is_zero() {
                true => Err(None),
                false => names
                    .keep(&self.name, &self.holder, revision, left.min(period))
                    .map_err(Some),
            };
            match kept {
                Ok(next) => {
                    revision = next;
                    pause = period;
                    locked(&self.state).until = sent + self.length * 8 / 10;
                }
                Err(Some(NotHeld::Unknown(_))) => pause = period / 10,
                Err(None | Some(NotHeld::By(_))) => {
                    locked(&self.state).phase = Phase::Lost;
                    return lost();
                }
            }
        }
    }

    /// Waits for as long as `pause`, or until the lease ends. Returns how much of it is left;
    /// nothing if it is to be given back.
    fn wait(&self, pause: Duration) -> Option<Duration> {
        let state = locked(&self.state);
        let pause = pause.min(state.until.saturating_duration_since(Instant::now()));
        let is_held = |state: &mut State| state.phase == Phase::Held;
        let waited = self.changed.wait_timeout_while(state, pause, is_held);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let left = state.until.saturating_duration_since(Instant::now());
        (state.phase == Phase::Held).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NodeError;
    use std::sync::mpsc;

    type Answer = Result<u64, NotHeld>;

    /// A registry whose answers are prepared.
    struct Prepared {
        answers: Mutex<mpsc::Receiver<Answer>>,
        released: mpsc::Sender<u64>,
    }

    impl Names for Prepared {
        fn take(&self, _: &str, _: &[u8], _: Duration) -> Answer {
            Ok(1)
        }
        fn keep(&self, _: &str, _: &[u8], revision: u64, limit: Duration) -> Answer {
            assert!(revision < 10);
            let answer = locked(&self.answers).recv_timeout(limit);
            let late = NotHeld::Unknown(NodeError::unavailable("late"));
            answer.unwrap_or(Err(late))
        }
        fn release(&self, _: &str, revision: u64, _: Duration) {
            self.released.send(revision).unwrap();
        }
        fn holder(&self, _: &str, _: Duration) -> Result<Option<(Vec<u8>, u64)>, NodeError> {
            Ok(None)
        }
    }

    fn prepared(answers: Vec<Answer>) -> (Prepared, mpsc::Receiver<u64>) {
        let (give, answered) = mpsc::channel();
        answers
            .into_iter()
            .for_each(|answer| give.send(answer).unwrap());
        let (released, told) = mpsc::channel();
        let answers = Mutex::new(answered);
        (Prepared { answers, released }, told)
    }

    fn lease(names: &Prepared, length: Duration) -> Lease {
        Lease::take(names, "a", vec![], length, length).unwrap()
    }

    #[test]
    fn a_lease_that_is_given_back_is_given_back_at_its_last_revision() {
        let (names, released) = prepared(vec![Ok(2), Ok(3)]);
        let length = Duration::from_millis(500);
        let lease = lease(&names, length);
        std::thread::scope(|s| {
            s.spawn(|| lease.keep(&names, || panic!("it is not lost")));
            let first = locked(&lease.state).until;
            while locked(&lease.state).until < first + length * 5 / 10 {
                std::thread::yield_now();
            }
            assert!(lease.holds());
            lease.release();
        });
        assert_eq!(released.try_recv(), Ok(3));
        assert!(!lease.holds());
        assert_eq!(lease.fence(), 1);
    }

    #[test]
    fn a_lease_that_cannot_be_kept_ends_before_the_servers_does() {
        let (names, released) = prepared(vec![]);
        let length = Duration::from_millis(200);
        let taken = Instant::now();
        let lease = lease(&names, length);
        let mut lost = None;
        lease.keep(&names, || lost = Some(taken.elapsed()));
        assert!(lost.unwrap() >= length * 8 / 10);
        assert!(!lease.holds());
        assert!(released.try_recv().is_err(), "it may be another node's");
    }

    #[test]
    fn a_lease_that_somebody_else_has_ends_at_once() {
        let (names, _released) = prepared(vec![Err(NotHeld::By(vec![1]))]);
        let lease = lease(&names, Duration::from_secs(1));
        let mut lost = false;
        lease.keep(&names, || lost = true);
        assert!(lost && Instant::now() < locked(&lease.state).until && !lease.holds());
    }
}
