//! Errors of sending and asking, and how an actor ends.

use core::fmt;
use pirn::thread::Panic;
use std::error::Error;
use std::sync::Arc;

/// Why a mailbox did not take a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The actor is closed, is being stopped, or has ended.
    Closed,
    /// The mailbox is full, and the sender does not wait.
    Full,
    /// The sender's deadline passed while it waited for room.
    TimedOut,
    /// The sender was [interrupted](pirn::thread::Thread::interrupt) while it waited for room.
    Interrupted,
    /// There will never be room: the receiver waits, directly or through others, for the sender.
    Deadlock(Cycle),
    /// No actor has the name that the message was sent to.
    Unknown,
    /// The actor with the name that the message was sent to accepts no such messages.
    WrongType,
    /// The message could not be sent on its way, for instance because it is too large.
    Failed(Failure),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Closed => f.write_str("the actor no longer takes messages"),
            Refusal::Full => f.write_str("the mailbox is full"),
            Refusal::TimedOut => f.write_str("no room in the mailbox before the deadline"),
            Refusal::Interrupted => {
                f.write_str("interrupted while waiting for room in the mailbox")
            }
            Refusal::Deadlock(cycle) => write!(f, "waiting for room would be a deadlock: {cycle}"),
            Refusal::Unknown => f.write_str("no actor has this name"),
            Refusal::WrongType => f.write_str("the actor does not accept such messages"),
            Refusal::Failed(failure) => write!(f, "{failure}"),
        }
    }
}

/// A message that was not taken, and why. The message comes back to its sender.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_actor::error::Refusal;
///
/// let log = actor::consumer(|line: String| println!("{line}"));
/// log.stop();
/// log.join();
/// let error = log.send("too late".to_string()).unwrap_err();
/// assert_eq!(error.refusal(), &Refusal::Closed);
/// assert_eq!(error.into_message(), "too late");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SendError<M> {
    message: M,
    actor: Arc<str>,
    refusal: Refusal,
}

impl<M> SendError<M> {
    /// Makes an error for a message that the actor with this name did not take. For types that
    /// implement [`Tell`](crate::address::Tell).
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::SendError;
    /// use pirn_actor::error::Refusal;
    ///
    /// let error = SendError::new(5, "account-7", Refusal::Full);
    /// assert_eq!(error.to_string(), "i32 not sent to account-7: the mailbox is full");
    /// ```
    pub fn new(message: M, actor: impl Into<Arc<str>>, refusal: Refusal) -> SendError<M> {
        SendError {
            message,
            actor: actor.into(),
            refusal,
        }
    }

    /// Returns the message.
    pub fn into_message(self) -> M {
        self.message
    }

    /// Returns the reason.
    pub fn refusal(&self) -> &Refusal {
        &self.refusal
    }

    /// Returns true if the mailbox was full, so that another attempt may succeed.
    pub fn is_full(&self) -> bool {
        self.refusal == Refusal::Full
    }

    /// Returns the error of an ask whose request was refused like this.
    pub fn into_ask_error(self) -> AskError {
        self.refusal.into()
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError")
            .field("actor", &self.actor)
            .field("refusal", &self.refusal)
            .finish_non_exhaustive()
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = short_name::<M>();
        write!(f, "{message} not sent to {}: {}", self.actor, self.refusal)
    }
}

impl<M> Error for SendError<M> {}

/// Why an ask has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The actor has ended, or ended before it began the request, or dropped it unanswered.
    Gone,
    /// The handler of this request panicked, or refused to answer
    /// ([`ReplyTo::fail`](crate::reply::ReplyTo::fail)).
    Failed(Failure),
    /// The deadline passed.
    TimedOut,
    /// The asker was [interrupted](pirn::thread::Thread::interrupt).
    Interrupted,
    /// There will never be an answer: the actor that was asked waits, directly or through others,
    /// for the asker.
    Deadlock(Cycle),
    /// The mailbox is full, and the actor's [`Overflow`](crate::Overflow) says not to wait.
    Full,
    /// No node serves this name.
    Unreachable,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Gone => f.write_str("the actor ended without an answer"),
            AskError::Failed(failure) => write!(f, "the request failed: {failure}"),
            AskError::TimedOut => f.write_str("no answer before the deadline"),
            AskError::Interrupted => f.write_str("interrupted while waiting for an answer"),
            AskError::Deadlock(cycle) => write!(f, "asking would be a deadlock: {cycle}"),
            AskError::Full => f.write_str("the mailbox is full"),
            AskError::Unreachable => f.write_str("no node serves this name"),
        }
    }
}

