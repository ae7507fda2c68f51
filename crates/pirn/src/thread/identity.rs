//! Handles and ids of threads.

use crate::blocking::wait::{Outcome, Wakeup};
use crate::sched::carrier_name;
use crate::vthread::platform::{self, Platform};
use crate::vthread::record::Phase;
use crate::vthread::wait_word::WaitWord;
use crate::vthread::{self, ThreadRef};
use core::fmt;
use core::num::NonZeroU64;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// A unique identifier of a thread, virtual or platform. Never used again in the same process.
///
/// # Examples
/// ```
/// use pirn::thread;
/// let other = thread::spawn(|| thread::current().id()).join().unwrap();
/// assert_ne!(thread::current().id(), other);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(NonZeroU64);

impl ThreadId {
    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}

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
pub struct Thread(Which);

#[derive(Clone)]
enum Which {
    Virtual(ThreadRef),
    Platform(Arc<Platform>),
}

// As std's: what is shared through a handle is atomic.
impl UnwindSafe for Thread {}
impl RefUnwindSafe for Thread {}

impl Thread {
    pub(crate) fn from_virtual(thread: ThreadRef) -> Thread {
        Thread(Which::Virtual(thread))
    }

    pub(crate) fn from_platform(platform: Arc<Platform>) -> Thread {
        Thread(Which::Platform(platform))
    }

    /// The virtual thread that it is.
    pub(crate) fn as_virtual(&self) -> Option<&ThreadRef> {
        match &self.0 {
            Which::Virtual(thread) => Some(thread),
            Which::Platform(_) => None,
        }
    }

    /// Returns the identifier of the thread.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// let handle = thread::spawn(|| thread::current().id());
    /// let id = handle.thread().id();
    /// assert_eq!(handle.join().unwrap(), id);
    /// ```
    pub fn id(&self) -> ThreadId {
        let id = match &self.0 {
            Which::Virtual(thread) => thread.id(),
            Which::Platform(platform) => platform.id,
        };
        // Ids start at 1.
        ThreadId(NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX))
    }

    /// Returns the name of the thread, if it was given one.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// let named = thread::Builder::new().name("shuttle".into()).spawn(|| ())?;
    /// assert_eq!(named.thread().name(), Some("shuttle"));
    /// assert_eq!(thread::spawn(|| ()).thread().name(), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Virtual(thread) => thread.name(),
            Which::Platform(platform) => platform.thread.name(),
        }
    }

    /// Returns whether this is a virtual thread.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// assert!(thread::spawn(|| ()).thread().is_virtual());
    /// let platform = std::thread::spawn(|| thread::current().is_virtual());
    /// assert!(!platform.join().unwrap());
    /// ```
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, Which::Virtual(_))
    }

    /// Gives the thread its park permit: the [`park`](super::park) it is in, or the next one,
    /// returns. What happened before this call is visible after that return.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// static READY: AtomicBool = AtomicBool::new(false);
    /// let waiter = thread::spawn(|| while !READY.load(Ordering::Acquire) { thread::park() });
    /// READY.store(true, Ordering::Release);
    /// waiter.thread().unpark();
    /// waiter.join().unwrap();
    /// ```
    #[inline]
    pub fn unpark(&self) {
        if let Some(wakeup) = self.give_permit() {
            wakeup.perform();
        }
    }
}

