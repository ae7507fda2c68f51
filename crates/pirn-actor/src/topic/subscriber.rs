//! One subscriber of a topic: how messages reach it, and how that ends.
//!
//! Each delivery passes a gate, so a subscription ends at an exact moment:
//!
//! ```text
//!   delivery:    enter ------ deliver ------ leave
//!   end:                 close, then wait until all deliveries have left, except this thread's
//! ```
//!
//! After the end the program may free what its subscriber uses. No lock is held during a delivery,
//! so a subscriber may end its own subscription while it is being called.

use super::Shared;
use crate::actor::{Address, Builder, Target, Tell};
use crate::edges::{Over, To, Waits};
use crate::error::Refusal;
use crate::poison::{locked, wait_while};
use crate::time::Limit;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use pirn::thread::{self, ThreadId};
use std::sync::{Arc, Condvar, Mutex, Weak};

/// Delivers a message. Returns false if the message is missed.
pub(super) type Deliver<T> = Box<dyn Fn(T) -> bool + Send>;

/// The result of a delivery to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    Told,
    /// There was no room.
    Missed,
    /// The subscriber has ended, or its subscription has.
    Over,
}

pub(super) struct Subscriber<T: 'static> {
    topic: Weak<Shared<T>>,
    gate: Arc<Gate>,
    /// The receiver, unless that is a function.
    target: Option<Target<T>>,
    /// The actor of its own that delivers to it. Without one, the publisher sends to the receiver.
    actor: Option<Address<T>>,
}

impl<T: Send + 'static> Subscriber<T> {
    pub(super) fn new(
        topic: &Arc<Shared<T>>,
        target: Option<Target<T>>,
        deliver: Option<Deliver<T>>,
    ) -> Subscriber<T> {
        let gate = Arc::new(Gate::default());
        Subscriber {
            topic: Arc::downgrade(topic),
            target,
            actor: deliver.map(|deliver| actor(&gate, deliver)),
            gate,
        }
    }

    /// Returns true if the receiver is known to have ended.
    fn has_ended(&self) -> bool {
        let target = self.target.as_ref();
        target.is_some_and(|target| target.sends().has_ended())
    }

    /// Delivers a message, and waits for room for as long as `patience`.
    pub(super) fn deliver(&self, message: T, patience: Duration) -> Delivered {
        // A subscriber with an actor of its own passes the gate on that actor's thread.
        let refusal = match (&self.actor, &self.target) {
            (Some(_), _) if self.has_ended() => Some(Refusal::Closed),
            (Some(actor), _) => actor.try_send(message).err().map(|e| e.refusal().clone()),
            (None, Some(target)) => {
                let Some(_within) = self.gate.enter() else {
                    return Delivered::Over;
                };
                tell(target, message, patience)
            }
            (None, None) => unreachable!("a function has an actor"),
        };
        match refusal {
            None => Delivered::Told,
            Some(Refusal::Closed) => Delivered::Over,
            Some(_) => {
                self.gate.miss();
                Delivered::Missed
            }
        }
    }

    /// Closes the gate, and ends the subscriber's own actor.
    pub(super) fn close(&self) {
        self.gate.close();
        match (&self.actor, &self.target) {
            (None, _) => {}
            (Some(actor), None) => actor.stop(),
            // The actor may be waiting for room, for ever.
            (Some(actor), Some(_)) => actor.kill(),
        }
    }
}

impl<T: Send + 'static> Ends for Subscriber<T> {
    fn end(&self) {
        if let Some(topic) = self.topic.upgrade() {
            topic.remove(|other| core::ptr::eq(other, self));
        }
        self.close();
        let waits = match (&self.actor, &self.target) {
            (Some(actor), None) => {
                let caller = To::Actor(actor.identity().clone());
                Some(Waits::begin(&caller, Limit::NEVER, &Over::default()))
            }
            _ => None,
        };
        if !matches!(waits, Some(Err(_))) {
            self.gate.wait();
        }
    }

    fn missed(&self) -> u64 {
        self.gate.missed.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.gate.is_closed() || self.has_ended()
    }
}

