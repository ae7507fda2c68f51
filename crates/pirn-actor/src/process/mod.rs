//! A process: an actor with a thread for its whole life. Its function decides when it receives
//! which message.

mod inbox;
mod receive;

#[doc(hidden)]
pub use inbox::Search;
pub use inbox::{Inbox, RecvError};

use crate::actor::{
    Builder, Options, Passed, Receive, Recipient, Target, Tell, Threads, exit, reference,
    undelivered,
};
use crate::error::{AskError, Exit, Failure, SendError, short_name};
use crate::identity::{current_limit, while_working_for};
use crate::life::{Actor, Life, Load};
use crate::mailbox::{Mailbox, Patience, Phase, Then};
use crate::poison::locked;
use crate::reply::{self, Reply, ReplyTo};
use crate::snapshot;
use crate::time::Limit;
use core::time::Duration;
use pirn::thread::{self, Panic, Thread};
use std::io;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Makes a process: an actor that is a function with an [`Inbox`] and a thread of its own.
///
/// # Panics
/// If no thread can be started. [`Builder::process`](crate::Builder::process) returns that as an
/// error.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_actor::process::{Inbox, RecvError};
///
/// let sum = actor::process::spawn(|inbox: &mut Inbox<u64>| {
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
pub fn spawn<M, T, F>(f: F) -> Process<M, T>
where
    M: Send + 'static,
    T: Send + 'static,
    F: FnOnce(&mut Inbox<M>) -> T + Send + 'static,
{
    Builder::new().process(f).expect("a thread for a process")
}

impl Builder {
    /// Makes a process: an actor with a thread for its whole life, whose function receives the
    /// messages. See [`process`](crate::process::spawn()).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn process<M, T, F>(&self, f: F) -> io::Result<Process<M, T>>
    where
        M: Send + 'static,
        T: Send + 'static,
        F: FnOnce(&mut Inbox<M>) -> T + Send + 'static,
    {
        let (identity, (capacity, overflow), options) = self.plan();
        let cell = Arc::new_cyclic(|this| ProcessCell {
            life: Life::new(identity),
            mailbox: Mailbox::new(capacity, overflow),
            waiter: OnceLock::new(),
            this: Weak::clone(this),
        });
        let then = cell.mailbox.begin();
        debug_assert_eq!(then, Then::Start, "no other thread knows the mailbox yet");
        snapshot::enter(cell.identity(), cell.this.clone());
        let result = Arc::new(Mutex::new(None));
        let body = {
            let (cell, result, options) = (Arc::clone(&cell), Arc::clone(&result), options.clone());
            move || live(&cell, &options, &result, f)
        };
        Threads::of(&options)
            .start(body)
            .inspect_err(|_| snapshot::forget(cell.identity()))?;
        Ok(Process { cell, result })
    }
}

/// The part that the process and its references share.
pub(crate) struct ProcessCell<M> {
    life: Life,
    mailbox: Mailbox<M>,
    /// The process's thread, which may wait for a message.
    waiter: OnceLock<Thread>,
    this: Weak<ProcessCell<M>>,
}

impl<M> ProcessCell<M> {
    fn then(&self, then: Then) {
        if then == Then::Start
            && let Some(waiter) = self.waiter.get()
        {
            waiter.unpark();
        }
    }

    fn put(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        let at = &self.life.identity;
        match self.mailbox.push(message, patience, at, |_| ()) {
            Ok((then, displaced)) => {
                self.then(then);
                drop(displaced);
                Ok(())
            }
            Err((refusal, message)) => Err(SendError::new(message, at.name(), refusal)),
        }
    }
}

impl<M: Send + 'static> Actor for ProcessCell<M> {
    fn life(&self) -> &Life {
        &self.life
    }

    fn this(&self) -> Arc<dyn Actor> {
        self.this.upgrade().expect("the caller has it")
    }

    fn end(&self, phase: Phase) {
        self.then(self.mailbox.end(phase, &self.life.identity));
    }

    fn kind(&self) -> &'static str {
        "process"
    }

    fn load(&self) -> Load {
        self.mailbox.load()
    }

    fn hold(&self) {
        self.then(self.mailbox.hold(&self.life.identity));
    }

    fn go_on(&self) {
        self.then(self.mailbox.release());
    }

    fn about_to_wait(&self) {
        self.mailbox.let_in();
    }
}

