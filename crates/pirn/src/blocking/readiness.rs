//! Waiting for a descriptor to become readable or writable.
//!
//! Edge-triggered events must not be lost between an attempt that says `EAGAIN` and going to
//! sleep. So each descriptor counts its events, and the protocol is:
//!
//! ```text
//!   1. read the count            the poller, on an event:
//!   2. try the operation           a. lock the waiters
//!   3. EAGAIN: lock the waiters    b. count += 1
//!   4. count changed? go to 1      c. wake who waits
//!   5. join the list, unlock, park
//! ```
//!
//! An event after 2 comes before 3 (then 4 sees it) or after 5 (then c sees us).
//!
//! Among those who want to do the same operation, an event wakes one; it passes the *baton* on when
//! it leaves, because one edge may stand for many bytes or connections. Those who only want to know
//! (`poll`, `select`) are woken all.

use super::fds::{self, Entry};
use super::list::{Linked, Links, List};
use super::wait::{Outcome, Wait, WakeList};
use crate::sys::{Errno, SysResult};
use crate::vthread::wait_word::Hearing;
use core::sync::atomic::Ordering;

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    Read = 0,
    Write = 1,
}

/// The waiting threads of one descriptor, in order of arrival.
pub(crate) type Waiters = List<Waiter>;

/// One thread's interest in one descriptor. It must stay where it is while it is in a list.
pub(crate) struct Waiter {
    wait: *const Wait,
    read: bool,
    write: bool,
    /// It will do the operation, and pass the baton on.
    exclusive: bool,
    links: Links<Waiter>,
}

impl Waiter {
    fn exclusive(wait: &Wait, interest: Interest) -> Waiter {
        Waiter {
            exclusive: true,
            ..Waiter::observer(
                wait,
                interest == Interest::Read,
                interest == Interest::Write,
            )
        }
    }

    /// One that wants to know, and leaves the operation to others.
    pub(crate) fn observer(wait: &Wait, read: bool, write: bool) -> Waiter {
        Waiter {
            wait,
            read,
            write,
            exclusive: false,
            links: Links::new(),
        }
    }

    fn wants(&self, read: bool, write: bool) -> bool {
        self.read && read || self.write && write
    }
}

impl Linked for Waiter {
    fn links(&self) -> &Links<Waiter> {
        &self.links
    }
}

impl Waiters {
    /// Claims those that `report` is for: all observers, and one exclusive waiter a direction.
    /// Returns whether the list of wakes was too short.
    fn claim(
        &mut self,
        mut read: bool,
        mut write: bool,
        everybody: bool,
        outcome: Outcome,
        wakes: &mut WakeList,
    ) -> bool {
        let mut next = self.first();
        // SAFETY: what is in the list is valid while its lock is held.
        while let Some(waiter) = unsafe { next.as_ref() } {
            next = waiter.links.next();
            if !everybody && !waiter.wants(read, write) {
                continue;
            }
            if wakes.is_full() {
                return true;
            }
            // Off the list before the claim: after it, the waiter may be gone.
            self.remove(waiter);
            // SAFETY: a `Wait` outlives its waiters' stay in the list.
            let Some(wakeup) = unsafe { &*waiter.wait }.claim(outcome) else {
                continue; // Decided by somebody else: it would have left by itself.
            };
            wakes.push(wakeup);
            if waiter.exclusive && !everybody {
                read &= !waiter.read;
                write &= !waiter.write;
            }
        }
        false
    }
}

/// The poller has seen events of a descriptor. Returns whether somebody was woken.
pub(crate) fn report(fd: i32, generation: u32, read: bool, write: bool) -> bool {
    let Some(entry) = fds::entry(fd) else {
        return false;
    };
    let mut woke = false;
    let mut first = true;
    loop {
        let mut wakes = WakeList::new();
        let more = {
            let mut waiters = entry.waiters.lock();
            if entry.generation() != generation {
                return woke; // An event of the descriptor's earlier life.
            }
            if first {
                for (count, wanted) in entry.events.iter().zip([read, write]) {
                    // Relaxed: changed under the lock; an early reader reads it again there.
                    count.fetch_add(u32::from(wanted), Ordering::Relaxed);
                }
                first = false;
            }
            waiters.claim(read, write, false, Outcome::Ready, &mut wakes)
        };
        woke |= wakes.perform() > 0;
        if !more {
            return woke;
        }
    }
}

