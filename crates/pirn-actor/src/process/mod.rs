//! A process: an actor with a thread for its whole life, which receives its messages where it wants
//! to, and in the order that it wants.

mod inbox;
mod pause;
mod receive;
mod watch;
mod weak;

pub use inbox::{Inbox, RecvError, Search};
pub use watch::Watch;
pub(crate) use watch::sealed;

use crate::actor::{Ending, ForRoom, Mortal, Options, Tell};
use crate::edges;
use crate::error::{AskError, Exit, Failure, Refusal, SendError, discard, short_name};
use crate::identity::{Identity, Works, current_limit, while_working_for};
use crate::mailbox::{Mailbox, Overflow, Phase, Then};
use crate::monitor::Monitor;
use crate::poison::locked;
use crate::reply::{self, Reply, ReplyTo};
use crate::snapshot;
use crate::time::Limit;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use pirn::thread::{self, Panic, Thread};
use std::io;
use std::sync::{Arc, Mutex};

/// Makes a process: an actor that is a function with an [`Inbox`], and a thread of its own.
///
/// # Panics
/// If no thread can be had. [`Builder::process`](crate::Builder::process) returns that as an error.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Inbox, RecvError};
///
/// let sum = actor::process(|inbox: &mut Inbox<u64>| {
///     let mut sum = 0;
///     while let Ok(number) = inbox.recv() {
///         sum += number;
///     }
///     sum
/// });
/// for number in 1..=100 {
///     sum.send(number).unwrap();
/// }
/// assert_eq!(sum.close_and_join().unwrap(), 5050);
/// ```
pub fn process<M, T, F>(f: F) -> Process<M, T>
where
    M: Send + 'static,
    T: Send + 'static,
    F: FnOnce(&mut Inbox<M>) -> T + Send + 'static,
{
    crate::Builder::new()
        .process(f)
        .expect("a thread for a process")
}

/// What the process and those who know it share.
pub(crate) struct Desk<M> {
    identity: Identity,
    mailbox: Mailbox<M>,
    ending: Ending,
    references: AtomicUsize,
    /// The process's thread while it waits for a message.
    waiter: Mutex<Option<Thread>>,
}

impl<M> Desk<M> {
    fn then(&self, then: Then) {
        if then == Then::Start {
            let waiter = locked(&self.waiter).clone();
            if let Some(waiter) = waiter {
                waiter.unpark();
            }
        }
    }

    pub(crate) fn end(&self, phase: Phase) {
        let then = self.mailbox.end(phase);
        if phase == Phase::Killing {
            edges::interrupted(&self.identity);
        }
        self.then(then);
    }

    fn pushed<E>(&self, pushed: Result<(Then, Option<M>), E>) -> Result<(), E> {
        let (then, displaced) = pushed?;
        self.then(then);
        drop(displaced);
        Ok(())
    }

    fn send_within(&self, message: M, limit: Limit) -> Result<(), (Refusal, M)> {
        let wait = ForRoom {
            at: &self.identity,
            limit,
        };
        self.pushed(self.mailbox.push(message, |_| (), &wait))
    }

    fn error(&self, (refusal, message): (Refusal, M)) -> SendError<M> {
        SendError::new(message, self.identity.name(), refusal)
    }

    fn release(&self) {
        // Relaxed: what the owner of the reference has sent is in the mailbox, under its lock.
        if self.references.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end(Phase::Closing);
        }
    }
}

impl<M> Works for Desk<M> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn about_to_wait(&self) {
        self.mailbox.let_in();
    }
}

impl<M: Send> Mortal for Desk<M> {
    fn ending(&self) -> &Ending {
        &self.ending
    }
}

impl<M: Send> snapshot::Seen for Desk<M> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn kind(&self) -> &'static str {
        "process"
    }

    fn load(&self) -> snapshot::Load {
        self.mailbox.load()
    }
}

