//! Requests of this node that have no answer yet.
//!
//! Each has a number, which is the last token of the subject that its answer goes to. Those whose
//! time is up, and those whose asker has left, are taken out now and then: so every ask ends, and
//! the table is no larger than what is asked within that time.

use crate::packet::Packet;
use crate::poison::locked;
use crate::wire::decode;
use bytes::Bytes;
use pirn_actor::AskError;
use pirn_actor::reply::ReplyTo;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

/// A thread that waits for an answer.
pub(crate) trait Asker: Send {
    fn give(self: Box<Self>, answer: Result<Bytes, AskError>);
    fn is_wanted(&self) -> bool;
}

impl<R: DeserializeOwned + Send> Asker for ReplyTo<R> {
    fn give(self: Box<Self>, answer: Result<Bytes, AskError>) {
        let read = |body: Bytes| decode(&body).map_err(AskError::Failed);
        ReplyTo::give(*self, answer.and_then(read));
    }

    fn is_wanted(&self) -> bool {
        ReplyTo::is_wanted(self)
    }
}

struct Waiting {
    until: Instant,
    asker: Box<dyn Asker>,
}

#[derive(Default)]
pub(crate) struct Pending(Mutex<Table>);

#[derive(Default)]
struct Table {
    made: u64,
    waiting: HashMap<u64, Waiting>,
    is_closed: bool,
}

impl Pending {
    /// Enters an asker. Returns the request's number; nothing if the node is closed.
    pub(crate) fn enter(&self, asker: Box<dyn Asker>, until: Instant) -> Option<u64> {
        let mut table = locked(&self.0);
        if table.is_closed {
            return None;
        }
        table.made += 1;
        let number = table.made;
        table.waiting.insert(number, Waiting { until, asker });
        Some(number)
    }

    /// Takes a request out that was not sent.
    pub(crate) fn withdraw(&self, number: u64) {
        let withdrawn = locked(&self.0).waiting.remove(&number);
        drop(withdrawn);
    }

    /// Gives an answer to whom it is for. One that comes too late is dropped.
    pub(crate) fn answer(&self, packet: Packet) {
        let number = packet
            .subject
            .rsplit('.')
            .next()
            .and_then(|n| n.parse().ok());
        let waiting = number.and_then(|number: u64| locked(&self.0).waiting.remove(&number));
        if let Some(waiting) = waiting {
            waiting.asker.give(packet.into_answer());
        }
    }

    /// Ends the requests whose time is up.
    pub(crate) fn expire(&self, now: Instant) {
        let is_over = |waiting: &Waiting| waiting.until <= now || !waiting.asker.is_wanted();
        let mut table = locked(&self.0);
        let over: Vec<_> = table
            .waiting
            .extract_if(|_, waiting| is_over(waiting))
            .collect();
        drop(table);
        for (_, waiting) in over {
            waiting.asker.give(Err(AskError::TimedOut));
        }
    }

    /// Ends all requests, and takes no more.
    pub(crate) fn close(&self) {
        let mut table = locked(&self.0);
        table.is_closed = true;
        let over = core::mem::take(&mut table.waiting);
        drop(table);
        for waiting in over.into_values() {
            waiting.asker.give(Err(AskError::Gone));
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        locked(&self.0).waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn answer(number: u64, body: &'static str) -> Packet {
        Packet {
            subject: format!("_INBOX.x.{number}"),
            body: body.into(),
            ..Packet::default()
        }
    }

    #[test]
    fn answers_find_their_askers_and_late_ones_nobody() {
        let pending = Pending::default();
        let later = Instant::now() + Duration::from_secs(60);
        let (to, first) = pirn_actor::reply::channel::<u32>();
        let first_number = pending.enter(Box::new(to), later).unwrap();
        let (to, second) = pirn_actor::reply::channel::<u32>();
        let second_number = pending.enter(Box::new(to), later).unwrap();
        pending.answer(answer(second_number, "2"));
        pending.answer(answer(first_number, "1"));
        pending.answer(answer(first_number, "3"));
        pending.answer(answer(99, "4"));
        assert_eq!((first.recv(), second.recv()), (Ok(1), Ok(2)));
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn every_ask_ends() {
        let pending = Pending::default();
        let now = Instant::now();
        let (to, late) = pirn_actor::reply::channel::<u32>();
        pending.enter(Box::new(to), now);
        let (to, left) = pirn_actor::reply::channel::<u32>();
        pending.enter(Box::new(to), now + Duration::from_secs(60));
        drop(left);
        let (to, waits) = pirn_actor::reply::channel::<u32>();
        pending.enter(Box::new(to), now + Duration::from_secs(60));
        pending.expire(now);
        assert_eq!(late.recv(), Err(AskError::TimedOut));
        assert_eq!(pending.len(), 1);
        pending.close();
        assert_eq!(waits.recv(), Err(AskError::Gone));
        let (to, _) = pirn_actor::reply::channel::<u32>();
        assert_eq!(pending.enter(Box::new(to), now), None);
    }
}