/// Wakes everybody who waits for a descriptor that is being closed; nobody if its number has begun
/// another life than `generation`.
pub(crate) fn close_all(entry: &Entry, generation: u32) {
    loop {
        let mut wakes = WakeList::new();
        let more = {
            let mut waiters = entry.waiters.lock();
            // Under the lock: the next life may begin, and have somebody wait, at any moment
            // before.
            if waiters.first().is_null() || entry.generation() != generation {
                return;
            }
            waiters.claim(true, true, true, Outcome::Closed, &mut wakes)
        };
        wakes.perform();
        if !more {
            return;
        }
    }
}

/// Wakes the next of those who want to do the same.
fn pass_baton(entry: &Entry, interest: Interest) {
    let mut wakes = WakeList::new();
    {
        let mut waiters = entry.waiters.lock();
        if waiters.first().is_null() {
            return;
        }
        let (read, write) = (interest == Interest::Read, interest == Interest::Write);
        waiters.claim(read, write, false, Outcome::Ready, &mut wakes);
    }
    wakes.perform();
}

/// Performs an operation as if it blocked: tries it, and while that says `EAGAIN` parks the
/// running virtual thread until the descriptor is ready.
///
/// `attempt` must not block. `timeout` is asked only when there is a need to wait; when it has
/// passed, the result is `EAGAIN`, as with `SO_RCVTIMEO`. So it is when the program has made the
/// descriptor non-blocking. A thread that is interrupted does not wait: `ECANCELED`.
pub(crate) fn blocking(
    fd: i32,
    interest: Interest,
    timeout: impl FnOnce(&Entry) -> Option<u64>,
    mut attempt: impl FnMut() -> SysResult,
) -> SysResult {
    let Some(entry) = fds::entry(fd) else {
        return attempt();
    };
    let generation = entry.generation();
    let mut count = entry.events[interest as usize].load(Ordering::Relaxed); // Relaxed: see `park`.
    match attempt() {
        Err(Errno(libc::EAGAIN)) => {}
        result => return result,
    }
    if entry.is_nonblocking(fd) {
        return Err(Errno(libc::EAGAIN));
    }
    let deadline = super::deadline_after(timeout(entry));
    let mut attempted = false;
    loop {
        entry.register(fd)?;
        let outcome = park(entry, interest, generation, count, deadline);
        let result = match outcome {
            Outcome::Closed => Err(fds::CLOSED),
            Outcome::Interrupted => Err(super::INTERRUPTED),
            Outcome::TimedOut if attempted || deadline.is_some() => Err(Errno(libc::EAGAIN)),
            _ => {
                count = entry.events[interest as usize].load(Ordering::Relaxed);
                attempted = true;
                attempt()
            }
        };
        if result != Err(Errno(libc::EAGAIN)) || outcome == Outcome::TimedOut {
            pass_baton(entry, interest);
            return result;
        }
    }
}

/// Parks until an event after the `count`th, unless one has come.
fn park(
    entry: &Entry,
    interest: Interest,
    generation: u32,
    count: u32,
    deadline: Option<u64>,
) -> Outcome {
    let mut waiters = entry.waiters.lock();
    if entry.generation() != generation {
        return Outcome::Closed;
    }
    // Relaxed: changed under this lock.
    if entry.events[interest as usize].load(Ordering::Relaxed) != count {
        return Outcome::Ready;
    }
    let Some(wait) = Wait::interruptible(Hearing::Always) else {
        return Outcome::Interrupted;
    };
    let waiter = Waiter::exclusive(&wait, interest);
    waiters.append(&waiter);
    drop(waiters);
    let outcome = wait.block_until(deadline);
    if matches!(outcome, Outcome::TimedOut | Outcome::Interrupted) {
        entry.waiters.lock().remove(&waiter);
    }
    outcome
}

/// Adds an observer to a descriptor's list, unless there have been events after `counts`.
/// Returns whether it was added.
pub(crate) fn observe(entry: &Entry, waiter: &Waiter, counts: [u32; 2]) -> bool {
    let mut waiters = entry.waiters.lock();
    if self::counts(entry) != counts {
        return false;
    }
    waiters.append(waiter);
    true
}

/// Takes an observer off a descriptor's list.
pub(crate) fn stop_observing(entry: &Entry, waiter: &Waiter) {
    entry.waiters.lock().remove(waiter);
}

/// The event counts of a descriptor.
pub(crate) fn counts(entry: &Entry) -> [u32; 2] {
    entry
        .events
        .each_ref()
        .map(|count| count.load(Ordering::Relaxed)) // Relaxed: see `park`.
}
