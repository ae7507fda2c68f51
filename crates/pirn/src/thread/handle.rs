//! Handles to threads.

use super::detached;
use crate::blocking::wait::Wait;
use crate::vthread::core_::{Phase, next_id};
use crate::vthread::{self, Cell, ThreadRef};
use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroU64;
use core::ptr::NonNull;
use std::panic::resume_unwind;

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

/// The right to wait for a virtual thread's end and take its result.
///
/// Dropping it detaches the thread.
///
/// # Examples
/// ```
/// let handle = pirn::thread::spawn(|| panic!("oh no"));
/// let payload = handle.join().unwrap_err();
/// assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "oh no");
/// ```
pub struct JoinHandle<T>(RawHandle<T>);

impl<T> JoinHandle<T> {
    pub(crate) fn new(thread: ThreadRef) -> JoinHandle<T> {
        JoinHandle(RawHandle::new(thread))
    }

    /// Waits for the thread to end and returns its result. The result is `Err` with the payload if the
    /// thread panicked.
    ///
    /// When this returns, the thread's thread-locals have been destroyed.
    ///
    /// # Errors
    /// The panic's payload.
    pub fn join(self) -> super::Result<T> {
        self.0.join()
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        self.0.thread()
    }

    /// Whether the thread has ended: [`join`](Self::join) would not block.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinHandle").field(self.thread()).finish()
    }
}

/// What the handles have in common.
pub(crate) struct RawHandle<T> {
    thread: Thread,
    result: PhantomData<fn() -> T>,
}

// SAFETY: the result is moved to whoever holds the handle, and `T: Send` was demanded where the thread
// was spawned.
unsafe impl<T> Send for RawHandle<T> {}
// SAFETY: `&RawHandle` gives access to no `T`.
unsafe impl<T> Sync for RawHandle<T> {}

impl<T> RawHandle<T> {
    pub(crate) fn new(thread: ThreadRef) -> RawHandle<T> {
        RawHandle {
            thread: Thread::from_virtual(thread),
            result: PhantomData,
        }
    }

    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The virtual thread itself.
    pub(crate) fn core(&self) -> &ThreadRef {
        match &self.thread.0 {
            Kind::Virtual(thread) => thread,
            Kind::Platform { .. } => unreachable!("a join handle of a platform thread"),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.core().join.is_done()
    }

    pub(crate) fn join(self) -> super::Result<T> {
        let core = self.core();
        if !core.join.is_done() && vthread::current().is_none() {
            crate::sched::lend(core.as_ptr());
        }
        if !core.join.is_done() {
            let wait = Wait::new();
            if core.join.register(NonNull::from(&wait).cast()) {
                wait.block();
            }
        }
        // SAFETY: it has ended, and this is its only handle.
        match unsafe { Cell::<T>::take_result(core) } {
            Some(result) => result,
            None => resume_unwind(Box::new("a virtual thread ended without a result")),
        }
    }
}

impl<T> Drop for RawHandle<T> {
    fn drop(&mut self) {
        detached::detach(self.core());
    }
}
