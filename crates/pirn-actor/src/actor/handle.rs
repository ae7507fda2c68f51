//! What an actor does with a message.

use super::context::Context;
use crate::envelope::Parcel;
use crate::error::{AskError, Failure, short_name};
use crate::identity::while_handling;
use crate::reply::ReplyTo;
use crate::time::Limit;
use crate::time::timers::Handled;
use pirn::thread::Panic;

/// A state that handles messages of the type `M`. A state may handle several types.
///
/// The handler may block: it reads sockets, takes locks, sleeps, asks other actors. Only the
/// messages of its own mailbox wait meanwhile.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Context, Handle};
///
/// struct Account {
///     balance: i64,
/// }
/// struct Deposit(i64);
/// struct Balance;
///
/// impl Handle<Deposit> for Account {
///     type Reply = i64;
///     fn handle(&mut self, Deposit(amount): Deposit, _: &Context<Self>) -> i64 {
///         self.balance += amount;
///         self.balance
///     }
/// }
/// impl Handle<Balance> for Account {
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
pub trait Handle<M>: Sized {
    /// What an asker gets. For `send` it is dropped.
    type Reply: Send;

    /// Handles a message. A panic is a failure of the actor; an asker gets
    /// [`AskError::Failed`].
    fn handle(&mut self, message: M, context: &Context<Self>) -> Self::Reply;
}

/// A message without an asker.
pub(crate) struct Told<M>(pub(crate) M);

impl<S, M> Parcel<S, Context<S>> for Told<M>
where
    S: Handle<M>,
    M: Send,
{
    fn deliver(self, state: &mut S, context: &Context<S>) {
        drop(while_handling::<M, _>(|| state.handle(self.0, context)));
    }

    fn name() -> &'static str {
        short_name::<M>()
    }
}

/// A message without an asker, whose sender learns when it has been handled.
pub(crate) struct Tracked<M> {
    pub(crate) message: M,
    pub(crate) handled: Handled,
}

impl<S, M> Parcel<S, Context<S>> for Tracked<M>
where
    S: Handle<M>,
    M: Send,
{
    fn deliver(self, state: &mut S, context: &Context<S>) {
        let Tracked { message, handled } = self;
        drop(while_handling::<M, _>(|| state.handle(message, context)));
        drop(handled); // or by a panic
    }
}

/// A message with an asker.
pub(crate) struct Asked<M, R> {
    pub(crate) message: M,
    pub(crate) reply: ReplyTo<R>,
    /// The time until which the asker waits.
    pub(crate) limit: Limit,
}

impl<S, M, R> Parcel<S, Context<S>> for Asked<M, R>
where
    S: Handle<M, Reply = R>,
    M: Send,
    R: Send,
{
    fn deliver(self, state: &mut S, context: &Context<S>) {
        let Asked {
            message,
            reply,
            limit,
        } = self;
        let handle = || while_handling::<M, _>(|| state.handle(message, context));
        answer(reply, || limit.hold_during(handle));
    }

    fn name() -> &'static str {
        short_name::<M>()
    }

    fn is_wanted(&self) -> bool {
        self.reply.is_wanted() && !self.limit.is_past()
    }

    fn displace(&mut self) {
        self.reply.displace();
    }
}

/// Answers with what `f` returns. If that panics, the asker learns of it before the actor does.
pub(crate) fn answer<R>(reply: ReplyTo<R>, f: impl FnOnce() -> R) {
    match Panic::catch(f) {
        // The state is whole: a panic here is one of the asker's waker, or of the drop of an answer
        // whose asker has given up.
        Ok(value) => drop(Panic::catch(|| reply.send(value))),
        Err(panic) => {
            reply.give(Err(AskError::Failed(Failure::from(&panic))));
            panic.resume();
        }
    }
}

/// Code in place of a message.
pub(crate) struct Code<F>(pub(crate) F);

impl<S, F> Parcel<S, Context<S>> for Code<F>
where
    F: FnOnce(&mut S) + Send,
{
    fn deliver(self, state: &mut S, _: &Context<S>) {
        (self.0)(state);
    }

    fn name() -> &'static str {
        "code"
    }
}

/// Code whose result a thread waits for.
pub(crate) struct Query<F, R> {
    pub(crate) code: F,
    pub(crate) reply: ReplyTo<R>,
    pub(crate) limit: Limit,
}

impl<S, F, R> Parcel<S, Context<S>> for Query<F, R>
where
    F: FnOnce(&mut S) -> R + Send,
    R: Send,
{
    fn deliver(self, state: &mut S, _: &Context<S>) {
        let Query { code, reply, limit } = self;
        answer(reply, || limit.hold_during(|| code(state)));
    }

    fn name() -> &'static str {
        "code"
    }

    fn is_wanted(&self) -> bool {
        self.reply.is_wanted() && !self.limit.is_past()
    }

    fn displace(&mut self) {
        self.reply.displace();
    }
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

impl<F, M, R> Handle<M> for Function<F>
where
    F: FnMut(M) -> R,
    R: Send,
{
    type Reply = R;

    fn handle(&mut self, message: M, _: &Context<Self>) -> R {
        (self.0)(message)
    }
}
