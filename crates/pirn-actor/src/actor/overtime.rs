//! The time that a message may take.
//!
//! ```text
//!   runner:  begin ---- the handler ---- end           end ... begin
//!                |          ^             |
//!   timer:       +-- due ---+ interrupt   +-- nothing to interrupt: the next `begin` sets it again
//! ```
//!
//! The timer interrupts under the lock that `begin` and `end` take, so it interrupts the late
//! message or nothing: never the next message, nor the recipe that runs after it. The late thread
//! runs until its handler returns, and only then does the recipe make another state: two threads
//! never work on one state.
//!
//! There is at most one timer per actor. It moves on with the actor's messages: a message that is
//! in time costs a lock and a look at the clock, and leaves nothing behind.

use crate::error::Failure;
use crate::poison::locked;
use crate::time::timers;
use core::time::Duration;
use pirn::thread::{self, Thread};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub(crate) struct Overtime {
    limit: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The message that is being handled.
    current: Option<Current>,
    has_timer: bool,
}

struct Current {
    thread: Thread,
    message: &'static str,
    due: Instant,
    is_late: bool,
}

impl Overtime {
    pub(super) fn new(limit: Duration) -> Arc<Overtime> {
        Arc::new(Overtime {
            limit,
            state: Mutex::default(),
        })
    }

    /// Notes that the running thread begins a message with this name.
    pub(super) fn begin(self: &Arc<Self>, message: &'static str) -> &Arc<Self> {
        // A time too far away for an `Instant` is never.
        let Some(due) = Instant::now().checked_add(self.limit) else {
            return self;
        };
        let mut state = locked(&self.state);
        state.current = Some(Current {
            thread: thread::current(),
            message,
            due,
            is_late: false,
        });
        if !core::mem::replace(&mut state.has_timer, true) {
            drop(state);
            let this = Arc::clone(self);
            timers::at(due, move |_| this.check(Instant::now()));
        }
        self
    }

    /// Notes that the message is over. Returns the failure if it was late. The timer does not
    /// interrupt it after this call, but an earlier interrupt may still be pending.
    pub(super) fn end(self: &Arc<Self>) -> Option<Failure> {
        let current = locked(&self.state).current.take()?;
        let failure = || format!("{} took longer than {:?}", current.message, self.limit);
        current.is_late.then(|| Failure::new(failure()))
    }

    /// Interrupts the message if it is late. Returns the time of the next check.
    fn check(&self, now: Instant) -> Option<Instant> {
        let mut state = locked(&self.state);
        match &mut state.current {
            Some(current) if !current.is_late && now < current.due => return Some(current.due),
            Some(current) if !current.is_late => {
                current.is_late = true;
                current.thread.interrupt();
            }
            _ => {}
        }
        state.has_timer = false;
        None
    }
}
