//! The inbox: the receiving side of a process.

use super::ProcessCell;
use crate::error::Exit;
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::{Batch, Next, Phase};
use crate::time::{Late, Limit};
use core::fmt;
use core::ops::Deref;
use core::time::Duration;
use pirn::thread;
use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

/// Why there is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvError {
    /// The process was closed, or all references to it are gone, and no message is left.
    Closed,
    /// The process was stopped.
    Stopped,
    /// The process was killed, its thread was interrupted, or its supervisor restarts it.
    Interrupted,
    /// The time limit passed.
    TimedOut,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvError::Closed => "closed, and no message is left",
            RecvError::Stopped => "stopped",
            RecvError::Interrupted => "interrupted while waiting for a message",
            RecvError::TimedOut => "no message in time",
        })
    }
}

impl Error for RecvError {}

/// The mailbox of a process, as its function sees it.
pub struct Inbox<M> {
    pub(super) cell: Arc<ProcessCell<M>>,
    pub(super) batch: Batch<M>,
    /// Messages that were received and not taken, in order. `None` is the place of the message that
    /// a search is looking at.
    pub(super) aside: VecDeque<Option<M>>,
    /// The supervisor waits for the process to pause.
    pub(super) is_told_to_pause: bool,
}

impl<M> Inbox<M> {
    pub(super) fn new(cell: Arc<ProcessCell<M>>) -> Inbox<M> {
        Inbox {
            cell,
            batch: Batch::new(),
            aside: VecDeque::new(),
            is_told_to_pause: false,
        }
    }

    /// Waits for a message, and returns the oldest one.
    ///
    /// # Errors
    /// See [`RecvError`].
    pub fn recv(&mut self) -> Result<M, RecvError> {
        self.recv_within(Limit::NEVER)
    }

    /// Waits for a message for as long as `timeout`.
    ///
    /// # Errors
    /// See [`RecvError`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<M, RecvError> {
        self.recv_within(Limit::after(timeout))
    }

    /// Returns the oldest message, without waiting for one.
    ///
    /// # Errors
    /// See [`RecvError`]; [`TimedOut`](RecvError::TimedOut) if no message waits.
    pub fn try_recv(&mut self) -> Result<M, RecvError> {
        self.recv_within(Limit::after(Duration::ZERO))
    }

    fn recv_within(&mut self, limit: Limit) -> Result<M, RecvError> {
        self.check_end()?;
        if let Some(message) = self.aside.pop_front() {
            return Ok(message.expect("nothing is being looked at"));
        }
        self.next(limit)
    }

    /// Returns the first message that `wanted` accepts: first among those put aside, then among
    /// those that come. The others stay, in order. `wanted` returns a message that it does not
    /// accept.
    ///
    /// [`receive!`](crate::receive) does this with patterns.
    ///
    /// # Errors
    /// See [`RecvError`].
    pub fn select<T>(
        &mut self,
        timeout: Option<Duration>,
        mut wanted: impl FnMut(M) -> Result<T, M>,
    ) -> Result<T, RecvError> {
        let mut search = self.search(timeout);
        loop {
            match wanted(self.look(&mut search)?) {
                Ok(taken) => {
                    self.take(search);
                    return Ok(taken);
                }
                Err(message) => self.keep(&mut search, message),
            }
        }
    }

    /// Begins a search through all messages.
    #[doc(hidden)]
    pub fn search(&mut self, timeout: Option<Duration>) -> Search {
        Search {
            at: 0,
            limit: timeout.map_or(Limit::NEVER, Limit::after),
        }
    }

    /// Returns the message at the search's position. Its place stays.
    #[doc(hidden)]
    pub fn look(&mut self, search: &mut Search) -> Result<M, RecvError> {
        self.check_end()?;
        match self.aside.get_mut(search.at) {
            Some(message) => Ok(message.take().expect("one search at a time looks at it")),
            None => {
                let message = self.next(search.limit)?;
                self.aside.push_back(None);
                Ok(message)
            }
        }
    }

    /// Puts back a message that was not accepted.
    #[doc(hidden)]
    pub fn keep(&mut self, search: &mut Search, message: M) {
        self.aside[search.at] = Some(message);
        search.at += 1;
    }

    /// Ends a search, and takes the message at its position.
    #[doc(hidden)]
    pub fn take(&mut self, search: Search) {
        self.aside.remove(search.at);
    }

    /// Waits for a message that no search has looked at.
    fn next(&mut self, limit: Limit) -> Result<M, RecvError> {
        let limit = limit.min(current_limit());
        loop {
            return Err(match self.cell.mailbox.next(&mut self.batch) {
                Next::Item(message) => return Ok(message),
                Next::End(Phase::Closing) => RecvError::Closed,
                Next::End(Phase::Killing) => RecvError::Interrupted,
                Next::End(_) => RecvError::Stopped,
                Next::Held => {
                    self.note_hold();
                    RecvError::Interrupted
                }
                // A sender that finds the process idle counts it as running, and unparks it.
                Next::Idle => {
                    let parked = limit.park();
                    self.cell.mailbox.enter(thread::current());
                    match parked {
                        Ok(()) => continue,
                        Err(Late::TimedOut) => RecvError::TimedOut,
                        Err(Late::Interrupted) => RecvError::Interrupted,
                    }
                }
            });
        }
    }

    /// Reports the end of the process before any message that was put aside.
    fn check_end(&self) -> Result<(), RecvError> {
        match self.cell.mailbox.phase() {
            Phase::Killing => Err(RecvError::Interrupted),
            phase if phase > Phase::Closing => Err(RecvError::Stopped),
            _ if self.is_told_to_pause => Err(RecvError::Interrupted),
            _ => Ok(()),
        }
    }

    /// Ends the mailbox, and returns the messages that were never received.
    pub(super) fn finish(self) -> impl Iterator<Item = M> {
        let left = self.cell.mailbox.finish(self.batch);
        self.aside.into_iter().flatten().chain(left)
    }
}

