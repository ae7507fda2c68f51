//! References to a pool.

use super::crew::Crew;
use crate::actor::{Address, Ask, Handle, Patience, Recipient, Target, Tell};
use crate::error::{AskError, Exit, SendError};
use crate::identity::current_limit;
use crate::mailbox::Phase;
use crate::monitor::Monitor;
use crate::reply::Reply;
use crate::time::Limit;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// A reference to a [`Pool`](crate::Pool) of workers with the state `S`, for all messages that `S`
/// handles.
///
/// References are cheap to clone, and may be used from any thread. When the last one is dropped
/// ([`Address`]es count, too), the pool is closed: it handles what waits, and ends.
///
/// # Examples
/// ```
/// use pirn_actor::{Exit, Function, Pool};
///
/// let square = Pool::fixed(2).name("square").spawn(|| Function::new(|n: u64| n * n)).unwrap();
/// assert_eq!(square.ask(7), Ok(49));
/// assert_eq!(square.workers().count, 2);
/// square.close();
/// assert_eq!(square.join(), Exit::Closed);
/// ```
pub struct PoolRef<S: Send + 'static>(Arc<Crew<S>>);

/// How many workers a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workers {
    /// The number of workers, those whose state is being made included.
    pub count: usize,
    /// The number of workers that are at a message.
    pub busy: usize,
}

impl<S: Send + 'static> PoolRef<S> {
    pub(super) fn new(crew: Arc<Crew<S>>) -> PoolRef<S> {
        crew.retain();
        PoolRef(crew)
    }

    /// Sends a message. If too many wait, waits for room, or does what the pool's
    /// [`Overflow`](crate::Overflow) says.
    ///
    /// # Errors
    /// The message comes back: the pool has ended, or there was no room.
    pub fn send<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
    {
        self.0.tell(message, Patience::Until(current_limit()))
    }

    /// Sends a message if there is room.
    ///
    /// # Errors
    /// The message comes back: the pool has ended, or is full ([`SendError::is_full`]).
    pub fn try_send<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
    {
        self.0.tell(message, Patience::None)
    }

    /// Sends a message that comes before all others that have not been begun, and for which there
    /// is always room. One with a key comes before the others of that key.
    ///
    /// # Errors
    /// The message comes back: the pool has ended.
    pub fn send_urgent<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
    {
        self.0.tell_first(message)
    }

    /// Sends a message, and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`]. Actors that wait for each other in a circle that leads through a pool are
    /// found if all its workers wait in such circles, and it may not have more.
    pub fn ask<M: Send + 'static>(&self, message: M) -> Result<S::Reply, AskError>
    where
        S: Handle<M, Reply: 'static>,
    {
        self.ask_within(message, current_limit())
    }

    /// Sends a message, and waits for the answer for as long as `timeout`, the wait for room
    /// included. A request that nobody waits for any more is not handled.
    ///
    /// # Errors
    /// As for [`ask`](PoolRef::ask).
    pub fn ask_timeout<M: Send + 'static>(
        &self,
        message: M,
        timeout: Duration,
    ) -> Result<S::Reply, AskError>
    where
        S: Handle<M, Reply: 'static>,
    {
        self.ask_within(message, Limit::after(timeout).min(current_limit()))
    }

    fn ask_within<M: Send + 'static>(&self, message: M, limit: Limit) -> Result<S::Reply, AskError>
    where
        S: Handle<M, Reply: 'static>,
    {
        let request = self.0.request(message, limit, Patience::Until(limit));
        request
            .map_err(SendError::into_ask_error)?
            .recv_within(limit)
    }

    /// Sends a message, and returns the answer that is on its way.
    ///
    /// # Errors
    /// The message comes back, as from [`send`](PoolRef::send).
    pub fn ask_later<M: Send + 'static>(&self, message: M) -> Result<Reply<S::Reply>, SendError<M>>
    where
        S: Handle<M, Reply: 'static>,
    {
        let limit = current_limit();
        self.0.request(message, limit, Patience::Until(limit))
    }

    /// Returns an address for one type of message: all that a sender has to know.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Address, Function, Pool};
    ///
    /// let pool = Pool::fixed(2).spawn(|| Function::new(|text: String| text.len())).unwrap();
    /// let length: Address<String, usize> = pool.address();
    /// assert_eq!(length.ask("pirn".to_string()), Ok(4));
    /// ```
    pub fn address<M>(&self) -> Address<M, S::Reply>
    where
        S: Handle<M, Reply: 'static>,
        M: Send + 'static,
    {
        Address::new(Arc::clone(&self.0) as Arc<_>)
    }

    /// Returns the number of workers. It may have changed already.
    pub fn workers(&self) -> Workers {
        let (count, busy) = self.0.workers();
        Workers { count, busy }
    }

    /// Waits until as many workers have their states as the pool has at least.
    ///
    /// # Errors
    /// The pool has ended before, for instance because the recipe failed.
    pub fn ready(&self) -> Result<(), Exit> {
        let least = u32::try_from(self.0.least()).unwrap_or(u32::MAX);
        match self.0.ending.wait_built(least, Limit::NEVER).0 {
            None => Ok(()),
            Some(exit) => Err(exit),
        }
    }

    /// Has the pool end after the messages that wait now.
    pub fn close(&self) {
        self.0.end(Phase::Closing);
    }

    /// Has the pool end after the messages that its workers are at. Those who wait for answers to
    /// others get [`AskError::Gone`].
    pub fn stop(&self) {
        self.0.end(Phase::Stopping);
    }

    /// Has the pool end, and interrupts the messages that its workers are at: their blocking calls
    /// fail.
    pub fn kill(&self) {
        self.0.end(Phase::Killing);
    }

    /// Waits until all workers have ended.
    pub fn join(&self) -> Exit {
        let exit = self.0.ending.join(Limit::NEVER);
        exit.expect("without a time limit it has ended")
    }

    /// Waits until all workers have ended, for as long as `timeout`.
    pub fn join_timeout(&self, timeout: Duration) -> Option<Exit> {
        self.0.ending.join(Limit::after(timeout))
    }

    /// Returns how the pool has ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.0.ending.exit()
    }

    /// Returns what tells of the pool's end.
    pub fn monitor(&self) -> Monitor {
        Monitor::of(Arc::clone(&self.0) as Arc<_>)
    }

    /// Calls a function when the pool ends, on the thread of its last worker; at once and here if
    /// it has ended.
    pub fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static) {
        self.0.ending.watch(Box::new(f));
    }

    /// Returns the pool's name.
    pub fn name(&self) -> Arc<str> {
        self.0.identity.name()
    }

    /// Returns the number of messages that no worker has begun.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if all messages have been begun.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: Send + 'static> Clone for PoolRef<S> {
    fn clone(&self) -> PoolRef<S> {
        PoolRef::new(Arc::clone(&self.0))
    }
}

