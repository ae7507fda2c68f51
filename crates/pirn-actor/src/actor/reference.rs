//! References to actors and pools that name the type of the state.

use super::address::{Address, Ask, Tell};
use super::cell::ActorCell;
use super::handler::Handler;
use super::sending::Put;
use super::weak::{Recipient, Target};
use crate::error::{AskError, Exit, Failure, SendError, discard};
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::Patience;
use crate::reply::Reply;
use crate::time::Limit;
use core::fmt;
use core::time::Duration;
use pirn::thread::Panic;
use std::sync::{Arc, Weak};

/// A reference to an actor with the state `S`. It sends all messages that `S` handles.
///
/// References are cheap to clone and usable from any thread. When the last one is dropped
/// ([`Address`]es count, too), the actor is closed: it handles the messages in its mailbox, and
/// ends.
///
/// The methods that end the actor, wait for its end and report it are in [`Actor`].
pub struct Ref<S: Send + 'static> {
    cell: Arc<ActorCell<S>>,
}

/// The traits that all references to actors share: a reference dereferences to its actor, is
/// counted until it is dropped, equals others to the same actor, and shows the actor's name. The
/// actor is in the field `cell`; other fields are cloned.
macro_rules! reference {
    ([$($of:tt)*] $Ref:ty { cell $(, $field:ident)* }, $name:literal, $Actor:ty) => {
        impl<$($of)*> Clone for $Ref {
            fn clone(&self) -> Self {
                self.cell.retain();
                Self {
                    cell: std::sync::Arc::clone(&self.cell),
                    $($field: Clone::clone(&self.$field),)*
                }
            }
        }

        impl<$($of)*> PartialEq for $Ref {
            fn eq(&self, other: &Self) -> bool {
                self.cell.identity() == other.cell.identity()
            }
        }

        impl<$($of)*> Eq for $Ref {}

        impl<$($of)*> core::ops::Deref for $Ref {
            type Target = $Actor;
            fn deref(&self) -> &Self::Target {
                &*self.cell
            }
        }

        impl<$($of)*> Drop for $Ref {
            fn drop(&mut self) {
                self.cell.release();
            }
        }

        impl<$($of)*> core::fmt::Debug for $Ref {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple($name).field(self.cell.identity()).finish()
            }
        }
    };
}
pub(crate) use reference;

