//! Waiting for a descriptor to become readable or writable.
//!
//! Edge-triggered events must not be lost between an attempt that returns `EAGAIN` and going to
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
//! An event after 2 comes before 3 (then 4 sees it) or after 5 (then c wakes us).
//!
//! Of the threads that want to do the same operation, an event wakes one. It passes the *baton* on
//! when it leaves, because one edge may stand for many bytes or connections. Observers, which only
//! ask for readiness (`poll`, `select`), are all woken.

use super::fds::{self, Entry};
use super::list::{Linked, Links, List};
use super::status_flags::{self, Waiting};
use super::wait::{Outcome, Wait, WakeList};
use crate::sys::{Errno, SysResult};
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;
use core::ops::ControlFlow;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// The operation to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    Read = 0,
    Write = 1,
}

/// The waiting threads of one descriptor. Perhaps thousands want to do the same operation, and an
/// event for one of them must not cost a walk along all. So each kind has a list of its own, in
/// order of arrival.
pub(crate) struct FdWaiters {
    /// Threads that will do the operation, by [`Interest`].
    doers: [List<FdWaiter>; 2],
    /// Threads that only ask for readiness.
    observers: List<FdWaiter>,
}

/// One thread's interest in one descriptor. It must stay where it is while it is in a list.
pub(crate) struct FdWaiter {
    wait: NonNull<Wait>,
    read: bool,
    write: bool,
    /// The operation it will do, after which it passes the baton on; `None` for an observer.
    does: Option<Interest>,
    links: Links<FdWaiter>,
}

impl FdWaiter {
    fn doer(wait: &Wait, interest: Interest) -> FdWaiter {
        FdWaiter {
            does: Some(interest),
            ..FdWaiter::observer(
                wait,
                interest == Interest::Read,
                interest == Interest::Write,
            )
        }
    }

    /// Returns an observer, which leaves the operation to others.
    pub(crate) fn observer(wait: &Wait, read: bool, write: bool) -> FdWaiter {
        FdWaiter {
            wait: NonNull::from(wait),
            read,
            write,
            does: None,
            links: Links::new(),
        }
    }
}

impl Linked for FdWaiter {
    fn links(&self) -> &Links<FdWaiter> {
        &self.links
    }
}

impl FdWaiters {
    /// Returns lists without waiters.
    pub(crate) const fn new() -> FdWaiters {
        FdWaiters {
            doers: [const { List::new() }; 2],
            observers: List::new(),
        }
    }

    fn list_of(&mut self, waiter: &FdWaiter) -> &mut List<FdWaiter> {
        match waiter.does {
            Some(interest) => &mut self.doers[interest as usize],
            None => &mut self.observers,
        }
    }

    /// # Safety
    /// As for [`List::append`].
    unsafe fn append(&mut self, waiter: &FdWaiter) {
        // SAFETY: the caller's contract.
        unsafe { self.list_of(waiter).append(waiter) };
    }

    /// # Safety
    /// It waits for no other descriptor.
    unsafe fn remove(&mut self, waiter: &FdWaiter) {
        // SAFETY: the caller's contract; of this descriptor's lists it can only be in this one.
        unsafe { self.list_of(waiter).remove(waiter) };
    }

    /// Claims the first thread that will do this operation.
    fn claim_doer(&mut self, interest: Interest, wakes: &mut WakeList) {
        let list = &mut self.doers[interest as usize];
        claim_from(list, 1, |_| true, Outcome::Ready, wakes);
    }

    /// Claims the observers of this event, while there is room for their wakes.
    fn claim_observers(&mut self, read: bool, write: bool, wakes: &mut WakeList) {
        let wants = |waiter: &FdWaiter| waiter.read && read || waiter.write && write;
        claim_from(
            &mut self.observers,
            usize::MAX,
            wants,
            Outcome::Ready,
            wakes,
        );
    }

    /// Claims all waiters of a closed descriptor, while there is room for their wakes.
    fn claim_all(&mut self, wakes: &mut WakeList) {
        for list in self.doers.iter_mut().chain([&mut self.observers]) {
            claim_from(list, usize::MAX, |_| true, Outcome::Closed, wakes);
        }
    }
}

/// Claims up to `limit` waiters of a list that `wants` accepts, while there is room for their
/// wakes.
fn claim_from(
    list: &mut List<FdWaiter>,
    limit: usize,
    wants: impl Fn(&FdWaiter) -> bool,
    outcome: Outcome,
    wakes: &mut WakeList,
) {
    let most = wakes.len().saturating_add(limit).min(WakeList::CAPACITY);
    if wakes.len() == most {
        return;
    }
    let _ = list.walk(|list, waiter| {
        if wants(waiter) {
            let wait = waiter.wait;
            // Remove it before the claim: after the claim, the waiter may be gone.
            // SAFETY: it is in this list. A `Wait` outlives its waiters' stay in the list.
            let claimed = unsafe {
                list.remove(waiter);
                wait.as_ref().claim(outcome)
            };
            // `None`: somebody else has decided the wait, and the waiter leaves by itself.
            if let Some(wakeup) = claimed {
                wakes.push(wakeup);
                if wakes.len() == most {
                    return ControlFlow::Break(()); // A look at the next is a cache miss.
                }
            }
        }
        ControlFlow::Continue(())
    });
}

