//! The parts that actors of all kinds share: their identity, their end, their count of references.
//!
//! ```text
//!   Ref<S> ------> ActorCell<S>  \
//!   PoolRef<S> --> PoolCell<S>    \   each has a `Life`, and implements `Actor`: references deref
//!   Process<M> --> ProcessCell<M>  >  to `dyn Actor`, whose methods end it, wait for its end and
//!   Tree --------> Table          /   report it. There is one copy of them.
//!   Address<M, R> -> any of the first three, a pipeline, `each`, a batch
//! ```

use crate::ending::Ending;
use crate::error::Exit;
use crate::identity::Identity;
use crate::mailbox::Phase;
use crate::monitor::Monitor;
use crate::time::Limit;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

/// The part that actors of all kinds share.
pub struct Life {
    pub(crate) identity: Identity,
    pub(crate) ending: Ending,
    /// The number of references and addresses. The drop of the last one closes the actor.
    references: AtomicUsize,
}

impl Life {
    /// Makes a life with one reference, which the caller releases.
    pub(crate) const fn new(identity: Identity) -> Life {
        Life {
            identity,
            ending: Ending::new(),
            references: AtomicUsize::new(1),
        }
    }
}

/// The work of an actor.
#[derive(Default)]
pub struct Load {
    /// The number of messages that it has begun.
    pub(crate) begun: u64,
    /// The number of messages in its mailbox.
    pub(crate) waiting: usize,
    /// The number of senders that wait for room.
    pub(crate) senders: usize,
}

/// An actor of any kind: all references to actors dereference to `dyn Actor`.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Actor, Exit};
///
/// fn shut_down(actors: &[&dyn Actor]) {
///     actors.iter().for_each(|actor| actor.close());
///     for actor in actors {
///         assert_eq!(actor.join(), Exit::Closed, "{}", actor.name());
///     }
/// }
/// let (list, log) = (actor::spawn(vec![1]), actor::consumer(|line: String| println!("{line}")));
/// shut_down(&[&*list, &*log]);
/// ```
pub trait Actor: Send + Sync {
    #[doc(hidden)]
    fn life(&self) -> &Life;

    /// Returns an `Arc` of the part that lives as long as the actor.
    #[doc(hidden)]
    fn this(&self) -> Arc<dyn Actor>
    where
        Self: 'static;

    /// Ends the actor, in the strictest phase that was asked for.
    #[doc(hidden)]
    fn end(&self, phase: Phase);

    /// Returns the type of the actor's state, or the kind of the actor.
    #[doc(hidden)]
    fn kind(&self) -> &'static str;

    /// Returns the actor's work.
    #[doc(hidden)]
    fn load(&self) -> Load;

    #[doc(hidden)]
    fn identity(&self) -> &Identity {
        &self.life().identity
    }

    /// Counts a reference.
    #[doc(hidden)]
    fn retain(&self) {
        // Relaxed: as in `Arc`: the caller has a reference, or is about to publish the actor.
        self.life().references.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a reference as gone. Closes the actor if it was the last one.
    #[doc(hidden)]
    fn release(&self) {
        // Relaxed: messages sent by the reference's owner are in the mailbox, under its lock.
        if self.life().references.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end(Phase::Closing);
        }
    }

    /// Pauses the actor after the current message, and drops its state. Called by its supervisor.
    #[doc(hidden)]
    fn hold(&self) {}

    /// Restarts an actor that is held.
    #[doc(hidden)]
    fn go_on(&self) {}

    /// Called by the running thread, which works for the actor, before it waits: perhaps for a
    /// thread that waits for the actor.
    #[doc(hidden)]
    fn about_to_wait(&self) {}

    /// Called when a watcher of the actor's end has been dropped.
    #[doc(hidden)]
    fn unwatched(&self) {}
}

impl dyn Actor + '_ {
    /// Ends the actor after the messages that are in its mailbox now.
    pub fn close(&self) {
        self.end(Phase::Closing);
    }

    /// Ends the actor after its current message: a pool, after the current messages of its workers.
    /// Askers of messages that were not begun get [`AskError::Gone`](crate::AskError::Gone).
    pub fn stop(&self) {
        self.end(Phase::Stopping);
    }

    /// Ends the actor, and interrupts its current message: blocking calls fail.
    pub fn kill(&self) {
        self.end(Phase::Killing);
    }

    /// Waits until the actor has ended.
    pub fn join(&self) -> Exit {
        let exit = self.life().ending.join(Limit::NEVER);
        exit.expect("without a time limit it has ended")
    }

    /// Waits until the actor has ended, for as long as `timeout`.
    pub fn join_timeout(&self, timeout: Duration) -> Option<Exit> {
        self.life().ending.join(Limit::after(timeout))
    }

    /// Returns how the actor has ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.life().ending.exit()
    }

    /// Calls a function when the actor ends, on the actor's thread; at once, on the running thread,
    /// if it has ended.
    pub fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static) {
        self.life().ending.watch(Box::new(f));
    }

    /// Returns the actor's name.
    pub fn name(&self) -> Arc<str> {
        self.identity().name()
    }

    /// Returns the number of messages that wait in the mailbox.
    pub fn len(&self) -> usize {
        self.load().waiting
    }

    /// Returns true if no message waits in the mailbox.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl dyn Actor {
    /// Returns a monitor of the actor's end.
    pub fn monitor(&self) -> Monitor {
        Monitor::of(&self.this())
    }
}

impl fmt::Debug for dyn Actor + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.identity().fmt(f)
    }
}
