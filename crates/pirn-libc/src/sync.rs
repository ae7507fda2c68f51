//! C's locks: `pthread.h`, `semaphore.h`.
//!
//! glibc's own waiting is a futex call inside libc, which does not reach this code. It would block
//! the carrier, and a parked holder of the lock could need that very carrier to go on. So a virtual
//! thread only ever *tries* glibc's operations, and parks where they return "busy". The objects
//! stay glibc's, with its knowledge of recursion and owners: a virtual thread has a thread id of
//! its own there.
//!
//! | | virtual threads | platform threads |
//! |---|---|---|
//! | [`mutex`] | `trylock`, parking lot | libc's, and a look for virtual waiters when unlocking |
//! | [`rwlock`] | the same | the same |
//! | [`semaphore`] | `trywait`, parking lot | the same |
//! | [`cond`] | ours, on our futexes | ours: libc's would unlock the mutex out of our sight |
//! | [`barrier`], [`once`] | ours, on our futexes | ours |
//! | spinlocks ([`mutex`]) | `trylock`, parking lot, with a look from time to time | the same |
//!
//! C11's names for the same are in `thread/aliases.rs`. Functions that never wait (`init`,
//! `destroy`, `trylock`) are libc's.
//!
//! Mutexes, locks for reading and writing, and semaphores share one way to wait ([`acquire`]), and
//! list their functions in tables. Condition variables' are written by hand, because a
//! cancellation unwinds out of them.
//!
//! An object shared between processes may be released by a process without Pirn. A virtual thread
//! tries such objects again from time to time ([`Recheck`]).

pub(crate) mod barrier;
pub(crate) mod by_stand_in;
pub(crate) mod cond;
mod layout;
pub(crate) mod mutex;
pub mod once;
pub mod robust;
pub(crate) mod rwlock;
pub(crate) mod semaphore;

#[cfg(feature = "dump")]
pub use layout::owner_of;
pub(crate) use layout::{check as check_layout, is_held_once, owns};

use crate::{Time, virtual_thread};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};
use libc::{clockid_t, pthread_mutex_t};
use pirn_rt::blocking::parking_lot::{self, Parked};
use pirn_rt::sched::safepoint::{self, Ran};
use pirn_rt::sched::simulation::{self, Point};
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::WaitReason;
use pirn_rt::vthread::wait_word::Interruptible;

/// Kinds of objects in the parking lot. A key is the object's address with the kind in its two low
/// bits, so that a late wake for a futex that was at the same address is not taken for one of the
/// object's.
#[derive(Clone, Copy)]
enum KeyKind {
    Lock = parking_lot::LOCK as isize,
    Semaphore = 3,
}

/// Returns the key of an object.
fn key<T>(object: *const T, kind: KeyKind) -> usize {
    object as usize | kind as usize
}

/// Returns an absolute time on `clock` as a deadline. `EINVAL` if it is not a valid time.
///
/// # Safety
/// `time` points to a timespec.
pub(crate) unsafe fn deadline(clock: clockid_t, time: Time) -> Result<Deadline, c_int> {
    // SAFETY: the caller's contract.
    let time = unsafe { &*time };
    if !(0..1_000_000_000).contains(&time.tv_nsec) {
        return Err(libc::EINVAL);
    }
    match clock {
        libc::CLOCK_MONOTONIC => Ok(Deadline::from_nanos(sys::nanos(time))),
        libc::CLOCK_REALTIME => {
            let left = sys::nanos(time).saturating_sub(sys::clock(clock));
            Ok(Deadline::after_nanos(left))
        }
        _ => Err(libc::EINVAL),
    }
}

/// The clock and the time at which a wait ends, as the program has given them; `None`: never.
type Until = Option<(clockid_t, Time)>;

/// Returns that time as a deadline. `EINVAL` if it is not a valid time.
///
/// # Safety
/// The time points to a timespec.
unsafe fn end_of(until: Until) -> Result<Deadline, c_int> {
    // SAFETY: the caller's contract.
    until.map_or(Ok(Deadline::NEVER), |(clock, time)| unsafe {
        deadline(clock, time)
    })
}

/// The time of the next attempt for an object that may be released without a look into the lot:
/// after a millisecond, then less and less often.
struct Recheck {
    step: Option<u64>,
}

impl Recheck {
    const FIRST: u64 = 1_000_000;
    const LAST: u64 = 16_000_000;

    /// Returns the times for an object; `unseen`: it may be released without a look into the lot.
    fn new(unseen: bool) -> Recheck {
        Recheck {
            step: unseen.then_some(Recheck::FIRST),
        }
    }

    /// Returns the end of this wait.
    fn until(&mut self, deadline: Deadline) -> Deadline {
        let Some(step) = self.step else {
            return deadline;
        };
        self.step = Some((2 * step).min(Recheck::LAST));
        deadline.min(Deadline::after_nanos(step))
    }
}

