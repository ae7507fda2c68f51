//! An actor without a thread: senders run its logic themselves, one at a time.
//!
//! While a sender runs the logic, two edges say so: what the sender works for waits for this actor,
//! and its thread works for this actor. So circles through it are found like those through actors
//! with threads, and so is the shortest one: logic that sends to its own actor.

use super::job::Job;
use super::{Door, Entered, Over as End, Way};
use crate::actor::{Address, Builder, Ending, Mortal, Passed, Patience, Receive};
use crate::edges::{Over, To, Waits};
use crate::error::{Refusal, SendError, discard};
use crate::identity::{Identity, current_limit, while_working_for};
use crate::mailbox::Phase;
use crate::poison::locked;
use crate::reply::{self, Reply};
use crate::snapshot;
use crate::time::Limit;
use std::sync::{Arc, Mutex};

/// Makes an actor without a thread: each sender runs `f` itself, one at a time, in order of
/// arrival. A send returns when its message has been handled.
///
/// This is a lock with the look of an actor: for logic that is too short for a thread of its own,
/// and for tests. A panic ends the actor. Its sender does not panic; an asker gets
/// [`AskError::Failed`](crate::AskError).
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let mut sum = 0;
/// let add = actor::inline(move |n: u32| {
///     sum += n;
///     sum
/// });
/// add.send(1).unwrap(); // it is added now
/// assert_eq!(add.ask(2), Ok(3));
/// ```
///
/// Logic that sends to its own actor would wait for itself:
/// ```
/// use pirn_actor::{self as actor, Address, Refusal};
/// use std::sync::{Arc, OnceLock};
///
/// let this = Arc::new(OnceLock::<Address<u32>>::new());
/// let own = Arc::clone(&this);
/// let again = actor::inline(move |n: u32| {
///     let error = own.get().unwrap().send(n - 1).unwrap_err();
///     assert!(matches!(error.refusal(), Refusal::Deadlock(_)));
/// });
/// this.set(again.clone()).unwrap();
/// again.send(7).unwrap();
/// # assert_eq!(again.exit(), None);
/// # again.stop();
/// ```
pub fn inline<M, R, F>(f: F) -> Address<M, R>
where
    M: Send + 'static,
    R: Send + 'static,
    F: FnMut(M) -> R + Send + 'static,
{
    Builder::new().inline(f)
}

impl Builder {
    /// Makes an actor without a thread: each sender runs `f` itself. See [`inline`](inline()).
    ///
    /// The actor is full while a thread runs `f`: then others wait, or do what the builder's
    /// overflow says, for which both [`DropOld`](crate::Overflow::DropOld) and
    /// [`DropNew`](crate::Overflow::DropNew) drop the new message. Urgent messages come before
    /// others that wait. Capacity, threads and restarts have no meaning here.
    pub fn inline<M, R, F>(&self, f: F) -> Address<M, R>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnMut(M) -> R + Send + 'static,
    {
        let (identity, (_, overflow), _) = self.plan();
        let inline = Arc::new(Inline {
            door: Door::new((identity, (1, overflow))),
            f: Mutex::new(Some(f)),
        });
        let seen: Arc<dyn snapshot::Seen> = Arc::clone(&inline) as Arc<_>;
        snapshot::enter(&inline.door.identity, Arc::downgrade(&seen));
        Address::new(inline)
    }
}

struct Inline<F> {
    door: Door,
    /// Taken out by who is inside, and for good when the actor ends.
    f: Mutex<Option<F>>,
}

impl<F> Inline<F> {
    /// Has the running thread handle a message.
    fn put<M, R>(&self, job: Job<M, R>, way: Way, limit: Limit) -> Result<(), SendError<M>>
    where
        F: FnMut(M) -> R,
    {
        let identity = &self.door.identity;
        let waits = match Waits::begin(&To::Actor(identity.clone()), limit, &Over::default()) {
            Ok(waits) => waits,
            Err(cycle) => return Err(job.refused(Refusal::Deadlock(cycle), identity)),
        };
        let (entered, over) = self.door.enter(way);
        self.publish(over);
        match entered {
            Ok(Entered::Inside) => {
                while_working_for(identity, || self.run(job, waits));
                Ok(())
            }
            Ok(Entered::Dropped) => Ok(()),
            Err(refusal) => Err(job.refused(refusal, identity)),
        }
    }

    /// `waits` is for the actor, and so is over before the next sender comes in.
    fn run<M, R>(&self, job: Job<M, R>, waits: Waits)
    where
        F: FnMut(M) -> R,
    {
        let number = self.door.begin();
        let f = locked(&self.f).take();
        let mut f = f.expect("one message at a time is inside, and the actor has not ended");
        let failure = match job.run(&mut f) {
            Ok(()) => {
                *locked(&self.f) = Some(f);
                None
            }
            Err(failure) => {
                discard(f);
                Some(failure)
            }
        };
        drop(waits);
        let over = self.door.leave(number, failure);
        self.publish(over);
    }

    fn publish(&self, over: End) {
        if let Some(exit) = over {
            let f = locked(&self.f).take();
            discard(f);
            self.door.publish(&exit);
        }
    }
}

impl<F: Send> Mortal for Inline<F> {
    fn ending(&self) -> &Ending {
        &self.door.ending
    }
}

impl<M, R, F> Receive<M, R> for Inline<F>
where
    M: Send + 'static,
    R: Send + 'static,
    F: FnMut(M) -> R + Send + 'static,
{
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        let limit = match patience {
            Patience::Until(limit) => limit,
            Patience::None | Patience::Urgent => current_limit(),
        };
        self.put(Job::told(message), Way::Usual(patience), limit)
    }
    fn tell_first(&self, message: M) -> Result<(), SendError<M>> {
        let limit = current_limit();
        self.put(Job::told(message), Way::First(limit), limit)
    }
    fn request(
        &self,
        message: M,
        limit: Limit,
        patience: Patience,
    ) -> Result<Reply<R>, SendError<M>> {
        let (to, reply) = reply::pair_without_edge();
        let job = Job::asked(message, to, limit);
        self.put(job, Way::Usual(patience), limit)?;
        Ok(reply)
    }
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>> {
        let limit = current_limit();
        let (way, limit) = match patience {
            Patience::Urgent => (Way::First(limit), limit),
            Patience::Until(until) => (Way::Usual(patience), until),
            Patience::None => (Way::Usual(patience), limit),
        };
        self.put(Job::passed(passed), way, limit)
    }
    fn retain(&self) {
        self.door.retain();
    }
    fn release(&self) {
        if self.door.release() {
            self.publish(self.door.end(Phase::Closing));
        }
    }
    fn end(&self, phase: Phase) {
        self.publish(self.door.end(phase));
    }
    fn identity(&self) -> &Identity {
        &self.door.identity
    }
    fn len(&self) -> usize {
        0
    }
}

impl<F: Send> snapshot::Seen for Inline<F> {
    fn identity(&self) -> &Identity {
        &self.door.identity
    }

    fn kind(&self) -> &'static str {
        "inline"
    }

    fn load(&self) -> snapshot::Load {
        self.door.load()
    }
}
