//! Handles and ids of threads.

use core::fmt;
use core::num::NonZeroU64;
use pirn_rt::blocking::wait::{Outcome, Wakeup};
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::recorder::kinds;
use pirn_rt::sched::Runtime;
use pirn_rt::sched::recorded;
use pirn_rt::sched::{carrier_name, counters};
use pirn_rt::vthread::identity::Platform;
use pirn_rt::vthread::record::State;
use pirn_rt::vthread::wait_word::{InterruptEffect, WaitWord};
use pirn_rt::vthread::{self, Claimed, ThreadRef};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// A unique identifier of a thread, virtual or platform. It is never used again in the same
/// process.
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
    /// Returns the number, by which dumps name the thread. Numbers grow; none is used again in the
    /// same process.
    pub fn as_u64(self) -> NonZeroU64 {
        self.0
    }

    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadId").field(&self.0).finish()
    }
}

/// What a virtual thread is doing. See [`Thread::state`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ThreadState {
    /// The thread has not been mounted yet.
    New,
    /// The thread waits for a carrier.
    Runnable,
    /// The thread is mounted on a carrier.
    Running,
    /// The thread is parked: it sleeps, or waits for a lock, a descriptor, another thread, ….
    Waiting,
    /// The thread has ended.
    Terminated,
}

impl fmt::Display for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ThreadState::New => "new",
            ThreadState::Runnable => "runnable",
            ThreadState::Running => "running",
            ThreadState::Waiting => "waiting",
            ThreadState::Terminated => "terminated",
        })
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

// Like std's handle: a handle gives shared access to atomics only.
impl UnwindSafe for Thread {}
impl RefUnwindSafe for Thread {}

impl Thread {
    pub(crate) fn from_virtual(thread: ThreadRef) -> Thread {
        Thread(Which::Virtual(thread))
    }

    /// Returns the virtual thread, if it is one.
    pub(crate) fn as_virtual(&self) -> Option<&ThreadRef> {
        match &self.0 {
            Which::Virtual(thread) => Some(thread),
            Which::Platform(_) => None,
        }
    }

    /// Returns the identifier of the thread.
    pub fn id(&self) -> ThreadId {
        let id = match &self.0 {
            Which::Virtual(thread) => thread.id(),
            Which::Platform(platform) => platform.id,
        };
        // Ids start at 1.
        ThreadId(NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX))
    }

    /// Returns the name of the thread, if it was given one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Virtual(thread) => thread.name(),
            Which::Platform(platform) => platform.thread.name(),
        }
    }

    /// Returns whether this is a virtual thread.
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, Which::Virtual(_))
    }

    /// Returns what the thread is doing at the moment; `None` for a platform thread, whose state
    /// the kernel has.
    ///
    /// The state may have changed when this returns: it is for monitoring, and for tests that wait
    /// until a thread waits.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::{self, ThreadState};
    ///
    /// let parked = thread::spawn(thread::park);
    /// while parked.thread().state() != Some(ThreadState::Waiting) {
    ///     thread::yield_now(); // It has not come that far.
    /// }
    /// parked.thread().unpark();
    /// parked.join().unwrap();
    /// ```
    pub fn state(&self) -> Option<ThreadState> {
        Some(match self.as_virtual()?.state() {
            State::New => ThreadState::New,
            State::Runnable => ThreadState::Runnable,
            State::Running => ThreadState::Running,
            State::Waiting => ThreadState::Waiting,
            State::Terminated => ThreadState::Terminated,
        })
    }

    /// Returns the stack of the thread at this moment; `None` for a platform thread, and for one
    /// that has not begun, has ended, or moves too fast to be looked at.
    ///
    /// Takes some milliseconds. A thread that runs is stopped for some microseconds. Needs the
    /// feature `dump`.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    ///
    /// fn waits_for_orders() {
    ///     thread::park();
    /// }
    /// let waits = thread::spawn(waits_for_orders);
    /// let has_come = || {
    ///     let stack = waits.thread().stack()?;
    ///     stack.frames().into_iter().find(|frame| frame.contains("waits_for_orders"))
    /// };
    /// while has_come().is_none() {
    ///     thread::yield_now();
    /// }
    /// waits.thread().unpark();
    /// waits.join().unwrap();
    /// ```
    #[doc(alias = "getStackTrace")]
    #[cfg(feature = "dump")]
    pub fn stack(&self) -> Option<pirn_observe::dump::ThreadStack> {
        let core = self.as_virtual()?;
        pirn_observe::dump::stack_of_thread(core.slot()?, core.id())
    }

    /// Makes the thread's park permit available: the thread's current or next [`park`](super::park)
    /// returns. What happened before this call is visible after that return.
    #[inline]
    pub fn unpark(&self) {
        if let Some(wakeup) = self.give_permit() {
            wakeup.perform();
        }
    }
}

