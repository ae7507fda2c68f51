//! Senders that wait for room, in order of arrival, each with its item.
//!
//! The runner moves the items of those who come first into the queue, and wakes them: so those who
//! come later do not overtake them, and the items of one sender stay in order.

use super::word::ROOM;
use super::{Mailbox, Shared};
use crate::edges::Over;
use crate::error::Refusal;
use crate::time::Limit;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn::thread::{self, Thread};
use std::collections::VecDeque;
use std::sync::Arc;

/// A sender that waits.
struct Place<T> {
    item: T,
    ticket: Ticket,
}

/// All senders that wait at one mailbox. Guarded by that one's lock.
pub(crate) struct Line<T>(VecDeque<Place<T>>);

impl<T> Line<T> {
    pub(crate) const fn new() -> Line<T> {
        Line(VecDeque::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Has the running thread wait, as the last one. It then calls [`Ticket::wait`], without the
    /// lock, and [`leave`](Line::leave).
    pub(crate) fn enter(&mut self, item: T) -> Ticket {
        let ticket = Ticket(Arc::new(Sender {
            thread: thread::current(),
            is_decided: AtomicBool::new(false),
            over: Over::new(),
        }));
        self.0.push_back(Place {
            item,
            ticket: ticket.clone(),
        });
        ticket
    }

    /// Takes the first sender out, which is woken, and returns its item.
    pub(crate) fn admit(&mut self) -> Option<T> {
        let place = self.0.pop_front()?;
        place.ticket.0.wake();
        Some(place.item)
    }

    /// Returns the item of a sender that has not been admitted.
    pub(crate) fn leave(&mut self, ticket: &Ticket) -> Option<T> {
        let is_own = |place: &Place<T>| Arc::ptr_eq(&place.ticket.0, &ticket.0);
        let at = self.0.iter().position(is_own)?;
        self.0.remove(at).map(|place| place.item)
    }

    /// Wakes all senders. Each takes its own place out.
    pub(crate) fn wake_all(&self) {
        for place in &self.0 {
            place.ticket.0.wake();
        }
    }
}

/// What a sender has of its place in a line.
#[derive(Clone)]
pub(crate) struct Ticket(Arc<Sender>);

/// Wakes a sender.
struct Sender {
    thread: Thread,
    /// Its place is gone, or the mailbox ends.
    is_decided: AtomicBool,
    over: Over,
}

impl Sender {
    fn wake(&self) {
        self.over.set();
        // Release: pairs with the sender's load; what was done with its item comes before.
        self.is_decided.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Ticket {
    /// Returns what says that the wait is over.
    pub(crate) fn over(&self) -> &Over {
        &self.0.over
    }

    /// Waits until the sender is admitted, or its line given up. Returns why its item has been
    /// refused, if it has been: if it is still in the line.
    pub(crate) fn wait(&self, limit: Limit) -> Refusal {
        // Acquire: pairs with `wake`.
        while !self.0.is_decided.load(Ordering::Acquire) {
            if let Err(late) = limit.park() {
                return late.into();
            }
        }
        Refusal::Closed
    }
}

/// What a sender does while it waits.
pub(crate) trait Wait {
    /// Is called when the sender has its place, and returns what is to exist while it waits. The
    /// wait may be over by then.
    fn begin(&self, over: &Over) -> Result<impl Sized, Refusal>;
    /// The time until which it waits.
    fn limit(&self) -> Limit;
}

impl<T> Mailbox<T> {
    /// Puts an item. If the mailbox is full and its senders wait, waits for room. For the rest see
    /// [`try_push`](Mailbox::try_push).
    pub(crate) fn push(
        &self,
        item: T,
        displace: impl FnOnce(&mut T),
        wait: &impl Wait,
    ) -> Result<(super::Then, Option<T>), (Refusal, T)> {
        match self.try_push(item, displace) {
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
        let (ticket, then) = {
            let mut shared = self.lock();
            if shared.phase != super::Phase::Open {
                return Err((Refusal::Closed, item));
            }
            let ticket = shared.extra().line.enter(item);
            let begun = self.word.ask_for_room();
            self.admit(&mut shared, begun);
            // The runner may have begun all items since there was no room, and left.
            let then = match shared.queue.is_empty() {
                true => super::Then::Nothing,
                false => shared.started(),
            };
            (ticket, then)
        };
        if then == super::Then::Start {
            // Nobody waited when the runner left, so it is this one's item that is in the queue.
            return Ok((then, None));
        }
        let refusal = match wait.begin(ticket.over()) {
            Ok(_waits) => ticket.wait(wait.limit()),
            Err(refusal) => refusal,
        };
        match self.lock().extra().line.leave(&ticket) {
            None => Ok((super::Then::Nothing, None)),
            Some(item) => Err((refusal, item)),
        }
    }

    /// Lets senders in for whom there is room: the runner is about to wait, and perhaps for one.
    pub(crate) fn let_in(&self) {
        // Without the lock: a sender that comes later finds the room by itself, since the runner
        // begins nothing meanwhile.
        if self.word.flags() & ROOM != 0 {
            let mut shared = self.lock();
            self.admit(&mut shared, self.begun());
        }
    }

    /// Moves the items of as many senders into the queue as there is room for, if this many items
    /// have been begun. The caller is the runner, or starts one where none runs.
    pub(super) fn admit(&self, shared: &mut Shared<T>, begun: u64) {
        let mut room = self.room(shared, begun);
        while room > 0 && shared.phase == super::Phase::Open {
            let Some(item) = shared.extra().line.admit() else {
                break;
            };
            shared.queue.push_back(item);
            shared.sent += 1;
            room -= 1;
        }
        if shared.line().is_none_or(Line::is_empty) {
            self.word.clear(ROOM);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, Next, Overflow, Then};
    use super::*;

    struct Patient;

    impl Wait for Patient {
        fn begin(&self, _: &Over) -> Result<impl Sized, Refusal> {
            Ok(())
        }
        fn limit(&self) -> Limit {
            Limit::NEVER
        }
    }

    #[test]
    fn a_sender_whose_runner_has_left_starts_another_one() {
        let mailbox = Mailbox::new(1, Overflow::Wait);
        assert!(matches!(
            mailbox.try_push(1, |_| ()),
            Ok((Then::Start, None))
        ));
        assert!(matches!(
            mailbox.try_push(2, |_| ()),
            Err((Refusal::Full, 2))
        ));
        let mut batch = Batch::new();
        while let Next::Item(_) = mailbox.next(&mut batch) {}
        let pushed = mailbox.wait_for_room(2, &Patient);
        assert!(matches!(pushed, Ok((Then::Start, None))));
        assert_eq!(mailbox.len(), 1);
    }
}
