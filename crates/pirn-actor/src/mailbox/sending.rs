//! The senders' side of the mailbox: an item finds room, waits for it, or is refused.

use super::word::{ROOM, URGENT};
use super::{Admission, Line, Mailbox, Patience, Phase, Shared, Then, Work};
use crate::edges::To;
use crate::error::Refusal;
use crate::identity::Identity;
use crate::time::Limit;
use std::sync::MutexGuard;

/// An item was put, with the item that overflow has displaced for it, which the caller drops after
/// it has released the lock; or the item was refused.
pub(crate) type Pushed<T> = Result<(Then, Option<T>), (Refusal, T)>;

impl<T> Mailbox<T> {
    /// Puts an item into the mailbox of the actor `at`. Calls `displace` with an item that overflow
    /// displaces, under the lock, before the runner can see the new item: the displaced item's
    /// asker must not have an edge to a request that is no longer there.
    #[inline]
    pub(crate) fn push(
        &self,
        item: T,
        patience: Patience,
        at: &Identity,
        displace: impl FnOnce(&mut T),
    ) -> Pushed<T> {
        let mut shared = self.lock();
        let is_usual = matches!(patience, Patience::None | Patience::Until(_));
        if is_usual && shared.phase == Phase::Open && !self.is_full(&shared) {
            shared.enqueue(item);
            shared.sent += 1;
            return Ok((shared.started(), None));
        }
        self.push_anyway(shared, item, patience, at, displace)
    }

    /// Puts an item that is urgent, or that finds no room.
    #[cold]
    fn push_anyway(
        &self,
        mut shared: MutexGuard<'_, Shared<T>>,
        item: T,
        patience: Patience,
        at: &Identity,
        displace: impl FnOnce(&mut T),
    ) -> Pushed<T> {
        match self.overflow.admit(shared.phase, true, patience) {
            Admission::In => {
                if patience == Patience::Urgent {
                    shared.extra().urgent.push_back(item);
                    self.word.set(URGENT);
                } else {
                    shared.queue.push_back(item);
                }
                shared.sent += 1;
                Ok((shared.started(), None))
            }
            Admission::Wait(limit) => {
                drop(shared);
                self.wait_for_room(item, limit, at)
            }
            Admission::Refuse(refusal) => Err((refusal, item)),
            Admission::DropNew => Ok((Then::Nothing, Some(item))),
            Admission::DropOld => {
                let mut oldest = shared.queue.pop_front();
                oldest.as_mut().map(displace);
                shared.queue.push_back(item);
                shared.sent += u64::from(oldest.is_none());
                Ok((shared.started(), oldest))
            }
            // The actor has failed already: it does not end because it cannot work now.
            Admission::Stop if shared.work == Work::Held => Err((Refusal::Full, item)),
            Admission::Stop => {
                let then = self.end_in(&mut shared, Phase::Overflowing);
                debug_assert_eq!(then, Then::Nothing, "a full mailbox has a runner");
                Err((Refusal::Closed, item))
            }
        }
    }

    /// Puts several items with none between them, or none of them. There is room for all of them if
    /// there is room for one.
    pub(crate) fn try_push_all(&self, items: Vec<T>) -> Result<Then, (Refusal, Vec<T>)> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, items));
        }
        if self.is_full(&shared) {
            return Err((Refusal::Full, items));
        }
        shared.sent += items.len() as u64;
        shared.queue.extend(items);
        Ok(if shared.queue.is_empty() {
            Then::Nothing
        } else {
            shared.started()
        })
    }

    /// Returns true if a sender has to wait: because of the count, or because others wait already.
    pub(super) fn is_full(&self, shared: &Shared<T>) -> bool {
        self.room(shared, self.begun()) == 0 || shared.line().is_some_and(|line| !line.is_empty())
    }

    /// Returns the number of items for which there is room if `begun` items have been begun.
    pub(super) fn room(&self, shared: &Shared<T>, begun: u64) -> usize {
        let waiting = shared.sent.saturating_sub(begun) as usize;
        self.capacity.saturating_sub(waiting)
    }

    fn wait_for_room(&self, item: T, limit: Limit, at: &Identity) -> Pushed<T> {
        let (ticket, then) = {
            let mut shared = self.lock();
            if shared.phase != Phase::Open {
                return Err((Refusal::Closed, item));
            }
            let ticket = shared.extra().line.enter(item);
            let begun = self.word.ask_for_room();
            self.admit(&mut shared, begun);
            // The runner may have begun all items since the check for room, and left.
            let then = match shared.queue.is_empty() {
                true => Then::Nothing,
                false => shared.started(),
            };
            (ticket, then)
        };
        if then == Then::Start {
            // No sender waited when the runner left, so the item in the queue is this sender's.
            return Ok((then, None));
        }
        let refusal = ticket.wait_for(&To::Actor(at.clone()), limit);
        match self.lock().extra().line.leave(&ticket) {
            None => Ok((Then::Nothing, None)),
            Some(item) => Err((refusal, item)),
        }
    }

    /// Lets senders in for which there is room. Called by the runner before it waits, perhaps for
    /// one of them.
    pub(crate) fn let_in(&self) {
        // Checked without the lock: a sender that comes later finds the room by itself, since the
        // runner begins no item meanwhile.
        if self.word.flags() & ROOM != 0 {
            let mut shared = self.lock();
            self.admit(&mut shared, self.begun());
        }
    }

    /// Moves the items of waiting senders into the queue, as many as there is room for if `begun`
    /// items have been begun. The caller makes sure that a runner takes them: it is the runner, or
    /// starts one for an idle mailbox.
    pub(super) fn admit(&self, shared: &mut Shared<T>, begun: u64) {
        let mut room = self.room(shared, begun);
        while room > 0 && shared.phase == Phase::Open {
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
    use super::super::{Batch, Next, Overflow};
    use super::*;

    #[test]
    fn a_sender_whose_runner_has_left_starts_another_one() {
        let mailbox = Mailbox::new(1, Overflow::Wait);
        let at = Identity::new(None);
        let push = |item| mailbox.push(item, Patience::None, &at, |_| ());
        assert!(matches!(push(1), Ok((Then::Start, None))));
        assert!(matches!(push(2), Err((Refusal::Full, 2))));
        let mut batch = Batch::new();
        while let Next::Item(_) = mailbox.next(&mut batch) {}
        let pushed = mailbox.wait_for_room(2, Limit::NEVER, &at);
        assert!(matches!(pushed, Ok((Then::Start, None))));
        assert_eq!(mailbox.load().waiting, 1);
    }
}
