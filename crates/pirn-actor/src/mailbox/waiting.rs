//! Senders that wait for room, in order of arrival, each with its item.
//!
//! The runner moves the items of those who come first into the queue, and wakes them: so those who
//! come later do not overtake them, and the items of one sender stay in order.

use super::{Mailbox, ROOM, Shared};
use crate::error::Refusal;
use crate::time::Limit;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn::thread::{self, Thread};
use std::collections::VecDeque;
use std::sync::Arc;

/// A sender that waits.
struct Place<T> {
    item: T,
    sender: Arc<Sender>,
}

/// Wakes a sender.
struct Sender {
    thread: Thread,
    /// Its place is gone, or the mailbox ends.
    is_decided: AtomicBool,
}

impl Sender {
    fn wake(&self) {
        // Release: pairs with the sender's load; what was done with its item comes before.
        self.is_decided.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// All senders that wait at one mailbox.
pub(super) struct Line<T>(VecDeque<Place<T>>);

impl<T> Line<T> {
    pub(super) const fn new() -> Line<T> {
        Line(VecDeque::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Wakes all senders. Each takes its own place out.
    pub(super) fn wake_all(&self) {
        for place in &self.0 {
            place.sender.wake();
        }
    }
}

/// What a sender does while it waits.
pub(crate) trait Wait {
    /// Is called before the sender waits, and returns what is to exist meanwhile.
    fn begin(&self) -> Result<impl Sized, Refusal>;
    /// The time until which it waits.
    fn limit(&self) -> Limit;
}

impl<T> Mailbox<T> {
    /// Puts an item. If the mailbox is full and its senders wait, waits for room.
    pub(crate) fn push(
        &self,
        item: T,
        wait: &impl Wait,
    ) -> Result<(super::Then, Option<T>), (Refusal, T)> {
        match self.try_push(item) {
            Err((Refusal::Full, item)) if self.overflow == super::Overflow::Wait => {
                self.wait_for_room(item, wait)
            }
            other => other,
        }
    }

    fn wait_for_room(
        &self,
        item: T,
        wait: &impl Wait,
    ) -> Result<(super::Then, Option<T>), (Refusal, T)> {
        let _waits = match wait.begin() {
            Ok(waits) => waits,
            Err(refusal) => return Err((refusal, item)),
        };
        let sender = Arc::new(Sender {
            thread: thread::current(),
            is_decided: AtomicBool::new(false),
        });
        let then = {
            let mut shared = self.lock();
            if shared.phase != super::Phase::Open {
                return Err((Refusal::Closed, item));
            }
            shared.line.0.push_back(Place {
                item,
                sender: Arc::clone(&sender),
            });
            // SeqCst: a total order with the additions of the runner. Either it sees the flag, or
            // this sees its addition.
            let begun = self.word.fetch_or(ROOM, Ordering::SeqCst) / super::ONE;
            self.admit(&mut shared, begun);
            // The runner may have begun everything, and have left, since this found no room. The
            // line was empty then, so the item has been admitted, and this does not wait.
            if shared.queue.is_empty() {
                super::Then::Nothing
            } else {
                shared.started()
            }
        };
        let limit = wait.limit();
        let mut refusal = Refusal::Closed;
        // Acquire: pairs with `wake`.
        while !sender.is_decided.load(Ordering::Acquire) {
            match limit.park() {
                Ok(()) => {}
                Err(reason) => {
                    refusal = reason.into();
                    break;
                }
            }
        }
        self.leave_line(&sender, refusal).map(|()| (then, None))
    }

    /// Takes the place of a sender out, and its item back, unless the runner has taken that.
    fn leave_line(&self, sender: &Arc<Sender>, refusal: Refusal) -> Result<(), (Refusal, T)> {
        let mut shared = self.lock();
        let mut places = shared.line.0.iter();
        match places.position(|place| Arc::ptr_eq(&place.sender, sender)) {
            None => Ok(()),
            Some(at) => {
                let place = shared.line.0.remove(at).expect("the index is of this list");
                Err((refusal, place.item))
            }
        }
    }

    /// Moves the items of as many senders into the queue as there is room for, if so many items
    /// have been begun. Whoever calls this is the runner, or starts one if there is none.
    pub(super) fn admit(&self, shared: &mut Shared<T>, begun: u64) {
        let mut room = self.room(shared, begun);
        while room > 0 && shared.phase == super::Phase::Open {
            let Some(place) = shared.line.0.pop_front() else {
                break;
            };
            shared.queue.push_back(place.item);
            shared.sent += 1;
            place.sender.wake();
            room -= 1;
        }
        if shared.line.is_empty() {
            // Relaxed: flags are set and taken down under the lock, and only a hint elsewhere.
            self.word.fetch_and(!ROOM, Ordering::Relaxed);
        }
    }
}