impl Thread {
    /// Interrupts the thread: asks it to stop waiting, and to come to an end.
    ///
    /// Sets its flag, gives it its park permit, and ends what it waits for:
    ///
    /// | it is in | which then |
    /// |---|---|
    /// | [`sleep_interruptible`](super::sleep_interruptible), [`park_interruptible`](super::park_interruptible), the join of a [scope](mod@crate::scope), … | returns [`Err(Interrupted)`](super::Interrupted), or the like |
    /// | input or output that waits: `read`, `accept`, `connect`, `poll`, `Child::wait`, … | fails with `ECANCELED`: see [`is_interrupt`](super::is_interrupt()) |
    /// | `epoll_wait` | fails, once, with `EINTR`: event loops have their own ways to end |
    /// | [`park`](super::park), [`sleep`](super::sleep), `std::thread::sleep` | returns early, once |
    /// | `Condvar::wait` | returns, once, as spurious wake-ups do, unless a lock has been waited for since the interrupt |
    /// | a lock, a `join`, `mpsc::Receiver::recv`, `std::thread::park` | goes on waiting, without spinning |
    /// | a call on a regular file, a name lookup, a FIFO's `open`, `UnixStream::connect` to a full queue, `wait` for any child | goes on waiting |
    ///
    /// What says *once* does so once for each interrupt, so that a loop around it does not spin;
    /// look at [`thread::is_interrupted`](super::is_interrupted()) in such a loop.
    /// [`on_interrupt`](super::on_interrupt) ends waits that do not hear interrupts. Input and
    /// output fail as long as the flag is set, but only where they would wait: what can be done at
    /// once is done, and no byte that was read or written is lost.
    ///
    /// Some of `std` does not expect such an error, and panics: `Command::output`, and
    /// `Command::spawn` with `pre_exec`, when they have to wait; so does `println!` to a pipe that
    /// is full.
    ///
    /// The flag stays until the thread asks for it by [`take_interrupt`](super::take_interrupt). A
    /// thread that has not started yet finds it at its start.
    ///
    /// On a *platform thread*, the functions of this library hear it (`sleep_interruptible`,
    /// `park`, `park_interruptible`, a scope's `join`, …). What goes straight to the kernel there,
    /// which is all of `std`, does not: there is no way to end a system call of another thread but
    /// a signal, and `std` goes on after signals.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// use std::net::UdpSocket;
    ///
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// let receiver = thread::spawn(move || socket.recv(&mut [0; 16])); // nobody sends
    /// receiver.thread().interrupt();
    /// let error = receiver.join().unwrap().unwrap_err();
    /// assert!(pirn::thread::is_interrupt(&error));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn interrupt(&self) {
        let (wakeup, listened) = self.begin_interrupt();
        if let Some(wakeup) = wakeup {
            wakeup.perform();
        }
        if listened {
            super::listeners::tell(self.id());
        }
    }

    /// Sets the flag, and gives the permit. The caller has to perform the wake, and to tell
    /// [listeners](super::listeners::tell) if there are any.
    pub(crate) fn begin_interrupt(&self) -> (Option<Wakeup>, bool) {
        let word = self.wait_word();
        let interruption = word.interrupt(Outcome::Interrupted as u32);
        let core = self.as_virtual().map(ThreadRef::as_ptr);
        let address = word.atomic().as_ptr();
        let ended = interruption
            .ended
            .map(|decided| Wakeup::new(core, decided, address));
        // It parks, or waits, or does neither: there is one wake at most.
        let unparked = self.give_permit();
        debug_assert!(ended.is_none() || unparked.is_none());
        (ended.or(unparked), interruption.listened)
    }

    /// Gives the park permit. The caller has to perform the wake of a virtual thread.
    #[inline(always)]
    fn give_permit(&self) -> Option<Wakeup> {
        match &self.0 {
            Which::Virtual(thread) => {
                let parked = thread.permit.unpark();
                parked.then(|| Wakeup::Virtual(thread.as_ptr()))
            }
            Which::Platform(platform) => {
                platform.thread.unpark();
                None
            }
        }
    }

    /// Returns whether the thread has been interrupted. Leaves the flag as it is.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// let sleeper = thread::spawn(|| while !thread::is_interrupted() { thread::park() });
    /// assert!(!sleeper.thread().is_interrupted());
    /// sleeper.thread().interrupt();
    /// sleeper.join().unwrap();
    /// ```
    pub fn is_interrupted(&self) -> bool {
        self.wait_word().is_interrupted()
    }

    /// Lends it the calling thread, which is about to wait for it, as its carrier: if it is a
    /// virtual thread that has not begun, and the calling one is a platform thread.
    pub(crate) fn lend_to(&self) {
        if let Some(thread) = self.as_virtual()
            && vthread::current().is_none()
        {
            crate::sched::lend(thread);
        }
    }

    /// Where its interruptible waits are decided.
    pub(crate) fn wait_word(&self) -> &WaitWord {
        match &self.0 {
            Which::Virtual(thread) => &thread.wait,
            Which::Platform(platform) => &platform.wait,
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
            Which::Platform(platform) => write!(f, "Thread[#{}{name}]", platform.id),
            Which::Virtual(thread) => {
                let state = match thread.phase() {
                    Phase::New => "new",
                    Phase::Runnable => "runnable",
                    Phase::Running => "running",
                    Phase::Waiting => "waiting",
                    Phase::Terminated => "terminated",
                };
                write!(f, "VirtualThread[#{}{name}]/{state}", thread.id())?;
                match thread.carrier_number() {
                    Some(number) => write!(f, "@{}", carrier_name(number)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Returns a handle to the running thread.
///
/// # Examples
/// ```
/// let virtually = pirn::thread::spawn(|| pirn::thread::current().is_virtual()).join().unwrap();
/// assert!(virtually);
/// ```
pub fn current() -> Thread {
    match vthread::current() {
        Some(core) => Thread(Which::Virtual(core.to_ref())),
        None => Thread(Which::Platform(platform::current())),
    }
}