impl Error for AskError {}

impl From<Refusal> for AskError {
    /// Returns the error of an ask whose message was refused.
    fn from(refusal: Refusal) -> AskError {
        match refusal {
            Refusal::Closed => AskError::Gone,
            Refusal::Full => AskError::Full,
            Refusal::TimedOut => AskError::TimedOut,
            Refusal::Interrupted => AskError::Interrupted,
            Refusal::Deadlock(cycle) => AskError::Deadlock(cycle),
            Refusal::Unknown | Refusal::WrongType => AskError::Unreachable,
            Refusal::Failed(failure) => AskError::Failed(failure),
        }
    }
}

/// Why a name does not lead to an actor, in a registry or below a supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// No actor has this name.
    Unknown {
        /// The name that was looked up.
        name: Arc<str>,
    },
    /// The actor with this name has another type, or accepts no messages of this type.
    WrongType {
        /// The name that was looked up.
        name: Arc<str>,
        /// The type of the actor's state; `"function"`, `"process"` or `"supervisor"`.
        kind: &'static str,
    },
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::Unknown { name } => write!(f, "no actor has the name {name}"),
            LookupError::WrongType { name, kind } => write!(f, "{name} is of another type: {kind}"),
        }
    }
}

impl Error for LookupError {}

impl From<LookupError> for Refusal {
    fn from(error: LookupError) -> Refusal {
        match error {
            LookupError::Unknown { .. } => Refusal::Unknown,
            LookupError::WrongType { .. } => Refusal::WrongType,
        }
    }
}

/// Actors that wait for each other in a circle, by name, in the order in which they wait.
#[derive(Clone, PartialEq, Eq)]
pub struct Cycle(Arc<[Arc<str>]>);

impl Cycle {
    pub(crate) fn new(names: Vec<Arc<str>>) -> Cycle {
        Cycle(names.into())
    }

    /// Returns the names. The first one waits for the second, and the last one for the first.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in self.names() {
            write!(f, "{name} waits for ")?;
        }
        f.write_str(&self.0[0])
    }
}

impl fmt::Debug for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Why an actor, or one request, failed: the message of a panic or of an error.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(Arc<str>);

impl Failure {
    /// Makes a failure with this text.
    pub fn new(what: impl Into<Arc<str>>) -> Failure {
        Failure(what.into())
    }
}

impl From<&Panic> for Failure {
    fn from(panic: &Panic) -> Failure {
        Failure(panic.to_string().into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// How an actor has ended.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Exit};
///
/// let square = actor::function(|n: u64| n * n);
/// square.close();
/// assert_eq!(square.join(), Exit::Closed);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// It was closed, and has handled all of its messages.
    Closed,
    /// It was stopped, and has finished its current message.
    Stopped,
    /// It was killed, and its current message was interrupted.
    Killed,
    /// It panicked, its recipe failed, or it failed more often than its supervisor allows.
    Failed(Failure),
    /// Its node no longer responds. The actor may still run there.
    NodeLost,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Closed => f.write_str("closed"),
            Exit::Stopped => f.write_str("stopped"),
            Exit::Killed => f.write_str("killed"),
            Exit::Failed(failure) => write!(f, "failed: {failure}"),
            Exit::NodeLost => f.write_str("its node is lost"),
        }
    }
}

/// Drops a value of the program. The panic hook has reported its panic, which must not keep the
/// caller from the rest of its work.
pub(crate) fn discard<T>(of_the_program: T) {
    let _ = Panic::catch(|| drop(of_the_program));
}

/// Returns a type's name without the modules.
pub(crate) fn short_name<T: ?Sized>() -> &'static str {
    let name = core::any::type_name::<T>();
    let plain = name.split('<').next().unwrap_or(name);
    match plain.rfind("::") {
        Some(at) => &name[at + 2..],
        None => name,
    }
}
