//! Handlers of messages.

use super::context::Context;

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
