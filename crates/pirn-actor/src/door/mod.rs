//! Actors without a mailbox: a message is handled at once, where it is sent or on a thread of its
//! own. What remains of the mailbox is its *door*.
//!
//! ```text
//!   senders --> line --> |door| --> inside: a limited number of messages, each being handled
//!                urgent ones first
//! ```
//!
//! A message goes in if there is room, or waits in line with its sender, or does what the actor's
//! overflow says. A door that is closed lets nobody in. When nobody is inside any more, the
//! actor ends. A kill interrupts the threads of all that are inside, without the lock, since their
//! callbacks may use the actor. They stay inside until that is done: no interrupt comes late.

mod each;
mod inline;
mod job;

pub use each::each;
pub use inline::inline;

use crate::actor::{Ending, Patience, exit};
use crate::error::{Exit, Failure, Refusal};
use crate::identity::Identity;
use crate::mailbox::{Line, Overflow, Phase};
use crate::poison::locked;
use crate::snapshot;
use crate::time::Limit;
use core::sync::atomic::{AtomicUsize, Ordering};
use pirn::thread::{self, Thread};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};

/// How a message is to go in.
#[derive(Clone, Copy)]
enum Way {
    Usual(Patience),
    /// Before all others that wait.
    First(Limit),
    /// Whether or not there is room.
    Over,
}

/// See the head of this file.
struct Door {
    identity: Identity,
    capacity: usize,
    overflow: Overflow,
    ending: Ending,
    references: AtomicUsize,
    state: Mutex<State>,
    /// The threads inside have been interrupted.
    interrupted: Condvar,
}

struct State {
    phase: Phase,
    /// The threads inside are being interrupted.
    interrupts: bool,
    /// The number of messages that are inside.
    inside: usize,
    /// The number of messages that have been begun.
    begun: u64,
    /// The threads of those that have been begun and are not over.
    threads: HashMap<u64, Thread>,
    /// Senders that wait.
    line: Line<()>,
    /// Senders that wait, and come before those.
    urgent: Line<()>,
}

/// What a message that was let in has become.
#[must_use]
enum Entered {
    /// It is inside. It calls [`Door::begin`] and [`Door::leave`].
    Inside,
    /// It is dropped, by [`Overflow`].
    Dropped,
}

/// How the actor ends, if it does now. The one that gets this calls [`Door::publish`].
type Over = Option<Exit>;

impl Door {
    fn new((identity, (capacity, overflow)): (Identity, (usize, Overflow))) -> Door {
        Door {
            identity,
            capacity: capacity.max(1),
            overflow,
            ending: Ending::new(),
            references: AtomicUsize::new(0),
            state: Mutex::new(State {
                phase: Phase::Open,
                interrupts: false,
                inside: 0,
                begun: 0,
                threads: HashMap::new(),
                line: Line::new(),
                urgent: Line::new(),
            }),
            interrupted: Condvar::new(),
        }
    }