impl<S: Send + 'static> Drop for PoolRef<S> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<S: Send + 'static> PartialEq for PoolRef<S> {
    fn eq(&self, other: &PoolRef<S>) -> bool {
        self.0.identity == other.0.identity
    }
}

impl<S: Send + 'static> Eq for PoolRef<S> {}

impl<S: Send + 'static> fmt::Debug for PoolRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolRef").field(&self.0.identity).finish()
    }
}

impl<S, M> Tell<M> for PoolRef<S>
where
    S: Handle<M> + Send + 'static,
    M: Send + 'static,
{
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        PoolRef::send(self, message)
    }
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        PoolRef::try_send(self, message)
    }
}

impl<S, M> Recipient<M> for PoolRef<S>
where
    S: Handle<M, Reply: 'static> + Send + 'static,
    M: Send + 'static,
{
    fn target(&self) -> Target<M> {
        self.address().target()
    }
}

impl<S, M> Ask<M> for PoolRef<S>
where
    S: Handle<M, Reply: 'static> + Send + 'static,
    M: Send + 'static,
{
    type Reply = S::Reply;

    fn ask(&self, message: M) -> Result<S::Reply, AskError> {
        PoolRef::ask(self, message)
    }
    fn ask_timeout(&self, message: M, timeout: Duration) -> Result<S::Reply, AskError> {
        PoolRef::ask_timeout(self, message, timeout)
    }
}