/// A sender cannot know when a process has handled a message, so a message counts as handled once
/// it is in the mailbox.
impl<M: Send + 'static> Receive<M, ()> for ProcessCell<M> {
    fn pass(&self, passed: Passed<M, ()>, patience: Patience) -> Result<(), SendError<M>> {
        self.put(passed.message, patience)?;
        passed.onward.take(Ok(()));
        Ok(())
    }

    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        self.put(message, patience)
    }

    fn request(&self, message: M, limit: Limit) -> Result<Reply<()>, SendError<M>> {
        self.put(message, Patience::Until(limit))?;
        let (to, reply) = reply::channel();
        to.send(());
        Ok(reply)
    }
}

/// A reference to a process. It sends messages, and returns the result.
///
/// A closed process receives the messages in its mailbox, and then [`Closed`](RecvError::Closed).
/// The next receive of a stopped process fails, and a killed one is also interrupted.
pub struct Process<M: Send + 'static, T = ()> {
    cell: Arc<ProcessCell<M>>,
    result: Arc<Mutex<Option<T>>>,
}

impl<M: Send + 'static, T: Send + 'static> Process<M, T> {
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

/// Runs the function of a process, on its thread.
fn live<M, T, F>(cell: &Arc<ProcessCell<M>>, options: &Options, result: &Mutex<Option<T>>, f: F)
where
    M: Send + 'static,
    F: FnOnce(&mut Inbox<M>) -> T,
{
    cell.waiter.get_or_init(thread::current);
    cell.mailbox.enter(thread::current());
    let mut inbox = Inbox::new(Arc::clone(cell));
    let work = || while_working_for(&**cell, || f(&mut inbox));
    let outcome = Panic::catch(work);
    let phase = cell.mailbox.phase();
    let (exit, value) = match outcome {
        Ok(value) => (exit(phase), Some(value)),
        Err(panic) => (Exit::Failed(Failure::from(&panic)), None),
    };
    undelivered(inbox.finish(), |_| short_name::<M>(), options);
    *locked(result) = value;
    snapshot::forget(cell.identity());
    cell.life.ending.publish(&exit);
}

impl<M: Send + 'static, T> Process<M, T> {
    /// Sends a message. If the mailbox is full, waits for room, or does what the process's
    /// [`Overflow`](crate::Overflow) says.
    ///
    /// # Errors
    /// The message comes back: the process has ended, or there was no room.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.cell.put(message, Patience::Until(current_limit()))
    }

    /// Sends a message if there is room in the mailbox.
    ///
    /// # Errors
    /// The message comes back: the process has ended, or the mailbox is full.
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.cell.put(message, Patience::None)
    }

    /// Sends a message that comes before all others in the mailbox. There is always room for it.
    ///
    /// # Errors
    /// The message comes back: the process has ended.
    pub fn send_urgent(&self, message: M) -> Result<(), SendError<M>> {
        self.cell.put(message, Patience::Urgent)
    }

    /// Sends a message that carries a [`ReplyTo`], and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`]. A process may hand its `ReplyTo` to other threads, so a circle of waiting
    /// actors is found only if it leads through actors with handlers alone.
    pub fn ask<R>(&self, message: impl FnOnce(ReplyTo<R>) -> M) -> Result<R, AskError> {
        self.ask_within(message, current_limit())
    }

    /// Does what [`ask`](Process::ask) does, for as long as `timeout`.
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
        let (to, reply) = reply::channel();
        match self.cell.put(message(to), Patience::Until(limit)) {
            Ok(()) => reply.recv_within(limit),
            Err(error) => Err(error.into_ask_error()),
        }
    }

    /// Sends a message that carries a [`ReplyTo`], and returns a [`Reply`] to wait for.
    ///
    /// # Errors
    /// The message comes back, as from [`send`](Process::send).
    pub fn ask_later<R>(
        &self,
        message: impl FnOnce(ReplyTo<R>) -> M,
    ) -> Result<Reply<R>, SendError<M>> {
        let (to, reply) = reply::channel();
        self.send(message(to))?;
        Ok(reply)
    }
}

reference!([M: Send + 'static, T] Process<M, T> { cell, result }, "Process", dyn Actor);

impl<M: Send + 'static, T> Tell<M> for Process<M, T> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        Process::send(self, message)
    }
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        Process::try_send(self, message)
    }
}

impl<M: Send + 'static, T> Recipient<M> for Process<M, T> {
    fn target(&self) -> Target<M> {
        Target::of_actor(&self.cell)
    }
}
