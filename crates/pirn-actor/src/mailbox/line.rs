//! Senders that wait for room, in order of arrival, each with its item.
//!
//! The runner moves the items of the first senders into the queue, and wakes them. So later senders
//! do not overtake earlier ones, and the items of one sender stay in order.

use crate::edges::{Over, To, Waits};
use crate::error::Refusal;
use crate::time::Limit;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn::thread::{self, Thread};
use std::collections::VecDeque;
use std::sync::Arc;

/// All senders that wait at one mailbox. Guarded by the mailbox's lock.
pub(crate) struct Line<T>(VecDeque<(T, Arc<Ticket>)>);

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

    /// Puts the running thread's item at the end of the line. The thread then calls
    /// [`Ticket::wait`], without the lock, and [`leave`](Line::leave).
    pub(crate) fn enter(&mut self, item: T) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket {
            thread: thread::current(),
            is_decided: AtomicBool::new(false),
            over: Over::new(),
        });
        self.0.push_back((item, Arc::clone(&ticket)));
        ticket
    }

    /// Takes the first sender out, wakes it, and returns its item.
    pub(crate) fn admit(&mut self) -> Option<T> {
        let (item, ticket) = self.0.pop_front()?;
        ticket.wake();
        Some(item)
    }

    /// Returns the item of a sender that was not admitted.
    pub(crate) fn leave(&mut self, own: &Arc<Ticket>) -> Option<T> {
        let mut tickets = self.0.iter().map(|(_, ticket)| ticket);
        let at = tickets.position(|ticket| Arc::ptr_eq(ticket, own))?;
        self.0.remove(at).map(|(item, _)| item)
    }

    /// Wakes all senders. Each takes its own place out of the line.
    pub(crate) fn wake_all(&self) {
        self.0.iter().for_each(|(_, ticket)| ticket.wake());
    }
}

/// The wait of a sender in a line.
pub(crate) struct Ticket {
    thread: Thread,
    /// The sender's place is gone, or the mailbox ends.
    is_decided: AtomicBool,
    over: Over,
}

impl Ticket {
    fn wake(&self) {
        self.over.set();
        // Release: pairs with the Acquire in `Ticket::wait`: what was done with the item comes
        // before.
        self.is_decided.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits as [`wait`](Ticket::wait) does, with an edge from the running thread's actor to `to`.
    pub(crate) fn wait_for(&self, to: &To, limit: Limit) -> Refusal {
        match Waits::begin(to, limit, &self.over) {
            Ok(_waits) => self.wait(limit),
            Err(cycle) => Refusal::Deadlock(cycle),
        }
    }

    /// Waits until the sender is admitted, or the line is given up. Returns why the item is
    /// refused, which counts only if it is still in the line.
    pub(crate) fn wait(&self, limit: Limit) -> Refusal {
        // Acquire: pairs with the Release in `wake`.
        while !self.is_decided.load(Ordering::Acquire) {
            if let Err(late) = limit.park() {
                return late.into();
            }
        }
        Refusal::Closed
    }
}
