//! A counted bound on what threads do at once.
//!
//! A permit that is given back while threads wait goes to the first of them directly, before it can
//! be counted as free: a thread that comes later cannot overtake. The invariant, under the lock:
//! there are free permits only if no thread in the queue can still be claimed.

use super::Interrupted;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use pirn_rt::blocking;
use pirn_rt::blocking::list::{Linked, Links, List};
use pirn_rt::blocking::wait::{Outcome, Wait, WakeList};
use pirn_rt::lock::Lock;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;
use std::time::Duration;

/// A number of permits, for a bound on what threads do at once: requests to a database, say, or
/// open files.
///
/// Virtual threads are not pooled, so a pool's size bounds nothing: a semaphore does. (In a scope,
/// [`Builder::limit`](crate::scope::Builder::limit) bounds the subtasks.) It is fair: threads get
/// permits in the order in which they began to wait. Platform threads may use it as well.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Semaphore};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static CONNECTIONS: Semaphore = Semaphore::new(2);
/// static OPEN: AtomicU32 = AtomicU32::new(0);
///
/// thread::scope(|s| {
///     for _ in 0..10 {
///         s.spawn(|| {
///             let _permit = CONNECTIONS.acquire();
///             assert!(OPEN.fetch_add(1, Ordering::Relaxed) < 2);
///             thread::yield_now(); // or ask the database
///             OPEN.fetch_sub(1, Ordering::Relaxed);
///         });
///     }
/// });
/// ```
pub struct Semaphore(Lock<Inner>);

struct Inner {
    free: usize,
    queue: List<Waiter>,
}

/// A thread that waits for a permit, on its stack.
struct Waiter {
    wait: Wait,
    links: Links<Waiter>,
}

impl Linked for Waiter {
    fn links(&self) -> &Links<Waiter> {
        &self.links
    }
}

impl Semaphore {
    /// Returns a semaphore with this many permits.
    pub const fn new(permits: usize) -> Semaphore {
        Semaphore(Lock::new(Inner {
            free: permits,
            queue: List::new(),
        }))
    }

    /// Waits for a permit.
    ///
    /// An interrupt does not end this wait;
    /// [`acquire_interruptible`](Self::acquire_interruptible) is for that.
    pub fn acquire(&self) -> Permit<'_> {
        let outcome = self.wait(Deadline::NEVER, Interruptible::Never);
        debug_assert_eq!(outcome, Outcome::Ready, "nothing else ends this wait");
        Permit(self)
    }

    /// Returns a permit if there is a free one.
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        let mut inner = self.0.lock();
        inner.free = inner.free.checked_sub(1)?;
        Some(Permit(self))
    }

    /// Waits for a permit as [`acquire`](Self::acquire) does, which no interrupt ends, but at most
    /// for `timeout`.
    pub fn acquire_timeout(&self, timeout: Duration) -> Option<Permit<'_>> {
        let outcome = self.wait(Deadline::after(timeout), Interruptible::Never);
        (outcome == Outcome::Ready).then(|| Permit(self))
    }

    /// Waits for a permit, unless the running thread is
    /// [interrupted](super::Thread::interrupt).
    ///
    /// # Errors
    /// [`Interrupted`], if there is no free permit and the thread is or has been interrupted. The
    /// flag stays set.
    pub fn acquire_interruptible(&self) -> Result<Permit<'_>, Interrupted> {
        match self.wait(Deadline::NEVER, Interruptible::Always) {
            Outcome::Ready => Ok(Permit(self)),
            _ => Err(Interrupted),
        }
    }

    /// Adds permits to those that the semaphore began with.
    pub fn add_permits(&self, mut count: usize) {
        let mut wakes = WakeList::new();
        loop {
            let mut inner = self.0.lock();
            while count > 0
                && !wakes.is_full()
                && let Some(first) = inner.queue.take_first()
            {
                // `None`: another reason has ended its wait.
                if let Some(wakeup) = first.wait.claim(Outcome::Ready) {
                    wakes.push(wakeup);
                    count -= 1;
                }
            }
            let is_done = !wakes.is_full();
            if is_done {
                inner.free = inner.free.saturating_add(count);
            }
            drop(inner);
            wakes.perform();
            if is_done {
                return;
            }
        }
    }

    /// Returns the number of permits that are free at the moment, for statistics.
    pub fn available_permits(&self) -> usize {
        self.0.lock().free
    }

    /// Takes a permit. Returns `Ready`, or the reason why the wait has ended without one.
    pub(crate) fn wait(&self, deadline: Deadline, interruptible: Interruptible) -> Outcome {
        // After the handler of a signal the thread waits at the end of the queue.
        blocking::wait_past_safe_points(|| self.wait_once(deadline, interruptible))
    }

    /// Does what [`wait`](Self::wait) does, until a safe point is requested.
    fn wait_once(&self, deadline: Deadline, interruptible: Interruptible) -> Outcome {
        let mut inner = self.0.lock();
        if let Some(left) = inner.free.checked_sub(1) {
            inner.free = left;
            return Outcome::Ready;
        }
        let reason = WaitReason::at(Kind::Semaphore, core::ptr::from_ref(self).addr());
        let waiter = Waiter {
            wait: match Wait::begin(reason, interruptible) {
                Ok(wait) => wait,
                Err(refused) => return refused,
            },
            links: Links::new(),
        };
        // SAFETY: it is in no list, and stays in this frame until it is out of the queue: the
        // thread that claims it as `Ready` has taken it out before; otherwise it is removed below.
        unsafe { inner.queue.append(&waiter) };
        drop(inner);
        let outcome = waiter.wait.block_until(deadline);
        if outcome != Outcome::Ready {
            // SAFETY: it is in no other list.
            unsafe { self.0.lock().queue.remove(&waiter) };
        }
        outcome
    }
}

// A panic leaves the permits that are free, and those that are out.
impl UnwindSafe for Semaphore {}
impl RefUnwindSafe for Semaphore {}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.available_permits())
            .finish_non_exhaustive()
    }
}

/// A permit of a [`Semaphore`], which gets it back when this is dropped.
#[must_use = "the permit is given back when it is dropped"]
#[derive(Debug)]
pub struct Permit<'a>(&'a Semaphore);

impl Permit<'_> {
    /// Takes the permit out of the semaphore for good.
    pub fn forget(self) {
        core::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}