/// Makes an actor that calls `deliver` within the gate.
fn actor<T: Send + 'static>(gate: &Arc<Gate>, deliver: Deliver<T>) -> Address<T> {
    let gate = Arc::clone(gate);
    Builder::new().name("subscriber").consumer(move |message| {
        let within = gate.enter();
        if within.is_some() && !deliver(message) {
            gate.miss();
        }
    })
}

/// Sends a message. Returns why, if the target does not take it.
fn tell<T>(target: &Target<T>, message: T, patience: Duration) -> Option<Refusal> {
    if patience.is_zero() {
        let error = target.try_send(message).err()?;
        return Some(error.refusal().clone());
    }
    let told = Limit::after(patience).hold_during(|| target.send(message));
    let error = told.err()?;
    if *error.refusal() == Refusal::Interrupted {
        // The interrupt was for the publisher, whose next wait fails by it.
        thread::current().interrupt();
    }
    Some(error.refusal().clone())
}

#[derive(Default)]
struct Gate {
    /// The number of messages that the subscriber has missed because it had no room.
    missed: AtomicU64,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// The threads that deliver. A thread that publishes in a delivery is here twice.
    within: Vec<ThreadId>,
}

/// A delivery that is under way while this exists.
struct Within<'a>(&'a Gate);

fn this_thread() -> ThreadId {
    thread::current().id()
}

impl Gate {
    fn miss(&self) {
        // Relaxed: a number for the program's logs.
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins a delivery, unless the gate is closed.
    fn enter(&self) -> Option<Within<'_>> {
        let mut state = locked(&self.state);
        if state.is_closed {
            return None;
        }
        state.within.push(this_thread());
        Some(Within(self))
    }

    /// Closes the gate for further deliveries.
    fn close(&self) {
        locked(&self.state).is_closed = true;
    }

    fn is_closed(&self) -> bool {
        locked(&self.state).is_closed
    }

    /// Waits until all deliveries have left, except those on this thread.
    fn wait(&self) {
        let this = this_thread();
        let others = |state: &mut State| state.within.iter().any(|thread| *thread != this);
        drop(wait_while(&self.left, locked(&self.state), others));
    }
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        let this = this_thread();
        let mut state = locked(&self.0.state);
        let at = state.within.iter().rposition(|thread| *thread == this);
        state.within.remove(at.expect("it has entered"));
        let is_closed = state.is_closed;
        drop(state);
        if is_closed {
            self.0.left.notify_all();
        }
    }
}

/// A subscription to a topic. It lasts while this exists.
///
/// When it has been dropped, the subscriber gets no further message: the drop waits for a delivery
/// that is under way, unless it happens in that delivery. Messages that are in the subscriber's
/// mailbox stay there.
///
/// # Examples
/// ```
/// use pirn_actor::topic::Topic;
///
/// let prices = Topic::new();
/// let subscription = prices.subscribe_with(|price: u32| println!("{price}"));
/// assert_eq!(prices.publish(5), 1);
/// drop(subscription);
/// assert_eq!(prices.publish(6), 0);
/// ```
#[must_use = "a subscription that is dropped ends; `detach` keeps it"]
pub struct Subscription(Option<Arc<dyn Ends>>);

impl Subscription {
    pub(super) fn new(subscriber: Arc<dyn Ends>) -> Subscription {
        Subscription(Some(subscriber))
    }

    /// Lets the subscription last until the subscriber or the topic ends.
    pub fn detach(mut self) {
        self.0 = None;
    }

    /// Returns the number of messages that the subscriber has missed because it had no room.
    pub fn missed(&self) -> u64 {
        self.ends().missed()
    }

    /// Returns true if the subscriber has ended.
    pub fn is_over(&self) -> bool {
        self.ends().is_over()
    }

    fn ends(&self) -> &dyn Ends {
        &**self.0.as_ref().expect("it is given up with this")
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(subscribed) = self.0.take() {
            subscribed.end();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}

/// A subscription, whatever the type of the messages.
pub(super) trait Ends: Send + Sync {
    /// Ends the subscription, and waits until no delivery is under way. Does not wait for a
    /// delivery that waits for this thread's actor.
    fn end(&self);
    fn missed(&self) -> u64;
    fn is_over(&self) -> bool;
}