/// An object of libc's, as a virtual thread waits for it.
struct Waiting {
    /// What dumps show.
    reason: WaitReason,
    deadline: Deadline,
    /// The object's key in the parking lot.
    key: usize,
    /// The bits under which a release finds the thread there.
    bits: u32,
    /// Whether the object may be released without a look into the lot.
    unseen: bool,
    /// Whether an interrupt ends the wait, with `EINTR`.
    interruptible: Interruptible,
}

impl Waiting {
    /// Runs the handlers of signals. Returns whether the wait fails: only waits for semaphores do.
    #[cold]
    fn fails_after_signals(&self) -> bool {
        let is_semaphore = self.key & 3 == KeyKind::Semaphore as usize;
        match safepoint::run_pending() {
            Ran::Nothing => false,
            Ran::Restarting => is_semaphore && !self.deadline.is_never(),
            Ran::Interrupting => is_semaphore,
        }
    }

    /// Parks the running thread until `attempt` returns something other than `busy`, and returns
    /// that; or `ETIMEDOUT`, after the deadline.
    ///
    /// `attempt` also runs under the lock of the lot's bucket: it must not block. Every operation
    /// that makes it succeed must look into the lot afterwards, unless the object is `unseen`.
    fn acquire(&self, busy: c_int, attempt: impl Fn() -> c_int) -> c_int {
        let mut recheck = Recheck::new(self.unseen);
        let reason = match self.unseen {
            true => self.reason.looking(),
            false => self.reason,
        };
        loop {
            let mut result = busy;
            let until = recheck.until(self.deadline);
            let parked = parking_lot::park(
                self.key,
                self.bits,
                until,
                self.interruptible,
                |_| reason,
                || {
                    result = attempt();
                    result == busy
                },
            );
            match parked {
                Parked::Invalid => {}
                Parked::SafePoint if self.fails_after_signals() => return libc::EINTR,
                _ => result = attempt(),
            }
            if result != busy {
                return result;
            }
            if parked == Parked::Interrupted {
                return libc::EINTR;
            }
            if parked == Parked::TimedOut && self.deadline.has_passed() {
                return libc::ETIMEDOUT;
            }
        }
    }
}

/// Acquires an object of libc's on a virtual thread: tries, then parks and tries again. `busy` is
/// the result of an attempt while others have the object.
///
/// Before a wait it calls `prepare`, which says how to wait, and whose error is the result.
#[inline]
fn acquire(
    busy: c_int,
    attempt: impl Fn() -> c_int,
    prepare: impl FnOnce() -> Result<Waiting, c_int>,
) -> c_int {
    simulation::point(Point::Lock);
    let result = attempt();
    if result != busy {
        return result;
    }
    match prepare() {
        Ok(waiting) => waiting.acquire(busy, attempt),
        Err(e) => e,
    }
}

/// Locks something of libc's that can only be tried, on a virtual thread: tries, then parks and
/// tries again. It may be [released] without a look into the lot.
///
/// Dumps show `call`.
pub(crate) fn lock_by_trying<T>(call: &'static CStr, object: *const T, attempt: impl Fn() -> bool) {
    let attempt = || if attempt() { 0 } else { libc::EBUSY };
    let prepare = || {
        Ok(Waiting {
            reason: WaitReason::call(call),
            deadline: Deadline::NEVER,
            key: key(object, KeyKind::Lock),
            bits: 1,
            unseen: true,
            interruptible: Interruptible::Never,
        })
    };
    acquire(libc::EBUSY, attempt, prepare);
}

/// A lock of virtual threads around one of libc's own, under which libc calls the program.
pub(crate) struct Recursive(UnsafeCell<pthread_mutex_t>);

// SAFETY: a mutex.
unsafe impl Sync for Recursive {}

impl Recursive {
    pub(crate) const fn new() -> Recursive {
        Recursive(UnsafeCell::new(
            libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
        ))
    }

    /// Calls `f`; a virtual thread holds the lock meanwhile, and parks until it gets the lock.
    pub(crate) fn while_locked<R>(&self, f: impl FnOnce() -> R) -> R {
        if virtual_thread().is_none() {
            return f();
        }
        let mutex = self.0.get();
        // SAFETY: an initialised mutex; this thread unlocks it.
        unsafe {
            mutex::pthread_mutex_lock(mutex);
            let result = f();
            mutex::pthread_mutex_unlock(mutex);
            result
        }
    }

    /// Unlocks the lock.
    ///
    /// # Safety
    /// In the child of a fork, by its only thread.
    pub(crate) unsafe fn renew(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.0.get().write(Recursive::new().0.into_inner()) };
    }
}

/// Wakes one that waits in [`lock_by_trying`].
pub(crate) fn released<T>(object: *const T) {
    let key = key(object, KeyKind::Lock);
    if parking_lot::any_waiting(key) {
        parking_lot::unpark(key, 1, 1);
    }
}