/// The methods that references to actors and to pools share. The type has an `Arc` of a [`Put`] in
/// it, in the field `cell`.
macro_rules! sends {
    ($Ref:ident, $name:literal, $Cell:ident) => {
        reference!([S: Send + 'static] $Ref<S> { cell }, $name, dyn Actor);

        impl<S: Send + 'static> $Ref<S> {
            /// Takes over a reference that the caller has counted.
            pub(crate) fn adopt(cell: Arc<$Cell<S>>) -> $Ref<S> {
                $Ref { cell }
            }

            /// Sends a message. If the mailbox is full, [`Overflow`](crate::Overflow) decides: by
            /// default the sender waits for room.
            ///
            /// # Errors
            /// The message comes back: the actor has ended, or there was no room.
            pub fn send<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
            where
                S: Handler<M>,
            {
                self.cell.send(message, Patience::Until(current_limit()))
            }

            /// Sends a message if there is room in the mailbox.
            ///
            /// # Errors
            /// The message comes back: the actor has ended, or the mailbox is full
            /// ([`SendError::is_full`]).
            pub fn try_send<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
            where
                S: Handler<M>,
            {
                self.cell.send(message, Patience::None)
            }

            /// Sends a message that comes before all others in the mailbox. There is always room
            /// for it. In a pool, a message with a key comes before the others of that key.
            ///
            /// # Errors
            /// The message comes back: the actor has ended.
            pub fn send_urgent<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
            where
                S: Handler<M>,
            {
                self.cell.send(message, Patience::Urgent)
            }

            /// Sends a message, and waits for the answer.
            ///
            /// An actor that asks while it handles a request waits no longer than its own asker
            /// does.
            ///
            /// # Errors
            /// See [`AskError`]. An ask that could never be answered, because actors would wait for
            /// each other in a circle, fails at once. A circle that leads through a pool is found
            /// if all workers of the pool wait in such circles and the pool cannot grow.
            pub fn ask<M: Send + 'static>(&self, message: M) -> Result<S::Reply, AskError>
            where
                S: Handler<M, Reply: 'static>,
            {
                self.cell.ask(message, current_limit())
            }

            /// Sends a message, and waits for the answer for as long as `timeout`, including the
            /// wait for room in the mailbox. The actor does not handle a request whose asker has
            /// given up.
            ///
            /// # Errors
            /// As for [`ask`](Self::ask).
            pub fn ask_timeout<M: Send + 'static>(
                &self,
                message: M,
                timeout: Duration,
            ) -> Result<S::Reply, AskError>
            where
                S: Handler<M, Reply: 'static>,
            {
                let limit = Limit::after(timeout).min(current_limit());
                self.cell.ask(message, limit)
            }

            /// Sends a message, and returns a [`Reply`] to wait for.
            ///
            /// # Errors
            /// The message comes back, as from [`send`](Self::send).
            pub fn ask_later<M: Send + 'static>(
                &self,
                message: M,
            ) -> Result<Reply<S::Reply>, SendError<M>>
            where
                S: Handler<M, Reply: 'static>,
            {
                let limit = current_limit();
                self.cell.request(message, limit)
            }

            /// Returns an address for one type of message: a reference that does not name the
            /// state.
            ///
            /// # Examples
            /// ```
            /// use pirn_actor::{self as actor, Address, Function};
            ///
            /// let count = actor::spawn(Function::new(|text: String| text.len()));
            /// let length: Address<String, usize> = count.address();
            /// assert_eq!(length.ask("pirn".to_string()), Ok(4));
            /// ```
            pub fn address<M>(&self) -> Address<M, S::Reply>
            where
                S: Handler<M, Reply: 'static>,
                M: Send + 'static,
            {
                Address::new(Arc::clone(&self.cell) as Arc<_>)
            }
        }

        impl<S, M> Tell<M> for $Ref<S>
        where
            S: Handler<M> + Send + 'static,
            M: Send + 'static,
        {
            fn send(&self, message: M) -> Result<(), SendError<M>> {
                $Ref::send(self, message)
            }
            fn try_send(&self, message: M) -> Result<(), SendError<M>> {
                $Ref::try_send(self, message)
            }
        }

        impl<S, M> Ask<M> for $Ref<S>
        where
            S: Handler<M, Reply: 'static> + Send + 'static,
            M: Send + 'static,
        {
            type Reply = S::Reply;

            fn ask(&self, message: M) -> Result<S::Reply, AskError> {
                $Ref::ask(self, message)
            }
            fn ask_timeout(&self, message: M, timeout: Duration) -> Result<S::Reply, AskError> {
                $Ref::ask_timeout(self, message, timeout)
            }
        }

        impl<S, M> Recipient<M> for $Ref<S>
        where
            S: Handler<M, Reply: 'static> + Send + 'static,
            M: Send + 'static,
        {
            fn target(&self) -> Target<M> {
                Target::of_actor(&self.cell)
            }
        }
    };
}

pub(crate) use sends;

sends!(Ref, "Ref", ActorCell);

