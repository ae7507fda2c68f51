//! Parking, at the thread's own permit or at one apart from it; sleeping and yielding.

use super::Interrupted;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use pirn_rt::blocking;
use pirn_rt::blocking::notify::Notify;
use pirn_rt::blocking::timer::Timer;
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::no_suspend::{self, NoSuspend};
use pirn_rt::sched::Runtime;
use pirn_rt::sched::safepoint;
use pirn_rt::sched::{self, preempt};
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;
use pirn_rt::vthread::{self, Current};
use std::time::{Duration, Instant};

/// Parks the running thread until its permit is available, and takes the permit.
///
/// May return spuriously, as [`std::thread::park`] may. On a platform thread it *is* that function.
/// An [interrupt](super::Thread::interrupt) makes the permit available, and so ends one `park`;
/// [`park_interruptible`](super::park_interruptible) reports it.
///
/// # Examples
/// ```
/// use pirn::thread;
/// let parked = thread::spawn(thread::park);
/// parked.thread().unpark();
/// parked.join().unwrap();
/// ```
pub fn park() {
    match vthread::current() {
        Some(core) => park_virtual(core, PERMIT, Deadline::NEVER),
        None => std::thread::park(),
    }
}

/// Does what [`park`] does. Dumps show `reason`: what the permit stands for.
pub(super) fn park_for(reason: WaitReason) {
    match vthread::current() {
        Some(core) => park_virtual(core, reason, Deadline::NEVER),
        None => std::thread::park(),
    }
}

/// Parks the running thread until its permit is available or `timeout` has passed.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// pirn::thread::spawn(|| pirn::thread::park_timeout(Duration::from_millis(1))).join().unwrap();
/// ```
pub fn park_timeout(timeout: Duration) {
    match vthread::current() {
        Some(core) => {
            park_virtual(core, PERMIT, Deadline::after(timeout));
        }
        None => std::thread::park_timeout(timeout),
    }
}

/// What a parked thread waits for.
const PERMIT: WaitReason = WaitReason::new(Kind::Park, 0);

/// Parks a virtual thread. `reason` as for [`park_for`].
fn park_virtual(core: Current, reason: WaitReason, deadline: Deadline) {
    if no_suspend::is_on() {
        // In the handler of a fault, below which there is a frame of the kernel's: it never parks.
        // The caller takes this for a spurious return.
        if !core.permit.try_consume() {
            sys::os_yield();
        }
        return;
    }
    // A handler that ran from here on, and that waited, would use up the wake of this park.
    let section = NoSuspend::new();
    if core.permit.try_consume() || !core.permit.begin_park() {
        drop(section);
        // It may be a safe point request's.
        safepoint::run_if_requested();
        return;
    }
    core.wait_info.begin(reason);
    if deadline.is_never() {
        sched::mount::park_until_wake(core);
    } else {
        core.wait_info.until(deadline);
        let timer = Timer::for_permit(&core);
        // SAFETY: it is disarmed below, and the running thread stays.
        unsafe { timer.arm(Runtime::of(&core), deadline) };
        sched::mount::park_until_wake(core);
        timer.disarm();
    }
    core.permit.end_park();
    drop(section);
    safepoint::run_if_requested();
}

/// Puts the running thread to sleep for at least `duration`. Returns at once if that is zero, as
/// [`std::thread::sleep`] does; [`yield_now`] lets others run.
///
/// Returns early, once, on a virtual thread that is [interrupted](super::Thread::interrupt), and so
/// does [`std::thread::sleep`]; [`sleep_interruptible`](super::sleep_interruptible) reports the
/// interrupt.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let start = Instant::now();
/// pirn::thread::spawn(|| pirn::thread::sleep(Duration::from_millis(2))).join().unwrap();
/// assert!(start.elapsed() >= Duration::from_millis(2));
/// ```
pub fn sleep(duration: Duration) {
    match vthread::current() {
        // Not a yield: a server whose handler slept for its delay of zero had its requests cut in
        // two by 10,000 others, and was behind with them by a fifth.
        Some(_) if duration.is_zero() => drop(safepoint::run_if_requested()),
        Some(_) => {
            blocking::sleep_until(Deadline::after(duration), Interruptible::OnceInSleep);
        }
        None => std::thread::sleep(duration),
    }
}

