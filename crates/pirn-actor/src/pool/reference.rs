//! References to a pool.

use super::cell::PoolCell;
use crate::actor::{Address, Ask, Handler, Put, Recipient, Target, Tell, reference, sends};
use crate::error::{AskError, Exit, SendError};
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::Patience;
use crate::reply::Reply;
use crate::time::Limit;
use core::time::Duration;
use std::sync::Arc;

/// A reference to a [`Pool`](crate::pool::Pool) of workers with the state `S`. It sends all
/// messages that `S` handles.
///
/// References are cheap to clone and usable from any thread. When the last one is dropped
/// ([`Address`]es count, too), the pool is closed: it handles the messages that wait, and ends.
///
/// # Examples
/// ```
/// use pirn_actor::{Exit, Function};
/// use pirn_actor::pool::Pool;
///
/// let square = Pool::fixed(2).name("square").spawn(|| Function::new(|n: u64| n * n)).unwrap();
/// assert_eq!(square.ask(7), Ok(49));
/// assert_eq!(square.workers().count, 2);
/// square.close();
/// assert_eq!(square.join(), Exit::Closed);
/// ```
pub struct PoolRef<S: Send + 'static> {
    cell: Arc<PoolCell<S>>,
}

/// The numbers of a pool's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workers {
    /// The number of workers, including those whose state is being made.
    pub count: usize,
    /// The number of workers that handle a message.
    pub busy: usize,
}

sends!(PoolRef, "PoolRef", PoolCell);

impl<S: Send + 'static> PoolRef<S> {
    /// Returns the numbers of workers. They may change at once.
    pub fn workers(&self) -> Workers {
        let (count, busy) = self.cell.workers();
        Workers { count, busy }
    }

    /// Waits until the least number of workers have their states.
    ///
    /// # Errors
    /// The pool has ended before, for instance because the recipe failed.
    pub fn ready(&self) -> Result<(), Exit> {
        let least = u32::try_from(self.cell.least()).unwrap_or(u32::MAX);
        self.cell.life.ending.wait_built(least)
    }
}
