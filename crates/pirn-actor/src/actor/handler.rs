//! Handlers of messages, and a handler's view of its own actor.

use super::cell::ActorCell;
use super::reference::Ref;
use crate::error::Exit;
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::Phase;
use core::fmt;
use core::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

/// A state that handles messages of the type `M`. A state may handle several types.
///
/// The handler may block: it reads sockets, takes locks, sleeps, asks other actors. Only the
/// messages of its own mailbox wait meanwhile.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Context, Handler};
///
/// struct Account {
///     balance: i64,
/// }
/// struct Deposit(i64);
/// struct Balance;
///
/// impl Handler<Deposit> for Account {
///     type Reply = i64;
///     fn handle(&mut self, Deposit(amount): Deposit, _: &Context<Self>) -> i64 {
///         self.balance += amount;
///         self.balance
///     }
/// }
/// impl Handler<Balance> for Account {
///     type Reply = i64;
///     fn handle(&mut self, Balance: Balance, _: &Context<Self>) -> i64 {
///         self.balance
///     }
/// }
///
/// let account = actor::spawn(Account { balance: 10 });
/// account.send(Deposit(5)).unwrap();
/// assert_eq!(account.ask(Balance).unwrap(), 15);
/// ```
pub trait Handler<M>: Sized {
    /// The answer to an asker. It is dropped if the message was sent with `send`.
    type Reply: Send;

    /// Handles a message. A panic is a failure of the actor; the asker gets
    /// [`AskError::Failed`](crate::AskError::Failed).
    fn handle(&mut self, message: M, context: &Context<Self>) -> Self::Reply;
}

/// The state of an actor that calls a closure for each message.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Function, Ref};
///
/// let square = actor::spawn(Function::new(|n: u64| n * n));
/// square.send_all([1, 2, 3]).unwrap();
/// assert_eq!(square.ask(7), Ok(49));
/// ```
pub struct Function<F>(F);

impl<F> Function<F> {
    /// Makes a state of a closure.
    pub fn new(f: F) -> Function<F> {
        Function(f)
    }
}

impl<F, M, R> Handler<M> for Function<F>
where
    F: FnMut(M) -> R,
    R: Send,
{
    type Reply = R;

    fn handle(&mut self, message: M, _: &Context<Self>) -> R {
        (self.0)(message)
    }
}

/// The actor that handles the message.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Context, Exit, Handler};
///
/// struct Countdown(u32);
/// impl Handler<()> for Countdown {
///     type Reply = ();
///     fn handle(&mut self, (): (), context: &Context<Self>) {
///         self.0 -= 1;
///         match self.0 {
///             0 => context.stop(),
///             _ => drop(context.this().send(())),
///         }
///     }
/// }
/// let countdown = actor::spawn(Countdown(3));
/// countdown.send(()).unwrap();
/// assert_eq!(countdown.join(), Exit::Stopped);
/// ```
pub struct Context<S>(Arc<ActorCell<S>>);

impl<S: Send> Context<S> {
    pub(super) fn new(cell: Arc<ActorCell<S>>) -> Context<S> {
        Context(cell)
    }

    pub(crate) fn cell(&self) -> &Arc<ActorCell<S>> {
        &self.0
    }

    /// Returns the actor's name.
    pub fn name(&self) -> Arc<str> {
        self.0.identity().name()
    }

    /// Ends the actor after this message.
    pub fn stop(&self) {
        self.0.end(Phase::Stopping);
    }

    /// Ends the actor after the messages that are in its mailbox.
    pub fn close(&self) {
        self.0.end(Phase::Closing);
    }

    /// Returns true if the actor will end after this message, or after the messages in its mailbox.
    /// A handler that takes long may check this.
    pub fn is_ending(&self) -> bool {
        self.0.mailbox.phase() > Phase::Open
    }

    /// Returns the time until which the asker of this message waits. Asks that the handler makes
    /// end then, too.
    pub fn deadline(&self) -> Option<Instant> {
        current_limit().instant()
    }
}

impl<S: Send + 'static> Context<S> {
    /// Returns a reference to this actor. While the actor itself keeps one, it is not closed when
    /// all others are dropped.
    pub fn this(&self) -> Ref<S> {
        Ref::new(Arc::clone(&self.0))
    }

    /// Sends this actor a message, made by `make`, when another actor of any kind ends: at once if
    /// it has ended already.
    ///
    /// The message comes before all others in the mailbox, and there is always room for it. The
    /// watch does not keep this actor open, and a closing actor gets no such message. A new state
    /// after a failure watches nothing, so
    /// [`Hooks::started`](crate::lifecycle::Hooks::started) is a good place for this call.
    /// `make` runs on the thread of the actor that ends.
    ///
    /// # Examples
    /// See [`Hooks`](crate::lifecycle::Hooks).
    pub fn watch<M>(
        &self,
        actor: &impl Deref<Target = dyn Actor>,
        make: impl FnOnce(Exit) -> M + Send + 'static,
    ) where
        S: Handler<M, Reply: 'static>,
        M: Send + 'static,
    {
        self.0.life.ending.watch_for(&self.0, &**actor, make);
    }
}

impl<S: Send> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(self.0.identity()).finish()
    }
}
