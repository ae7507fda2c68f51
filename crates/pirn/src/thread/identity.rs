//! Threads: who they are.

use crate::vthread::core_::{Phase, next_id};
use crate::vthread::{self, ThreadRef};
use core::fmt;
use core::num::NonZeroU64;

/// A unique identifier of a thread, virtual or platform. Never used again in the same process.
///
/// # Examples
/// ```
/// use pirn::thread;
/// let other = thread::spawn(|| thread::current().id()).join().unwrap();
/// assert_ne!(thread::current().id(), other);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(NonZeroU64);

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadId").field(&self.0).finish()
    }
}

/// A handle to a thread, virtual or platform.
///
/// # Examples
/// ```
/// use pirn::thread;
/// let sleeper = thread::Builder::new().name("sleeper".into()).spawn(thread::park).unwrap();
/// assert_eq!(sleeper.thread().name(), Some("sleeper"));
/// assert!(sleeper.thread().is_virtual());
/// sleeper.thread().unpark();
/// sleeper.join().unwrap();
/// ```
#[derive(Clone)]
pub struct Thread(Kind);

#[derive(Clone)]
enum Kind {
    Virtual(ThreadRef),
    Platform {
        thread: std::thread::Thread,
        id: u64,
    },
}

impl Thread {
    pub(crate) fn from_virtual(thread: ThreadRef) -> Thread {
        Thread(Kind::Virtual(thread))
    }

    /// The virtual thread that it is.
    pub(crate) fn as_virtual(&self) -> Option<&ThreadRef> {
        match &self.0 {
            Kind::Virtual(thread) => Some(thread),
            Kind::Platform { .. } => None,
        }
    }

    /// Its identifier.
    pub fn id(&self) -> ThreadId {
        let id = match &self.0 {
            Kind::Virtual(thread) => thread.id(),
            Kind::Platform { id, .. } => *id,
        };
        // Ids start at 1.
        ThreadId(NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX))
    }

    /// Its name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Virtual(thread) => thread.name(),
            Kind::Platform { thread, .. } => thread.name(),
        }
    }

    /// Whether it is a virtual thread.
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, Kind::Virtual(_))
    }

    /// Gives it its park permit: the [`park`](super::park) it is in, or the next one, returns.
    /// What happened before this call is visible after that return.
    pub fn unpark(&self) {
        match &self.0 {
            Kind::Virtual(thread) => {
                if thread.permit.unpark() {
                    vthread::mount::wake(thread.as_ptr());
                }
            }
            Kind::Platform { thread, .. } => thread.unpark(),
        }
    }
}

/// Shows id, name, state, and the carrier it is mounted on, in Loom's format:
/// `VirtualThread[#24,name]/running@carrier-1`.
impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self
            .name()
            .map(|name| format!(",{name}"))
            .unwrap_or_default();
        match &self.0 {
            Kind::Platform { id, .. } => write!(f, "Thread[#{id}{name}]"),
            Kind::Virtual(thread) => {
                let state = match thread.phase() {
                    Phase::New => "new",
                    Phase::Runnable => "runnable",
                    Phase::Running => "running",
                    Phase::Waiting => "waiting",
                    Phase::Terminated => "terminated",
                };
                write!(f, "VirtualThread[#{}{name}]/{state}", thread.id())?;
                match thread.carrier_number() {
                    Some(u32::MAX) => f.write_str("@scheduler"),
                    Some(number) => write!(f, "@carrier-{number}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A handle to the running thread.
///
/// # Examples
/// ```
/// let virtually = pirn::thread::spawn(|| pirn::thread::current().is_virtual()).join().unwrap();
/// assert!(virtually);
/// ```
pub fn current() -> Thread {
    thread_local! {
        static ID: u64 = next_id();
    }
    match vthread::current() {
        Some(core) => Thread(Kind::Virtual(core.to_ref())),
        None => Thread(Kind::Platform {
            thread: std::thread::current(),
            id: ID.with(|id| *id),
        }),
    }
}
