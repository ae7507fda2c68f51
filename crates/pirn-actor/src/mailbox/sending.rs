//! The side of the mailbox of those who send: items that find room, or do not.
//!
//! Senders that wait for room are in `waiting.rs`.

use super::word::URGENT;
use super::{Mailbox, Overflow, Phase, Shared, Then, Work};
use crate::error::Refusal;
use std::sync::MutexGuard;

impl<T> Mailbox<T> {
    /// Puts an item, unless there is no room or the mailbox is closed. The item that overflow has
    /// displaced, if any, is in the second place: the caller drops it outside of the lock.
    /// `displace` is called with it under the lock, before the runner can see the new one: it tells
    /// of this those who would otherwise be found waiting for what is not there any more.
    #[inline]
    pub(crate) fn try_push(
        &self,
        item: T,
        displace: impl FnOnce(&mut T),
    ) -> Result<(Then, Option<T>), (Refusal, T)> {
        let mut shared = self.lock();
        if shared.phase == Phase::Open && !self.is_full(&shared) {
            shared.enqueue(item);
            shared.sent += 1;
            return Ok((shared.started(), None));
        }
        self.push_anyway(shared, item, displace)
    }

    /// Puts an item for which there is no room, or does not.
    #[cold]
    fn push_anyway(
        &self,
        mut shared: MutexGuard<'_, Shared<T>>,
        item: T,
        displace: impl FnOnce(&mut T),
    ) -> Result<(Then, Option<T>), (Refusal, T)> {
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, item));
        }
        match self.overflow {
            Overflow::Wait | Overflow::Fail => Err((Refusal::Full, item)),
            Overflow::DropNew => Ok((Then::Nothing, Some(item))),
            Overflow::DropOld => {
                let mut oldest = shared.queue.pop_front();
                oldest.as_mut().map(displace);
                shared.queue.push_back(item);
                shared.sent += u64::from(oldest.is_none());
                Ok((shared.started(), oldest))
            }
            // It has failed already: it is not ended because it cannot work just now.
            Overflow::Stop if shared.work == Work::Held => Err((Refusal::Full, item)),
            Overflow::Stop => {
                let then = self.end_in(&mut shared, Phase::Overflowing);
                debug_assert_eq!(then, Then::Nothing, "a full mailbox has a runner");
                Err((Refusal::Closed, item))
            }
        }
    }

    /// Puts several items with nothing between them, or none. There is room for all of them if
    /// there is for one.
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

    /// Puts an item before all others that have not been begun. Capacity is no limit to it.
    pub(crate) fn push_urgent(&self, item: T) -> Result<Then, (Refusal, T)> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, item));
        }
        shared.extra().urgent.push_back(item);
        shared.sent += 1;
        self.word.set(URGENT);
        Ok(shared.started())
    }

    /// Puts an item after all others. Capacity is no limit to it.
    pub(crate) fn push_beyond(&self, item: T) -> Result<Then, (Refusal, T)> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, item));
        }
        shared.queue.push_back(item);
        shared.sent += 1;
        Ok(shared.started())
    }

    /// Returns true if a sender has to wait: by the count, or because others wait already.
    pub(super) fn is_full(&self, shared: &Shared<T>) -> bool {
        self.room(shared, self.begun()) == 0 || shared.line().is_some_and(|line| !line.is_empty())
    }

    /// Returns the number of items for which there is room, if so many have been begun.
    pub(super) fn room(&self, shared: &Shared<T>, begun: u64) -> usize {
        let waiting = shared.sent.saturating_sub(begun) as usize;
        self.capacity.saturating_sub(waiting)
    }

    /// Closes the mailbox, and puts a last item behind all others. Capacity is no limit to it.
    pub(crate) fn close_with(&self, item: T) -> Result<Then, T> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err(item);
        }
        shared.queue.push_back(item);
        shared.sent += 1;
        shared.phase = Phase::Closing;
        shared.wake_line();
        Ok(shared.started())
    }
}
