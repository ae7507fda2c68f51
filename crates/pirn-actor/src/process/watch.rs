//! Ends of others, as messages to a process.
//!
//! ```text
//!   process --- Inbox --- Watching -------> actor's list of watchers
//!      ^                                       |
//!      +--- weak --- watcher (makes a message) +
//! ```
//!
//! The watcher does not keep the process open, and goes with the process's inbox: an actor that
//! lives long does not collect the watchers of processes that do not. The message has a lane of its
//! own, so a full mailbox does not lose it.

use super::{Desk, Inbox, Process};
use crate::actor::{Address, Mortal, Ref, Watching};
use crate::error::Exit;
use sealed::Watched;
use std::sync::Arc;

/// What ends, and can be [watched](Inbox::watch) by processes.
pub trait Watch: sealed::Sealed {}

pub(crate) mod sealed {
    use super::{Arc, Mortal};

    /// What has an end.
    pub struct Watched(pub(crate) Arc<dyn Mortal>);

    pub trait Sealed {
        fn watched(&self) -> Watched;
    }
}

impl<S: Send + 'static> Watch for Ref<S> {}

impl<S: Send + 'static> sealed::Sealed for Ref<S> {
    fn watched(&self) -> Watched {
        Watched(Arc::clone(self.cell()) as Arc<_>)
    }
}

impl<M: 'static, R: 'static> Watch for Address<M, R> {}

impl<M: 'static, R: 'static> sealed::Sealed for Address<M, R> {
    fn watched(&self) -> Watched {
        Watched(self.mortal())
    }
}

impl<M: Send + 'static, T> Watch for Process<M, T> {}

impl<M: Send + 'static, T> sealed::Sealed for Process<M, T> {
    fn watched(&self) -> Watched {
        Watched(Arc::clone(&self.desk) as Arc<_>)
    }
}

/// What a process watches, for as long as it lives.
#[derive(Default)]
pub(super) struct Watches(Vec<Watching>);

impl Watches {
    fn add(&mut self, watching: Watching) {
        if self.0.len() == self.0.capacity() {
            // Before it grows: so it is at most twice as long as what is watched.
            self.0.retain(|watching| !watching.is_over());
        }
        self.0.push(watching);
    }
}

impl<M: Send + 'static> Inbox<M> {
    /// Has the end of an actor, a process or a tree come as a message, which `make` makes: at once
    /// if it has ended already.
    ///
    /// The message comes before all others in the mailbox, and there is always room for it. It does
    /// not keep the process open, and is not sent to one that is closing. `make` is called on the
    /// thread of what ends.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Exit, Inbox, RecvError};
    ///
    /// enum Message {
    ///     Down(Exit),
    /// }
    /// let worker = actor::consumer(|(): ()| ());
    /// let watched = worker.clone();
    /// let nurse = actor::process(move |inbox: &mut Inbox<Message>| {
    ///     inbox.watch(&watched, Message::Down);
    ///     inbox.recv().map(|Message::Down(exit)| exit)
    /// });
    /// worker.stop();
    /// assert_eq!(nurse.into_result().unwrap(), Ok(Exit::Stopped));
    /// ```
    pub fn watch(&mut self, actor: &impl Watch, make: impl FnOnce(Exit) -> M + Send + 'static) {
        let desk = Arc::downgrade(&self.desk);
        let told = move |exit: &Exit| {
            if let Some(desk) = desk.upgrade() {
                Desk::tell_first(&desk, make(exit.clone()));
            }
        };
        let watching = Watching::begin(&actor.watched().0, Box::new(told));
        self.watches.add(watching);
    }
}

impl<M> Desk<M> {
    /// Puts a message before all others. One for a process that is closing is dropped.
    fn tell_first(&self, message: M) {
        match self.mailbox.push_urgent(message) {
            Ok(then) => self.then(then),
            Err((_, message)) => drop(message),
        }
    }
}
