//! The alarm of the reporter, the platform thread that explains what is wrong: it naps between two
//! looks and rests while the process is idle; the monitor wakes it.
//!
//! ```text
//!   reporter                               monitor
//!   1. state = NAPPING or RESTING,         a. raise: state = RAISED; did it sleep? wake it
//!      unless it is RAISED                 b. stir, each tick: is it RESTING? state = AWAKE,
//!   2. sleep while the state is that          wake it
//!   3. state = AWAKE; was it RAISED?
//! ```
//!
//! A raise that comes before 1 is seen there, one that comes later is seen by the kernel at 2. A
//! stir may miss a reporter that is just going to rest; the next tick sees it.
//! `crates/pirn-model` checks this file: `alarm_model.rs`.

use crate::primitives::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys;
use crate::time::Deadline;

const AWAKE: u32 = 0;
const NAPPING: u32 = 1;
const RESTING: u32 = 2;
const RAISED: u32 = 3;

/// See the module's documentation.
pub struct Alarm(AtomicU32);

impl Alarm {
    /// Returns an alarm that nobody has raised.
    pub(crate) fn new() -> Alarm {
        Alarm(AtomicU32::new(AWAKE))
    }

    /// Sleeps until the deadline, or until the alarm is raised. Returns whether it was. May return
    /// early. The reporter's alone.
    pub fn nap(&self, deadline: Deadline) -> bool {
        if self.begin(NAPPING) {
            let _ = sys::futex_wait(&self.0, NAPPING, deadline);
        }
        self.end()
    }

    /// Sleeps until the alarm is raised or [stirred](Self::stir). Returns whether it was raised.
    /// The reporter's alone.
    pub fn rest(&self) -> bool {
        if self.begin(RESTING) {
            while self.0.load(Relaxed) == RESTING {
                // Relaxed: `end` has the edge.
                let _ = sys::futex_wait(&self.0, RESTING, Deadline::NEVER);
            }
        }
        self.end()
    }

    /// Step 1. Returns `false` if the alarm has been raised.
    fn begin(&self, state: u32) -> bool {
        // Relaxed: `end` has the edge.
        let begun = self.0.compare_exchange(AWAKE, state, Relaxed, Relaxed);
        begun.is_ok()
    }

    /// Step 3.
    fn end(&self) -> bool {
        // Acquire: pairs with the Release in `raise`: what the monitor has noted.
        self.0.swap(AWAKE, Acquire) == RAISED
    }

    /// Wakes the reporter, or keeps it from sleeping. The monitor's alone.
    pub(crate) fn raise(&self) {
        // Release: pairs with the Acquire in `end`.
        if matches!(self.0.swap(RAISED, Release), NAPPING | RESTING) {
            sys::futex_wake(&self.0, 1);
        }
    }

    /// Wakes the reporter if it rests. The monitor's alone, for each of its ticks.
    pub(crate) fn stir(&self) {
        // Relaxed: nothing is passed on. Nobody else ends a rest.
        if self.0.load(Relaxed) == RESTING {
            self.0.store(AWAKE, Relaxed);
            sys::futex_wake(&self.0, 1);
        }
    }
}
