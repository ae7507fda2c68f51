//! Actors that may borrow: all of them end before their scope does.
//!
//! ```text
//!   scope(|s| {                 the actors of the scope, in the order in which they were made:
//!       let a = s.spawn(…);         a
//!       let b = s.spawn(… a …);     a, b        b may send to a
//!   })                              the block returns: b is closed, and ends; then a
//! ```

use crate::actor::{
    ActorCell, Asked, Builder, Function, Handler, Message, Recipe, Told, reference,
};
use crate::error::{AskError, SendError};
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::{Patience, Phase};
use crate::monitor::Monitor;
use crate::poison::locked;
use crate::reply;
use crate::snapshot;
use crate::time::Limit;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::time::Duration;
use pirn::thread::Panic;
use std::sync::{Arc, Mutex, Weak};

/// Calls `f` with a scope whose actors may borrow: their states, and the messages sent to them.
///
/// When `f` has returned, the actors are closed one after the other, the newest first. Each handles
/// all of its messages before the next one is closed. Only then does this function return. If `f`
/// panics, or the running thread is interrupted meanwhile, the actors are killed instead.
///
/// # Panics
/// If `f` panics: with its panic, after the end of all actors.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::collections::HashMap;
///
/// let text = "to be or not to be".to_string();
/// let mut totals = HashMap::new();
/// actor::scope(|s| {
///     let count = s.with(&mut totals, |totals, word: &str| *totals.entry(word).or_insert(0) += 1);
///     text.split(' ').try_for_each(|word| count.send(word))
/// })
/// .unwrap();
/// assert_eq!(totals["be"], 2); // ours again
/// ```
pub fn scope<'env, F, R>(f: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let scope = Scope {
        actors: ManuallyDrop::new(Mutex::new(Actors::default())),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = Panic::catch(|| f(&scope));
    scope.end(result.is_err());
    result.unwrap_or_else(|panic| panic.resume())
}

/// The scope of [`scope()`].
pub struct Scope<'scope, 'env: 'scope> {
    /// Not dropped: a scope may be borrowed for as long as its actors may borrow. It is empty at
    /// the end.
    actors: ManuallyDrop<Mutex<Actors<'scope>>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The actors of a scope, in the order in which they were made.
#[derive(Default)]
struct Actors<'scope> {
    all: Vec<Arc<dyn Actor + 'scope>>,
    /// The number of actors at which `add` takes out those that have ended.
    many: usize,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Makes an actor with this state. It has no thread until it gets a message.
    pub fn spawn<S: Send + 'scope>(&'scope self, state: S) -> ScopedRef<'scope, S> {
        let (identity, bounds, options) = Builder::new().plan();
        let body = (Some(state), Recipe::NONE);
        // SAFETY: the actor borrows only what outlives its scope, and `Scope::end` waits for the
        // actor's end.
        let cell = unsafe { ActorCell::borrowing(identity, bounds, body, options) };
        locked(&self.actors).add(Arc::clone(&cell) as Arc<_>);
        enter(&cell);
        ScopedRef {
            cell,
            scope: PhantomData,
        }
    }

    /// Makes an actor that calls `f` for each message, with this state.
    pub fn with<T, M, R, F>(
        &'scope self,
        state: &'env mut T,
        mut f: F,
    ) -> ScopedRef<'scope, Function<impl FnMut(M) -> R + Send + 'scope>>
    where
        T: Send,
        M: Send + 'scope,
        R: Send,
        F: FnMut(&mut T, M) -> R + Send + 'scope,
    {
        self.spawn(Function::new(move |message| f(state, message)))
    }

    /// Ends all actors, the newest first.
    fn end(&self, mut kill: bool) {
        // Actors may make others until they have ended.
        loop {
            let last = {
                let mut actors = locked(&self.actors);
                if kill {
                    actors
                        .all
                        .iter()
                        .for_each(|actor| actor.end(Phase::Killing));
                }
                let last = actors.all.pop();
                if last.is_none() {
                    actors.all = Vec::new();
                }
                last
            };
            let Some(actor) = last else { return };
            actor.end(Phase::Closing);
            let (tell, monitor) = Monitor::new();
            actor.on_exit(move |exit| tell(exit.clone()));
            if !kill && monitor.recv().is_err() {
                kill = true;
                actor.end(Phase::Killing);
            }
            actor.join();
        }
    }
}

impl<'scope> Actors<'scope> {
    fn add(&mut self, actor: Arc<dyn Actor + 'scope>) {
        if self.all.len() >= self.many.max(64) {
            self.all.retain(|actor| actor.exit().is_none());
            self.many = self.all.len() * 2;
        }
        self.all.push(actor);
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("actors", &locked(&self.actors).all.len())
            .finish()
    }
}

/// Adds an actor to the table of snapshots.
fn enter<S: Send>(cell: &Arc<ActorCell<S>>) {
    let seen: Weak<dyn Actor + '_> = Arc::downgrade(cell) as Weak<_>;
    // SAFETY: the actor is taken out of the table before its end is published, and a snapshot uses
    // the actor only with the table locked. `Scope::end` waits for that end, so the actor does not
    // outlive its borrows there.
    let seen: Weak<dyn Actor + 'static> = unsafe { core::mem::transmute(seen) };
    snapshot::enter(cell.identity(), seen);
}

/// A reference to an actor of a scope.
pub struct ScopedRef<'scope, S: Send + 'scope> {
    cell: Arc<ActorCell<S>>,
    /// Messages may borrow for exactly this long: invariant.
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, S: Send + 'scope> ScopedRef<'scope, S> {
    /// Sends a message. If the mailbox is full, waits for room.
    ///
    /// # Errors
    /// The message comes back: the actor has ended, or there was no room.
    pub fn send<M: Send + 'scope>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handler<M>,
    {
        let patience = Patience::Until(current_limit());
        // SAFETY: the message borrows only what outlives the scope, and the scope outlives the
        // actor.
        unsafe { self.cell.put_borrowing(Told(Message(message)), patience) }.map_err(
            |(refusal, Told(Message(message)))| {
                SendError::new(message, self.cell.identity().name(), refusal)
            },
        )
    }

    /// Sends a message, and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask<M: Send + 'scope>(&self, message: M) -> Result<S::Reply, AskError>
    where
        S: Handler<M, Reply: 'scope>,
    {
        self.ask_within(message, current_limit())
    }

    /// Sends a message, and waits for the answer for as long as `timeout`.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask_timeout<M: Send + 'scope>(
        &self,
        message: M,
        timeout: Duration,
    ) -> Result<S::Reply, AskError>
    where
        S: Handler<M, Reply: 'scope>,
    {
        self.ask_within(message, Limit::after(timeout).min(current_limit()))
    }

    fn ask_within<M: Send + 'scope>(&self, message: M, limit: Limit) -> Result<S::Reply, AskError>
    where
        S: Handler<M, Reply: 'scope>,
    {
        let (to, reply) = reply::pair(Some(self.cell.to()));
        let asked = Asked {
            job: Message(message),
            reply: to,
            limit,
        };
        // SAFETY: request and answer borrow only what outlives the scope, and the scope outlives
        // the actor.
        match unsafe { self.cell.put_borrowing(asked, Patience::Until(limit)) } {
            Ok(()) => reply.recv_within(limit),
            Err((refusal, asked)) => {
                asked.withdraw();
                Err(refusal.into())
            }
        }
    }
}

reference!(
    ['scope, S: Send + 'scope] ScopedRef<'scope, S> { cell, scope },
    "ScopedRef",
    dyn Actor + 'scope
);