/// A process that was started: for sending to it, and for its result.
pub struct Process<M: Send + 'static, T = ()> {
    desk: Arc<Desk<M>>,
    result: Arc<Mutex<Option<T>>>,
}

impl<M: Send + 'static, T: Send + 'static> Process<M, T> {
    pub(crate) fn start<F>(
        identity: Identity,
        (capacity, overflow): (usize, Overflow),
        options: Options,
        f: F,
    ) -> io::Result<Process<M, T>>
    where
        F: FnOnce(&mut Inbox<M>) -> T + Send + 'static,
    {
        let desk = Arc::new(Desk {
            identity,
            mailbox: Mailbox::new(capacity, overflow),
            ending: Ending::new(),
            references: AtomicUsize::new(1),
            waiter: Mutex::new(None),
        });
        let then = desk.mailbox.begin();
        debug_assert_eq!(then, Then::Start, "nobody knows the mailbox yet");
        let seen: Arc<dyn snapshot::Seen> = Arc::clone(&desk) as Arc<_>;
        snapshot::enter(&desk.identity, Arc::downgrade(&seen));
        let result = Arc::new(Mutex::new(None));
        let body = {
            let (desk, result, options) = (Arc::clone(&desk), Arc::clone(&result), options.clone());
            move || live(&desk, &options, &result, f)
        };
        options
            .threads()
            .start(body)
            .inspect_err(|_| snapshot::forget(&desk.identity))?;
        Ok(Process { desk, result })
    }

    /// Closes the process, and waits for its result.
    ///
    /// # Errors
    /// It panicked, or another thread has taken the result.
    pub fn close_and_join(self) -> Result<T, Exit> {
        self.close();
        self.into_result()
    }

    /// Waits for the process's result.
    ///
    /// # Errors
    /// It panicked, or another thread has taken the result.
    pub fn into_result(self) -> Result<T, Exit> {
        let exit = self.join();
        locked(&self.result).take().ok_or(exit)
    }
}

/// The thread of a process.
fn live<M, T, F>(desk: &Arc<Desk<M>>, options: &Options, result: &Mutex<Option<T>>, f: F)
where
    F: FnOnce(&mut Inbox<M>) -> T,
{
    let this = thread::current();
    *locked(&desk.waiter) = Some(this.clone());
    desk.mailbox.enter(this);
    let mut inbox = Inbox::new(Arc::clone(desk));
    let work = || while_working_for(&**desk, || f(&mut inbox));
    let outcome = Panic::catch(work);
    let phase = desk.mailbox.phase();
    let (exit, value) = match outcome {
        Ok(value) => (inbox.exit(phase), Some(value)),
        Err(panic) => (Exit::Failed(Failure::from(&panic)), None),
    };
    let on_undelivered = options
        .rare
        .as_deref()
        .and_then(|rare| rare.on_undelivered.as_ref());
    for message in inbox.finish() {
        if let Some(tell) = on_undelivered {
            let _ = Panic::catch(|| tell(short_name::<M>()));
        }
        discard(message);
    }
    *locked(result) = value;
    snapshot::forget(&desk.identity);
    desk.ending.publish(&exit);
}