impl<M: Send + 'static> Inbox<M> {
    /// Sends this process a message, made by `make`, when an actor, a process or a tree ends: at
    /// once if it has ended already.
    ///
    /// The message comes before all others in the mailbox, and there is always room for it. The
    /// watch does not keep the process open, and a closing process gets no such message. `make`
    /// runs on the thread of the actor that ends.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Exit};
    /// use pirn_actor::process::{Inbox, RecvError};
    ///
    /// enum Message {
    ///     Down(Exit),
    /// }
    /// let worker = actor::consumer(|(): ()| ());
    /// let watched = worker.clone();
    /// let nurse = actor::process::spawn(move |inbox: &mut Inbox<Message>| {
    ///     inbox.watch(&watched, Message::Down);
    ///     inbox.recv().map(|Message::Down(exit)| exit)
    /// });
    /// worker.stop();
    /// assert_eq!(nurse.into_result().unwrap(), Ok(Exit::Stopped));
    /// ```
    pub fn watch(
        &mut self,
        actor: &impl Deref<Target = dyn Actor>,
        make: impl FnOnce(Exit) -> M + Send + 'static,
    ) {
        self.cell.life.ending.watch_for(&self.cell, &**actor, make);
    }
}

impl<M> fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("aside", &self.aside.len())
            .finish_non_exhaustive()
    }
}

/// The position of a search through a mailbox.
#[doc(hidden)]
#[derive(Debug)]
pub struct Search {
    at: usize,
    limit: Limit,
}

// How a process pauses for a restart.
//
// ```text
//   the function runs --- hold: interrupted, and each receive fails --- it returns ---> paused
//          |                                                                              |
//          +--- a panic ----------------------------------------------------------> paused
//                                                                                         |
//          the function runs, from its beginning <------------- go on --------------------+
// ```
//
// The thread stays, and so do the messages in the mailbox and those put aside.
impl<M> Inbox<M> {
    /// Returns true if the function must return so that the process can pause.
    pub(crate) fn is_to_pause(&self) -> bool {
        let mailbox = &self.cell.mailbox;
        self.is_told_to_pause || mailbox.phase() <= Phase::Closing && !mailbox.goes_on()
    }

    /// Notes that the supervisor wants a pause, and releases the mailbox: the function still runs.
    pub(super) fn note_hold(&mut self) {
        self.is_told_to_pause = true;
        let this = thread::current();
        // Blocking calls of the function fail until it returns.
        this.interrupt();
        let _ = self.cell.mailbox.release();
        self.cell.mailbox.enter(this);
    }

    /// Holds the mailbox after the function has returned. Returns false if the process is to end.
    pub(crate) fn pause(&mut self) -> bool {
        self.is_told_to_pause = false;
        // The places of messages that searches were looking at when the function panicked.
        self.aside.retain(Option::is_some);
        matches!(self.cell.mailbox.pause(&mut self.batch), Next::Held)
    }

    /// Waits until the mailbox is released. Returns false if the process is to end.
    pub(crate) fn wait_for_release(&mut self) -> bool {
        while self.cell.mailbox.is_held() {
            thread::park();
        }
        self.cell.mailbox.enter(thread::current());
        self.cell.mailbox.phase() <= Phase::Closing
    }
}