    /// Counts a reference.
    fn retain(&self) {
        // Relaxed: as in `Arc`, who makes another reference has one.
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a reference as gone. Returns true if it was the last one.
    fn release(&self) -> bool {
        // Relaxed: nothing else is communicated.
        self.references.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Has the running thread's message go in. The actor may end by that, if it is full.
    fn enter(&self, way: Way) -> (Result<Entered, Refusal>, Over) {
        let mut state = locked(&self.state);
        if state.phase != Phase::Open {
            return (Err(Refusal::Closed), None);
        }
        let is_full = state.inside >= self.capacity || !state.line.is_empty();
        let limit = match (way, self.overflow) {
            (Way::First(_), _) if state.inside < self.capacity => return state.come_in(),
            (Way::Over, _) => return state.come_in(),
            (Way::Usual(_), _) if !is_full => return state.come_in(),
            (Way::First(limit), _) => limit,
            (Way::Usual(Patience::Until(limit)), Overflow::Wait) => limit,
            (_, Overflow::Wait | Overflow::Fail) => return (Err(Refusal::Full), None),
            (_, Overflow::DropNew | Overflow::DropOld) => return (Ok(Entered::Dropped), None),
            (_, Overflow::Stop) => return (Err(Refusal::Closed), state.end(Phase::Overflowing)),
        };
        let is_urgent = matches!(way, Way::First(_));
        let ticket = state.line_of(is_urgent).enter(());
        drop(state);
        let refusal = ticket.wait(limit);
        match locked(&self.state).line_of(is_urgent).leave(&ticket) {
            None => (Ok(Entered::Inside), None),
            Some(()) => (Err(refusal), None),
        }
    }

    /// The running thread begins the message. Returns its number.
    fn begin(&self) -> u64 {
        let thread = thread::current();
        let mut state = locked(&self.state);
        state.begun += 1;
        let number = state.begun;
        state.threads.insert(number, thread.clone());
        let is_killed = state.phase == Phase::Killing;
        drop(state);
        if is_killed {
            thread.interrupt();
        }
        number
    }

    /// The message with this number is over, on the running thread. The next one comes in.
    fn leave(&self, number: u64, failure: Option<Failure>) -> Over {
        let mut state = locked(&self.state);
        while state.interrupts {
            let waited = self.interrupted.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.threads.remove(&number);
        if state.phase == Phase::Killing {
            // It was for this message.
            thread::take_interrupt();
        }
        state.inside -= 1;
        if let Some(failure) = failure {
            state.phase = Phase::Ended;
            state.wake_all();
            return Some(Exit::Failed(failure));
        }
        while state.phase == Phase::Open && state.inside < self.capacity {
            if state
                .urgent
                .admit()
                .or_else(|| state.line.admit())
                .is_none()
            {
                break;
            }
            state.inside += 1;
        }
        state.over()
    }

    /// Has the actor end: at the latest phase that was asked for.
    fn end(&self, phase: Phase) -> Over {
        let (over, threads) = {
            let mut state = locked(&self.state);
            let kills = state.phase < phase && phase == Phase::Killing;
            let over = state.end(phase);
            state.interrupts |= kills;
            let inside = || state.threads.values().cloned().collect::<Vec<_>>();
            (over, kills.then(inside))
        };
        if let Some(threads) = threads {
            threads.iter().for_each(Thread::interrupt);
            locked(&self.state).interrupts = false;
            self.interrupted.notify_all();
        }
        over
    }

    /// The actor has ended, and has dropped what it had.
    fn publish(&self, exit: &Exit) {
        snapshot::forget(&self.identity);
        self.ending.publish(exit);
    }
}

impl State {
    fn line_of(&mut self, is_urgent: bool) -> &mut Line<()> {
        match is_urgent {
            true => &mut self.urgent,
            false => &mut self.line,
        }
    }

    fn come_in(&mut self) -> (Result<Entered, Refusal>, Over) {
        self.inside += 1;
        (Ok(Entered::Inside), None)
    }

    fn wake_all(&self) {
        self.urgent.wake_all();
        self.line.wake_all();
    }

    fn end(&mut self, phase: Phase) -> Over {
        if self.phase >= phase {
            return None;
        }
        self.phase = phase;
        self.wake_all();
        self.over()
    }

    /// Returns how the actor ends, if it does now.
    fn over(&mut self) -> Over {
        let is_over = self.inside == 0 && self.phase > Phase::Open && self.phase < Phase::Ended;
        is_over.then(|| exit(core::mem::replace(&mut self.phase, Phase::Ended)))
    }
}

impl Door {
    /// Returns what there is to do.
    fn load(&self) -> snapshot::Load {
        let state = locked(&self.state);
        snapshot::Load {
            begun: state.begun,
            waiting: 0,
            senders: state.line.len() + state.urgent.len(),
        }
    }
}