impl<M: Send + 'static, T> Process<M, T> {
    pub(crate) fn desk(&self) -> &Desk<M> {
        &self.desk
    }

    /// Sends a message. If the mailbox is full, waits for room, or does what the process's
    /// [`Overflow`](crate::Overflow) says.
    ///
    /// # Errors
    /// The message comes back: the process has ended, or there was no room.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        let sent = self.desk.send_within(message, current_limit());
        sent.map_err(|refused| self.desk.error(refused))
    }

    /// Sends a message if there is room in the mailbox.
    ///
    /// # Errors
    /// The message comes back.
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        let sent = self
            .desk
            .pushed(self.desk.mailbox.try_push(message, |_| ()));
        sent.map_err(|refused| self.desk.error(refused))
    }

    /// Sends a message that comes before all others in the mailbox.
    ///
    /// # Errors
    /// The message comes back: the process has ended.
    pub fn send_urgent(&self, message: M) -> Result<(), SendError<M>> {
        match self.desk.mailbox.push_urgent(message) {
            Ok(then) => {
                self.desk.then(then);
                Ok(())
            }
            Err(refused) => Err(self.desk.error(refused)),
        }
    }

    /// Sends a message that carries a [`ReplyTo`], and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`]. A process may hand its `ReplyTo` to others, so a circle of waiting actors
    /// is found only where it leads through actors with handlers.
    pub fn ask<R>(&self, message: impl FnOnce(ReplyTo<R>) -> M) -> Result<R, AskError> {
        self.ask_within(message, current_limit())
    }

    /// Does the same for as long as `timeout`.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask_timeout<R>(
        &self,
        message: impl FnOnce(ReplyTo<R>) -> M,
        timeout: Duration,
    ) -> Result<R, AskError> {
        self.ask_within(message, Limit::after(timeout).min(current_limit()))
    }

    fn ask_within<R>(
        &self,
        message: impl FnOnce(ReplyTo<R>) -> M,
        limit: Limit,
    ) -> Result<R, AskError> {
        let (to, reply) = reply::pair_without_edge();
        match self.desk.send_within(message(to), limit) {
            Ok(()) => reply.recv_within(limit),
            Err(refused) => Err(self.desk.error(refused).into_ask_error()),
        }
    }

    /// Sends a message that carries a [`ReplyTo`], and returns the answer that is on its way.
    ///
    /// # Errors
    /// The message comes back.
    pub fn ask_later<R>(
        &self,
        message: impl FnOnce(ReplyTo<R>) -> M,
    ) -> Result<Reply<R>, SendError<M>> {
        let (to, reply) = reply::pair_without_edge();
        self.send(message(to))?;
        Ok(reply)
    }

    /// Lets the process receive what is in its mailbox, and then tells it that it is
    /// [closed](RecvError::Closed).
    pub fn close(&self) {
        self.desk.end(Phase::Closing);
    }

    /// Has the next receive of the process fail.
    pub fn stop(&self) {
        self.desk.end(Phase::Stopping);
    }

    /// Interrupts the process, and has each of its receives fail.
    pub fn kill(&self) {
        self.desk.end(Phase::Killing);
    }

    /// Waits until the process has ended.
    pub fn join(&self) -> Exit {
        self.desk
            .ending
            .join(Limit::NEVER)
            .expect("without a time limit it has ended")
    }

    /// Waits until the process has ended, for as long as `timeout`.
    pub fn join_timeout(&self, timeout: Duration) -> Option<Exit> {
        self.desk.ending.join(Limit::after(timeout))
    }

    /// Returns how the process has ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.desk.ending.exit()
    }

    /// Returns what tells of the process's end.
    pub fn monitor(&self) -> Monitor {
        Monitor::of(Arc::clone(&self.desk) as Arc<_>)
    }

    /// Calls a function when the process ends, on its thread; at once and here if it has ended.
    pub fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static) {
        self.desk.ending.watch(Box::new(f));
    }

    /// Returns the process's name.
    pub fn name(&self) -> Arc<str> {
        self.desk.identity.name()
    }
}

impl<M: Send + 'static, T> Clone for Process<M, T> {
    fn clone(&self) -> Process<M, T> {
        // Relaxed: as in `Arc`, who makes another reference has one.
        self.desk.references.fetch_add(1, Ordering::Relaxed);
        Process {
            desk: Arc::clone(&self.desk),
            result: Arc::clone(&self.result),
        }
    }
}

impl<M: Send + 'static, T> Drop for Process<M, T> {
    fn drop(&mut self) {
        self.desk.release();
    }
}

impl<M: Send + 'static, T> fmt::Debug for Process<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Process").field(&self.desk.identity).finish()
    }
}

impl<M: Send + 'static, T> Tell<M> for Process<M, T> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        Process::send(self, message)
    }
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        Process::try_send(self, message)
    }
}
