//! The place for one answer.
//!
//! ```text
//!   empty --give--> given --take--> taken
//!     |  \
//!     |   wait --> awaited (by a thread or a task) --give--> given, and the waiter is woken
//!     |     (or displaced: as given, with the error that it is gone)
//!   abandon
//!     v
//!   abandoned: what is given is dropped, and a request that has not been begun is skipped
//! ```

use crate::edges::Over;
use crate::error::AskError;
use crate::poison::locked;
use crate::time::{Late, Limit};
use core::task::Waker;
use pirn::thread::Parker;
use std::sync::Mutex;

/// Who is to be woken.
pub(super) enum Waiter {
    /// The thread at the slot's parker, which hears first that its wait is over.
    Thread(Over),
    Task(Waker),
}

enum State<R> {
    Empty,
    Awaited(Waiter),
    Given(Result<R, AskError>),
    Taken,
    Abandoned,
}

pub(super) struct Slot<R> {
    state: Mutex<State<R>>,
    /// Where a thread waits. Not by its own permit, which other code on it may use meanwhile.
    parker: Parker,
}

impl<R> Slot<R> {
    pub(super) const fn new() -> Slot<R> {
        Slot {
            state: Mutex::new(State::Empty),
            parker: Parker::new(),
        }
    }

    /// Gives the answer, and wakes who waits for it. Returns it if nobody wants it.
    pub(super) fn give(&self, answer: Result<R, AskError>) -> Result<(), Result<R, AskError>> {
        let mut state = locked(&self.state);
        match &*state {
            State::Empty | State::Awaited(_) => {
                let before = core::mem::replace(&mut *state, State::Given(answer));
                drop(state);
                match before {
                    State::Awaited(Waiter::Thread(over)) => {
                        over.set();
                        self.parker.unpark();
                    }
                    State::Awaited(Waiter::Task(waker)) => waker.wake(),
                    _ => {}
                }
                Ok(())
            }
            State::Given(_) | State::Taken | State::Abandoned => Err(answer),
        }
    }

    /// The request will be dropped: a thread that waits hears now that it is gone, and counts as
    /// waiting no more. Called under a lock of the receiver's, so a task, whose waker is the
    /// program's code, hears when the request is dropped; it counts as waiting for nobody.
    pub(super) fn displace(&self) {
        let mut state = locked(&self.state);
        if let State::Empty | State::Awaited(Waiter::Thread(_)) = &*state {
            let before = core::mem::replace(&mut *state, State::Given(Err(AskError::Gone)));
            drop(state);
            if let State::Awaited(Waiter::Thread(over)) = before {
                over.set();
                self.parker.unpark();
            }
        }
    }

    /// Takes the answer, or says who is to be woken when it comes.
    pub(super) fn take_or_wait(
        &self,
        waiter: impl FnOnce() -> Waiter,
    ) -> Option<Result<R, AskError>> {
        let mut state = locked(&self.state);
        match core::mem::replace(&mut *state, State::Taken) {
            State::Given(answer) => Some(answer),
            State::Empty | State::Awaited(_) => {
                *state = State::Awaited(waiter());
                None
            }
            State::Taken | State::Abandoned => panic!("this answer has been taken"),
        }
    }

    /// Says who is to be woken when the answer comes, unless it is there.
    pub(super) fn watch(&self, waiter: Waiter) {
        let mut state = locked(&self.state);
        if let State::Empty | State::Awaited(_) = &*state {
            *state = State::Awaited(waiter);
        }
    }

    /// Waits until the answer is given to the thread that has said so, or it is late.
    pub(super) fn wait(&self, limit: Limit) -> Result<(), Late> {
        limit.park_at(&self.parker)
    }

    /// Takes the answer, if it is there.
    pub(super) fn take(&self) -> Option<Result<R, AskError>> {
        let mut state = locked(&self.state);
        match &*state {
            State::Given(_) => match core::mem::replace(&mut *state, State::Taken) {
                State::Given(answer) => Some(answer),
                _ => unreachable!("it was there, and the lock is held"),
            },
            _ => None,
        }
    }

    /// Nobody waits any more. What has been given is dropped.
    pub(super) fn abandon(&self) {
        let mut state = locked(&self.state);
        let before = core::mem::replace(&mut *state, State::Abandoned);
        drop(state);
        drop(before);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        matches!(&*locked(&self.state), State::Abandoned)
    }
}