impl Thread {
    /// Interrupts the thread: asks it to stop waiting, and to end.
    ///
    /// Sets the thread's interrupt flag, makes its park permit available, and ends its wait:
    ///
    /// | the thread is in | which then |
    /// |---|---|
    /// | [`sleep_interruptible`](super::sleep_interruptible), [`park_interruptible`](super::park_interruptible), the join of a [scope](mod@crate::scope), … | returns [`Err(Interrupted)`](super::Interrupted) or an equivalent error |
    /// | input or output that waits: `read`, `accept`, `connect`, `poll`, `Child::wait`, … | fails with `ECANCELED`: see [`is_interrupt`](super::is_interrupt()) |
    /// | `epoll_wait` | fails, once, with `EINTR`: event loops have their own ways to end |
    /// | [`park`](super::park), [`sleep`](super::sleep), `std::thread::sleep` | returns early, once |
    /// | `Condvar::wait` | returns once, as spurious wake-ups do, unless the thread has waited for a lock since the interrupt |
    /// | a lock, a `join`, `mpsc::Receiver::recv`, `std::thread::park` | goes on waiting, without spinning |
    /// | a call on a regular file, a name lookup, `wait` for any child | goes on waiting |
    ///
    /// *Once* means once per interrupt, so that a loop around the wait does not spin; check
    /// [`thread::is_interrupted`](super::is_interrupted()) in such a loop.
    /// [`on_interrupt`](super::on_interrupt) ends waits that an interrupt does not end by itself.
    /// Input and output fail as long as the flag is set, but only where they would wait: a call
    /// that can proceed at once does, and no byte that was read or written is lost.
    ///
    /// Parts of `std` do not expect such an error and panic: `Command::output`, and
    /// `Command::spawn` with `pre_exec`, if they have to wait, and `println!` to a pipe that is
    /// full.
    ///
    /// The flag stays set until the thread clears it by [`take_interrupt`](super::take_interrupt).
    /// A thread that has not started yet finds the flag set when it starts.
    ///
    /// On a *platform thread*, an interrupt ends the waits of this library's functions
    /// (`sleep_interruptible`, `park`, `park_interruptible`, a scope's `join`, …). It does not end
    /// system calls, and therefore no wait in `std`: only a signal ends a system call of another
    /// thread, and `std` retries after signals.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// use std::net::UdpSocket;
    ///
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// let receiver = thread::spawn(move || socket.recv(&mut [0; 16])); // nothing comes
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
            super::interrupt::tell_listeners(self.id());
        }
    }

    /// Sets the flag and makes the permit available. The caller must perform the wakeup, and tell
    /// the [listeners](super::interrupt::tell_listeners) if there are any.
    pub(crate) fn begin_interrupt(&self) -> (Option<Wakeup>, bool) {
        self.begin_by(WaitWord::interrupt)
    }

    /// Does what [`begin_interrupt`](Self::begin_interrupt) does, because a deadline for a call of
    /// this thread has passed.
    pub(crate) fn begin_expiry(&self) -> (Option<Wakeup>, bool) {
        self.begin_by(WaitWord::expire)
    }

    fn begin_by(&self, set: fn(&WaitWord, u32) -> InterruptEffect) -> (Option<Wakeup>, bool) {
        let word = self.wait_word();
        recorded::event(
            kinds::INTERRUPT,
            self.as_virtual().map_or(0, |core| core.id()),
        );
        let section = NoSuspend::new();
        let interruption = set(word, Outcome::Interrupted as u32);
        if let Some(thread) = self.as_virtual() {
            counters::note(Runtime::of(thread), |counters| &counters.interrupts);
        }
        let core = self.as_virtual().map(ThreadRef::as_ptr);
        let address = word.atomic().as_ptr();
        let ended = interruption
            .ended
            // SAFETY: decided by us, in the word of this thread.
            .map(|decided| unsafe { Wakeup::new(core, decided, address, section) });
        // The thread either parks or waits, so there is at most one wakeup.
        let unparked = self.give_permit();
        debug_assert!(ended.is_none() || unparked.is_none());
        (ended.or(unparked), interruption.listened)
    }

    /// Makes the park permit available. The caller must perform the wakeup of a virtual thread.
    #[inline(always)]
    fn give_permit(&self) -> Option<Wakeup> {
        match &self.0 {
            Which::Virtual(thread) => {
                let section = NoSuspend::new();
                let parked = thread.permit.unpark();
                // SAFETY: the permit has given us the duty to wake the thread.
                parked.then(|| Wakeup::Virtual(unsafe { Claimed::new(thread.as_ptr(), section) }))
            }
            Which::Platform(platform) => {
                platform.thread.unpark();
                None
            }
        }
    }

    /// Returns whether the thread has been interrupted. Does not clear the flag.
    pub fn is_interrupted(&self) -> bool {
        self.wait_word().is_interrupted()
    }

    /// Returns the word that decides the thread's interruptible waits.
    pub(crate) fn wait_word(&self) -> &WaitWord {
        match &self.0 {
            Which::Virtual(thread) => &thread.wait,
            Which::Platform(platform) => &platform.wait,
        }
    }
}

/// Shows the id, the name, the state, and the carrier on which the thread is mounted, in Loom's
/// format: `VirtualThread[#24,name]/running@carrier-1`.
impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self
            .name()
            .map(|name| format!(",{name}"))
            .unwrap_or_default();
        match &self.0 {
            Which::Platform(platform) => write!(f, "Thread[#{}{name}]", platform.id),
            Which::Virtual(thread) => {
                write!(f, "VirtualThread[#{}{name}]", thread.id())?;
                if let Some(state) = self.state() {
                    write!(f, "/{state}")?;
                }
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
        None => Thread(Which::Platform(Platform::current())),
    }
}