/// Reports events that the poller has seen of a descriptor. Returns whether somebody was woken.
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
            if core::mem::take(&mut first) {
                for (interest, wanted) in [(Interest::Read, read), (Interest::Write, write)] {
                    if wanted {
                        // Relaxed: changed under the lock; a reader without the lock reads it again
                        // under it.
                        entry.events[interest as usize].fetch_add(1, Ordering::Relaxed);
                        waiters.claim_doer(interest, &mut wakes);
                    }
                }
            }
            waiters.claim_observers(read, write, &mut wakes);
            wakes.is_full()
        };
        woke |= wakes.perform() > 0;
        if !more {
            return woke;
        }
    }
}

/// Wakes all waiters of a descriptor that is being closed; nobody if its number has begun another
/// life than `generation`.
pub(crate) fn close_all(entry: &Entry, generation: u32) {
    loop {
        let mut wakes = WakeList::new();
        let more = {
            let mut waiters = entry.waiters.lock();
            // Checked under the lock: before it, the next life may begin and get waiters at any
            // moment.
            if entry.generation() != generation {
                return;
            }
            waiters.claim_all(&mut wakes);
            wakes.is_full()
        };
        wakes.perform();
        if !more {
            return;
        }
    }
}

/// Returns whether somebody waits for a descriptor.
pub(super) fn is_awaited(entry: &Entry) -> bool {
    let waiters = entry.waiters.lock();
    let mut lists = waiters.doers.iter().chain([&waiters.observers]);
    lists.any(|list| !list.is_empty())
}

/// Wakes the next thread that wants to do the same operation.
fn pass_baton(entry: &Entry, interest: Interest) {
    let mut wakes = WakeList::new();
    entry.waiters.lock().claim_doer(interest, &mut wakes);
    wakes.perform();
}

/// Performs an operation as if it blocked: tries it, and while that returns `EAGAIN` parks the
/// running virtual thread until the descriptor is ready.
///
/// `attempt` must not block the carrier. `deadline` is called only before a wait. The result is `EAGAIN` when
/// the deadline has passed, as with `SO_RCVTIMEO`, and when the program has made the descriptor
/// non-blocking. It is `ECANCELED` when the thread is interrupted, which ends the wait.
pub(crate) fn blocking(
    fd: i32,
    interest: Interest,
    deadline: impl FnOnce(&Entry) -> Deadline,
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
    let waiting = status_flags::may_wait(entry, fd);
    if waiting == Waiting::Refused {
        return Err(Errno(libc::EAGAIN));
    }
    let deadline = deadline(entry);
    let mut attempted = false;
    loop {
        entry.register(fd)?;
        let outcome = park(entry, interest, generation, count, deadline);
        let result = match outcome {
            Outcome::Closed => Err(fds::CLOSED),
            Outcome::Interrupted => Err(super::INTERRUPTED),
            Outcome::TimedOut if attempted || !deadline.is_never() => Err(Errno(libc::EAGAIN)),
            _ => {
                count = entry.events[interest as usize].load(Ordering::Relaxed);
                attempted = true;
                attempt()
            }
        };
        let refused = || waiting == Waiting::Assumed && status_flags::is_nonblocking(fd);
        if result != Err(Errno(libc::EAGAIN)) || outcome == Outcome::TimedOut || refused() {
            pass_baton(entry, interest);
            return result;
        }
    }
}

/// Parks until an event after the `count`th. Returns at once if one has come.
fn park(
    entry: &Entry,
    interest: Interest,
    generation: u32,
    count: u32,
    deadline: Deadline,
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
    let waiter = FdWaiter::doer(&wait, interest);
    // SAFETY: it stays here, on the stack, until a claim or the lines below have taken it out.
    unsafe { waiters.append(&waiter) };
    entry.awaited();
    drop(waiters);
    let outcome = wait.block_until(deadline);
    if matches!(outcome, Outcome::TimedOut | Outcome::Interrupted) {
        // SAFETY: in this list, or in none.
        unsafe { entry.waiters.lock().remove(&waiter) };
    }
    outcome
}

/// Adds an observer to a descriptor's list, unless there have been events after `counts`.
/// Returns whether it was added.
///
/// # Safety
/// The waiter and its wait stay in their places until [`stop_observing`] has returned.
pub(crate) unsafe fn observe(entry: &Entry, waiter: &FdWaiter, counts: [u32; 2]) -> bool {
    let mut waiters = entry.waiters.lock();
    if self::counts(entry) != counts {
        return false;
    }
    // SAFETY: the caller's contract.
    unsafe { waiters.append(waiter) };
    entry.awaited();
    true
}

/// Takes an observer off a descriptor's list, if it is there.
///
/// # Safety
/// It observes no other descriptor.
pub(crate) unsafe fn stop_observing(entry: &Entry, waiter: &FdWaiter) {
    // SAFETY: the caller's contract.
    unsafe { entry.waiters.lock().remove(waiter) };
}

/// Returns the event counts of a descriptor.
pub(crate) fn counts(entry: &Entry) -> [u32; 2] {
    entry
        .events
        .each_ref()
        .map(|count| count.load(Ordering::Relaxed)) // Relaxed: see `park`.
}

#[cfg(test)]
mod tests;