/// Puts the running thread to sleep until `deadline`. Returns at once if that has passed.
///
/// Returns early, once, on a virtual thread that is [interrupted](super::Thread::interrupt).
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let deadline = Instant::now() + Duration::from_millis(2);
/// pirn::thread::sleep_until(deadline);
/// assert!(Instant::now() >= deadline);
/// ```
pub fn sleep_until(deadline: Instant) {
    let left = || deadline.saturating_duration_since(Instant::now());
    if vthread::current().is_some() {
        return sleep(left());
    }
    loop {
        match left() {
            Duration::ZERO => return,
            left => std::thread::sleep(left),
        }
    }
}

/// Lets other threads run: the running virtual thread goes to the back of its carrier's queue.
///
/// If no other virtual thread can run there, the carrier gives its core to other OS threads, as
/// [`std::thread::yield_now`] does. So a loop that yields until a platform thread has done its part
/// does not use up that thread's processor time.
///
/// # Examples
/// ```
/// pirn::thread::spawn(pirn::thread::yield_now).join().unwrap();
/// ```
pub fn yield_now() {
    match vthread::parkable() {
        Some(core) => sched::yield_now(core),
        None => std::thread::yield_now(),
    }
}

/// Calls `f`, in which the running thread is not preempted.
///
/// A thread that computes for long is put aside in the middle of its code, so that others run
/// ([`Config::time_slice`](crate::Config::time_slice)). That is as invisible as it is to platform
/// threads. This function is for code that cares: that measures how long it takes, say, or uses
/// what belongs to the carrier and not to the thread, such as its CPU clock.
///
/// The thread may still wait, and other threads run then. On a platform thread, this function only
/// calls `f`.
///
/// # Examples
/// ```
/// use std::time::Instant;
/// pirn::thread::spawn(|| {
///     let elapsed = pirn::thread::no_preemption(|| {
///         let begin = Instant::now();
///         std::hint::black_box((0..1000).sum::<u64>());
///         begin.elapsed() // without the time of other virtual threads
///     });
///     assert!(elapsed.as_secs() < 10);
/// })
/// .join()
/// .unwrap();
/// ```
pub fn no_preemption<R>(f: impl FnOnce() -> R) -> R {
    preempt::without(f)
}

/// A permit in a place of its own, for which one thread at a time waits, and which any thread
/// gives.
///
/// [`park`](super::park) has one permit per thread, which all code on that thread shares, so it may
/// return because of a permit for other code. A wait for a `Parker` ends because
/// [`unpark`](Self::unpark) was called on it, or for a reason that is returned. It allocates
/// nothing, and may lie on the stack. At most one permit is kept.
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
pub struct Parker(Notify);

impl Parker {
    /// Returns a parker without a permit.
    pub const fn new() -> Parker {
        Parker(Notify::new())
    }

    /// Waits until there is a permit, and takes it.
    ///
    /// What the thread that gave it did before happens before this returns.
    ///
    /// # Panics
    /// If another thread waits here.
    pub fn park(&self) {
        let outcome = self.wait(Deadline::NEVER, Interruptible::Never);
        debug_assert_eq!(outcome, Outcome::Ready, "nothing else ends this wait");
    }

    /// Waits until there is a permit, and takes it; but not longer than until `deadline`. Returns
    /// false if that has passed without one.
    ///
    /// # Panics
    /// If another thread waits here.
    pub fn park_until(&self, deadline: Instant) -> bool {
        self.wait(Deadline::at(deadline), Interruptible::Never) == Outcome::Ready
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
        match self.wait(Deadline::NEVER, Interruptible::Always) {
            Outcome::Ready => Ok(()),
            _ => Err(Interrupted),
        }
    }

    /// Does what [`park_interruptible`](Self::park_interruptible) does, until `deadline` at the
    /// latest. Returns `false` if the deadline has passed without a permit.
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
        match self.wait(Deadline::at(deadline), Interruptible::Always) {
            Outcome::Ready => Ok(true),
            Outcome::TimedOut => Ok(false),
            _ => Err(Interrupted),
        }
    }

    /// Makes the permit available, and wakes the thread that waits for it. If there is a permit
    /// already, nothing changes.
    pub fn unpark(&self) {
        self.0.notify();
    }

    fn wait(&self, deadline: Deadline, interruptible: Interruptible) -> Outcome {
        blocking::wait_past_safe_points(|| self.0.wait(PERMIT, deadline, interruptible))
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
