//! One subscriber of a topic: how a message gets to it, and how that ends.

use super::gate::Gate;
use crate::actor::{Address, Builder, Mode, Target};
use crate::edges::{Over, To, Waits};
use crate::error::Refusal;
use crate::time::Limit;
use core::sync::atomic::Ordering;
use core::time::Duration;
use pirn::thread::{self, Panic};
use std::sync::Arc;

pub(super) type Call<T> = Box<dyn Fn(T) + Send + Sync>;

/// Whether one subscriber has got a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    Told,
    /// There was no room.
    Missed,
    /// The subscriber has ended, or its subscription has.
    Over,
}

pub(super) struct Subscriber<T: 'static> {
    gate: Arc<Gate>,
    by: By<T>,
}

enum By<T: 'static> {
    /// It is sent to by the publisher.
    Mailbox(Target<T>),
    /// It is called by the publisher.
    Call(Call<T>),
    /// It is called by an actor of its own.
    Caller(Address<T>),
    /// It is sent to by an actor of its own, which may wait for room.
    Relay(Address<T>, Target<T>),
}

impl<T: Send + 'static> Subscriber<T> {
    fn new(gate: Arc<Gate>, by: By<T>) -> Subscriber<T> {
        Subscriber { gate, by }
    }

    pub(super) fn mailbox(target: Target<T>) -> Subscriber<T> {
        Subscriber::new(Arc::new(Gate::new()), By::Mailbox(target))
    }

    pub(super) fn inline(f: Call<T>) -> Subscriber<T> {
        Subscriber::new(Arc::new(Gate::new()), By::Call(f))
    }

    pub(super) fn caller(f: Call<T>) -> Subscriber<T> {
        let gate = Arc::new(Gate::new());
        let passed = Arc::clone(&gate);
        let actor = Builder::new().name("subscriber").consumer(move |message| {
            if let Some(_within) = passed.enter() {
                call(&f, message);
            }
        });
        Subscriber::new(gate, By::Caller(actor))
    }

    pub(super) fn relay(target: Target<T>) -> Subscriber<T> {
        let gate = Arc::new(Gate::new());
        let (passed, to) = (Arc::clone(&gate), target.clone());
        let actor = Builder::new().name("subscriber").consumer(move |message| {
            let within = passed.enter();
            if within.is_some() && to.tell(message, Mode::Wait).is_err() {
                // Relaxed: a number for people.
                passed.missed.fetch_add(1, Ordering::Relaxed);
            }
        });
        Subscriber::new(gate, By::Relay(actor, target))
    }

    /// Gets a message to the subscriber, and waits for room as long as `patience`.
    pub(super) fn deliver(&self, message: T, patience: Duration) -> Delivered {
        // Those who have an actor of their own pass the gate there.
        let refusal = match &self.by {
            By::Mailbox(target) => {
                let Some(_within) = self.gate.enter() else {
                    return Delivered::Over;
                };
                tell(target, message, patience)
            }
            By::Call(f) => {
                let Some(_within) = self.gate.enter() else {
                    return Delivered::Over;
                };
                call(f, message);
                None
            }
            By::Relay(_, target) if target.has_ended() => Some(Refusal::Closed),
            By::Caller(actor) | By::Relay(actor, _) => {
                actor.try_send(message).err().map(|e| e.refusal().clone())
            }
        };
        match refusal {
            None => Delivered::Told,
            Some(Refusal::Closed) => Delivered::Over,
            Some(_) => {
                // Relaxed: a number for people.
                self.gate.missed.fetch_add(1, Ordering::Relaxed);
                Delivered::Missed
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.gate.is_closed()
            || match &self.by {
                By::Mailbox(target) | By::Relay(_, target) => target.has_ended(),
                By::Call(_) | By::Caller(_) => false,
            }
    }

    pub(super) fn missed(&self) -> u64 {
        self.gate.missed.load(Ordering::Relaxed)
    }

    /// Lets no further message through, and ends what was there for this subscriber.
    pub(super) fn close(&self) {
        self.gate.close();
        match &self.by {
            By::Mailbox(_) | By::Call(_) => {}
            By::Caller(actor) => actor.stop(),
            // It may wait for room, for ever.
            By::Relay(actor, _) => actor.kill(),
        }
    }

    /// Does the same, and waits until nobody is telling the subscriber anything. Does not wait for
    /// one that waits for this thread's actor.
    pub(super) fn end(&self) {
        self.close();
        let waits = match &self.by {
            By::Caller(actor) => {
                let caller = To::Actor(actor.identity().clone());
                Some(Waits::begin(&caller, Limit::NEVER, &Over::default()))
            }
            _ => None,
        };
        if !matches!(waits, Some(Err(_))) {
            self.gate.wait();
        }
    }
}

/// Sends, and returns why not, if not.
fn tell<T>(target: &Target<T>, message: T, patience: Duration) -> Option<Refusal> {
    if patience.is_zero() {
        let error = target.tell(message, Mode::Try).err()?;
        return Some(error.refusal().clone());
    }
    let told = Limit::after(patience).hold_during(|| target.tell(message, Mode::Wait));
    let error = told.err()?;
    if *error.refusal() == Refusal::Interrupted {
        // It is the publisher's, who learns of it by its next wait.
        thread::current().interrupt();
    }
    Some(error.refusal().clone())
}

/// Calls the program's function. Its panic has been reported by the hook, and concerns neither the
/// publisher nor others.
fn call<T>(f: &Call<T>, message: T) {
    let _ = Panic::catch(|| f(message));
}
