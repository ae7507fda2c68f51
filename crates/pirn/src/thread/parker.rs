//! A place to park at, apart from the thread's own permit.

use super::Interrupted;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use pirn_rt::blocking::notice::Notice;
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::{Awaited, Kind};
use pirn_rt::vthread::summons;
use pirn_rt::vthread::wait_word::Hearing;
use std::time::Instant;

/// What a thread that is parked here waits for.
const PERMIT: Awaited = Awaited::new(Kind::Park, 0);

/// A permit in a place of its own, for which one thread at a time waits, and which any thread
/// gives.
///
/// [`park`](super::park) has one permit per thread, which all code on that thread shares, so it may
/// return for somebody else's reasons. A wait for a `Parker` ends because [`unpark`](Self::unpark)
/// was called on it, and for no other reason that is not returned. It allocates nothing, and may
/// lie on the stack. At most one permit is kept.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Parker};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// struct Answer {
///     value: AtomicU32,
///     is_given: Parker,
/// }
/// let answer = Arc::new(Answer { value: AtomicU32::new(0), is_given: Parker::new() });
/// let giver = Arc::clone(&answer);
/// thread::spawn(move || {
///     giver.value.store(42, Ordering::Relaxed);
///     giver.is_given.unpark();
/// });
/// answer.is_given.park();
/// assert_eq!(answer.value.load(Ordering::Relaxed), 42);
/// ```
///
/// On the stack, with a time limit:
/// ```
/// use pirn::thread::{self, Parker};
/// use std::time::{Duration, Instant};
///
/// let parker = Parker::new();
/// thread::scope(|s| {
///     s.spawn(|| parker.unpark());
///     assert!(parker.park_until(Instant::now() + Duration::from_secs(60)));
/// });
/// ```
pub struct Parker(Notice);

impl Parker {
    /// Returns a parker without a permit.
    pub const fn new() -> Parker {
        Parker(Notice::new())
    }

    /// Waits until there is a permit, and takes it.
    ///
    /// What the thread that gave it did before happens before this returns.
    ///
    /// # Panics
    /// If another thread waits here.
    pub fn park(&self) {
        let outcome = self.wait(Deadline::NEVER, None);
        debug_assert_eq!(outcome, Outcome::Ready, "nothing else ends this wait");
    }

    /// Waits until there is a permit, and takes it; but not longer than until `deadline`. Returns
    /// false if that has passed without one.
    ///
    /// # Panics
    /// If another thread waits here.
    pub fn park_until(&self, deadline: Instant) -> bool {
        self.wait(Deadline::at(deadline), None) == Outcome::Ready
    }

    /// Waits until there is a permit, and takes it, or until the thread is
    /// [interrupted](super::Thread::interrupt).
    ///
    /// # Errors
    /// [`Interrupted`], if there is no permit and the thread is or has been interrupted. The flag
    /// stays set.
    ///
    /// # Panics
    /// If another thread waits here.
    pub fn park_interruptible(&self) -> Result<(), Interrupted> {
        match self.wait(Deadline::NEVER, Some(Hearing::Always)) {
            Outcome::Ready => Ok(()),
            _ => Err(Interrupted),
        }
    }

    /// Does the same, but not longer than until `deadline`. Returns false if that has passed
    /// without a permit.
    ///
    /// # Errors
    /// [`Interrupted`], if there is no permit and the thread is or has been interrupted. The flag
    /// stays set.
    ///
    /// # Panics
    /// If another thread waits here.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::{self, Interrupted, Parker};
    /// use std::time::{Duration, Instant};
    ///
    /// let parker = Parker::new();
    /// let soon = || Instant::now() + Duration::from_millis(1);
    /// assert_eq!(parker.park_until_interruptible(soon()), Ok(false));
    /// thread::current().interrupt();
    /// assert_eq!(parker.park_until_interruptible(soon()), Err(Interrupted));
    /// parker.unpark(); // a permit counts for more than an interrupt
    /// assert_eq!(parker.park_until_interruptible(soon()), Ok(true));
    /// # thread::take_interrupt();
    /// ```
    pub fn park_until_interruptible(&self, deadline: Instant) -> Result<bool, Interrupted> {
        match self.wait(Deadline::at(deadline), Some(Hearing::Always)) {
            Outcome::Ready => Ok(true),
            Outcome::TimedOut => Ok(false),
            _ => Err(Interrupted),
        }
    }

    /// Makes the permit available, and wakes the thread that waits for it. If there is a permit
    /// already, nothing changes.
    pub fn unpark(&self) {
        self.0.give();
    }

    fn wait(&self, deadline: Deadline, hearing: Option<Hearing>) -> Outcome {
        loop {
            match self.0.wait(PERMIT, deadline, hearing) {
                Outcome::Summoned => drop(summons::attend()),
                outcome => return outcome,
            }
        }
    }
}

// A panic leaves a permit, or none.
impl UnwindSafe for Parker {}
impl RefUnwindSafe for Parker {}

impl Default for Parker {
    fn default() -> Parker {
        Parker::new()
    }
}

impl fmt::Debug for Parker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parker").finish_non_exhaustive()
    }
}