impl<S: Send + 'static> Ref<S> {
    pub(crate) fn cell(&self) -> &Arc<ActorCell<S>> {
        &self.cell
    }

    pub(super) fn new(cell: Arc<ActorCell<S>>) -> Ref<S> {
        cell.retain();
        Ref { cell }
    }

    /// Sends messages that the actor handles one after the other, with none between them. There is
    /// room for all of them if there is room for one. Does not wait.
    ///
    /// # Errors
    /// All messages come back.
    pub fn send_all<M: Send + 'static>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<(), SendError<Vec<M>>>
    where
        S: Handler<M>,
    {
        self.cell.send_all(messages.into_iter().collect())
    }

    /// Runs code in the actor, between two messages, and returns its result.
    ///
    /// # Errors
    /// As for [`ask`](Ref::ask).
    ///
    /// # Examples
    /// ```
    /// let list = pirn_actor::spawn(vec![3, 1, 2]);
    /// let largest = list.run(|list| {
    ///     list.sort();
    ///     list.last().copied()
    /// });
    /// assert_eq!(largest, Ok(Some(3)));
    /// ```
    pub fn run<F, R>(&self, code: F) -> Result<R, AskError>
    where
        F: FnOnce(&mut S) -> R + Send + 'static,
        R: Send + 'static,
    {
        let limit = current_limit();
        self.cell.run_later(code, limit)?.recv_within(limit)
    }

    /// Runs code in the actor, and returns a [`Reply`] with its result.
    ///
    /// # Errors
    /// As for [`ask`](Ref::ask), without the wait for the answer.
    pub fn run_later<F, R>(&self, code: F) -> Result<Reply<R>, AskError>
    where
        F: FnOnce(&mut S) -> R + Send + 'static,
        R: Send + 'static,
    {
        self.cell.run_later(code, current_limit())
    }

    /// Runs code in the actor, and does not wait for it.
    ///
    /// # Errors
    /// The code comes back, as a message does from [`send`](Ref::send).
    pub fn run_detached<F>(&self, code: F) -> Result<(), SendError<F>>
    where
        F: FnOnce(&mut S) + Send + 'static,
    {
        self.cell.run_detached(code)
    }

    /// Returns a reference that does not keep the actor open.
    pub fn downgrade(&self) -> WeakRef<S> {
        WeakRef(Arc::downgrade(&self.cell))
    }

    /// Waits until the actor's recipe has made its state.
    ///
    /// # Errors
    /// The actor has ended before, for instance because the recipe failed.
    pub fn ready(&self) -> Result<(), Exit> {
        self.cell.life.ending.wait_built(1)
    }
}

/// A reference that does not keep its actor open.
pub struct WeakRef<S: Send + 'static>(Weak<ActorCell<S>>);

impl<S: Send + 'static> WeakRef<S> {
    /// Returns a reference, unless the actor is gone. It may be closing.
    pub fn upgrade(&self) -> Option<Ref<S>> {
        self.0.upgrade().map(Ref::new)
    }
}

impl<S: Send + 'static> Clone for WeakRef<S> {
    fn clone(&self) -> WeakRef<S> {
        WeakRef(Weak::clone(&self.0))
    }
}

impl<S: Send + 'static> fmt::Debug for WeakRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRef")
    }
}

impl<S: Clone + Send + 'static> Ref<S> {
    /// Runs code in the actor, between two messages. If the code returns an error or panics, the
    /// state is put back as it was before.
    ///
    /// The state is cloned in the actor before the code runs. The actor outlives a panic of the
    /// code, since its state is whole. If the asker gives up after the code has begun, its changes
    /// still hold. Use [`run`](Ref::run) for code that needs no way back.
    ///
    /// # Errors
    /// As for [`run`](Ref::run), and [`AskError::Failed`] if the code panics. The inner result is
    /// the code's own.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use std::collections::HashMap;
    ///
    /// let accounts = actor::spawn(HashMap::from([("shop", 10), ("bank", 5)]));
    /// let pay = |amount| {
    ///     accounts.transaction(move |accounts| {
    ///         *accounts.get_mut("bank").unwrap() += amount;
    ///         let shop = accounts.get_mut("shop").unwrap();
    ///         *shop -= amount;
    ///         if *shop < 0 { Err("not enough") } else { Ok(*shop) }
    ///     })
    /// };
    /// assert_eq!(pay(7), Ok(Ok(3)));
    /// assert_eq!(pay(7), Ok(Err("not enough")));
    /// assert_eq!(accounts.run(|accounts| accounts["bank"]), Ok(12));
    /// ```
    pub fn transaction<T, E, F>(&self, code: F) -> Result<Result<T, E>, AskError>
    where
        F: FnOnce(&mut S) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.run(|state| transact(state, code))?
            .map_err(AskError::Failed)
    }
}

/// Returns the failure of code that has panicked.
fn transact<S: Clone, T, E>(
    state: &mut S,
    code: impl FnOnce(&mut S) -> Result<T, E>,
) -> Result<Result<T, E>, Failure> {
    let failure = |panic| Failure::from(&panic);
    let before = Panic::catch(|| state.clone()).map_err(failure)?;
    let outcome = Panic::catch(|| code(state)).map_err(failure);
    if !matches!(outcome, Ok(Ok(_))) {
        // The half-changed state may panic when it is dropped. The one that is kept is whole.
        discard(core::mem::replace(state, before));
    }
    outcome
}
