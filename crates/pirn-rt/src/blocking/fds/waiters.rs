//! The threads and the tasks that wait for one descriptor, in lists.
//!
//! A thread waits in a [`Wait`] on its stack. A task of async code has a [`Waker`] in its place: an
//! event takes the waker under the lock of the lists, and wakes the task after it. To make, clone
//! or drop a waker is foreign code, which must not run under that lock; so wakers are only moved
//! here.

use crate::blocking::list::{Linked, Links, List};
use crate::blocking::task;
use crate::blocking::wait::{Outcome, Wait, WakeList, Wakeup};
use core::cell::Cell;
use core::ops::ControlFlow;
use core::ptr::NonNull;
use core::task::Waker;

/// The operation to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    Read = 0,
    Write = 1,
}

/// The waiters of one descriptor. Perhaps thousands want to do the same operation, and an
/// event for one of them must not cost a walk along all. So each kind has a list of its own, in
/// order of arrival.
pub(crate) struct FdWaiters {
    /// Threads that will do the operation, by [`Interest`].
    pub(crate) doers: [List<FdWaiter>; 2],
    /// Threads that only ask for readiness, and tasks, which need not do the operation once woken.
    observers: List<FdWaiter>,
}

/// The thread or task that an event wakes.
enum Target {
    Thread(NonNull<Wait>),
    /// The place of a task's waker, which the lock of the lists guards.
    Task(NonNull<Cell<Option<Waker>>>),
}

/// A waiter that has been claimed.
enum Claim {
    Thread(Wakeup),
    Task(Waker),
}

/// Wakes of a descriptor's waiters, collected under the lock of their lists, to be performed after
/// it.
///
/// The wakes of tasks have a list of their own: so a [`Wakeup`], which each wait of each thread
/// passes on, stays small and needs no code to drop it.
pub(crate) struct FdWakes {
    threads: WakeList,
    tasks: [Option<Waker>; FdWakes::TASKS],
    /// The number of tasks.
    count: usize,
}

impl FdWakes {
    /// The maximum number of tasks.
    const TASKS: usize = 2;

    #[inline]
    pub(crate) fn new() -> FdWakes {
        FdWakes {
            threads: WakeList::new(),
            tasks: [const { None }; Self::TASKS],
            count: 0,
        }
    }

    /// Returns whether there is no room for another wake.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.threads.is_full() || self.count == Self::TASKS
    }

    #[inline]
    fn push(&mut self, claim: Claim) {
        match claim {
            Claim::Thread(wakeup) => self.threads.push(wakeup),
            Claim::Task(waker) => {
                self.tasks[self.count] = Some(waker);
                self.count += 1;
            }
        }
    }

    /// Performs all wakes and empties the list. Returns how many there were.
    #[inline]
    pub(crate) fn perform(&mut self) -> usize {
        let tasks = core::mem::take(&mut self.count);
        for waker in &mut self.tasks[..tasks] {
            waker.take().into_iter().for_each(task::wake);
        }
        tasks + self.threads.perform()
    }
}

/// One thread's or task's interest in one descriptor. It must stay where it is while it is in a
/// list, and so must what it refers to.
pub struct FdWaiter {
    target: Target,
    read: bool,
    write: bool,
    /// The operation it will do, after which it hands off to the next waiter; `None` for an
    /// observer.
    does: Option<Interest>,
    links: Links<FdWaiter>,
}

impl FdWaiter {
    pub(crate) fn doer(wait: &Wait, interest: Interest) -> FdWaiter {
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
    pub fn observer(wait: &Wait, read: bool, write: bool) -> FdWaiter {
        FdWaiter {
            target: Target::Thread(NonNull::from(wait)),
            read,
            write,
            does: None,
            links: Links::new(),
        }
    }

    /// Returns a task, an observer as well. `waker` is the place of its waker.
    pub(crate) fn task(waker: &Cell<Option<Waker>>, interest: Interest) -> FdWaiter {
        FdWaiter {
            target: Target::Task(NonNull::from(waker)),
            read: interest == Interest::Read,
            write: interest == Interest::Write,
            does: None,
            links: Links::new(),
        }
    }

    /// Claims the waiter, unless another thread has.
    ///
    /// # Safety
    /// The waiter has just been taken out of its list, under the lock that the caller still holds.
    unsafe fn claim(&self, outcome: Outcome) -> Option<Claim> {
        // SAFETY: what it refers to outlives its stay in the list, and the lock, by the contract of
        // `append`.
        unsafe {
            match self.target {
                Target::Thread(wait) => wait.as_ref().claim(outcome).map(Claim::Thread),
                Target::Task(waker) => waker.as_ref().take().map(Claim::Task),
            }
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
    /// As for [`List::append`]; what it refers to stays in its place as well.
    pub(crate) unsafe fn append(&mut self, waiter: &FdWaiter) {
        // SAFETY: the caller's contract.
        unsafe { self.list_of(waiter).append(waiter) };
    }

    /// Adds a task, if it is not there, and exchanges its waker for `waker`.
    ///
    /// # Safety
    /// As for [`append`](Self::append). It is a [task](FdWaiter::task) and waits for no other
    /// descriptor.
    pub(crate) unsafe fn put_task(&mut self, waiter: &FdWaiter, waker: &mut Option<Waker>) {
        if let Target::Task(place) = waiter.target {
            // SAFETY: the caller's contract; the lock of the lists is held.
            *waker = unsafe { place.as_ref() }.replace(waker.take());
        }
        if !waiter.links.is_linked() {
            // SAFETY: the caller's contract.
            unsafe { self.append(waiter) };
        }
    }

    /// Returns whether no thread waits.
    pub(crate) fn is_empty(&self) -> bool {
        let mut lists = self.doers.iter().chain([&self.observers]);
        lists.all(List::is_empty)
    }

    /// # Safety
    /// The waiter waits for no other descriptor.
    pub(crate) unsafe fn remove(&mut self, waiter: &FdWaiter) {
        // SAFETY: the caller's contract; of this descriptor's lists it can only be in this one.
        unsafe { self.list_of(waiter).remove(waiter) };
    }

    /// Claims the first thread that will do this operation.
    pub(crate) fn claim_doer(&mut self, interest: Interest, wakes: &mut FdWakes) {
        let list = &mut self.doers[interest as usize];
        claim_from(list, false, |_| true, Outcome::Ready, wakes);
    }

    /// Claims the observers of this event, while there is room for their wakes.
    pub(crate) fn claim_observers(&mut self, read: bool, write: bool, wakes: &mut FdWakes) {
        let wants = |waiter: &FdWaiter| waiter.read && read || waiter.write && write;
        claim_from(&mut self.observers, true, wants, Outcome::Ready, wakes);
    }

    /// Claims all waiters of a closed descriptor, while there is room for their wakes.
    pub(crate) fn claim_all(&mut self, wakes: &mut FdWakes) {
        for list in self.doers.iter_mut().chain([&mut self.observers]) {
            claim_from(list, true, |_| true, Outcome::Closed, wakes);
        }
    }
}

/// Claims the first waiter of a list that `wants` accepts, or `all` of them, while there is room
/// for their wakes.
fn claim_from(
    list: &mut List<FdWaiter>,
    all: bool,
    wants: impl Fn(&FdWaiter) -> bool,
    outcome: Outcome,
    wakes: &mut FdWakes,
) {
    if wakes.is_full() {
        return;
    }
    let _ = list.walk(|list, waiter| {
        if wants(waiter) {
            // Remove it before the claim: after the claim, the waiter may be gone.
            // SAFETY: it is in this list, whose lock the caller holds.
            let claimed = unsafe {
                list.remove(waiter);
                waiter.claim(outcome)
            };
            // `None`: another thread has decided the wait, and the waiter leaves by itself.
            if let Some(claim) = claimed {
                wakes.push(claim);
                if !all || wakes.is_full() {
                    return ControlFlow::Break(()); // A look at the next is a cache miss.
                }
            }
        }
        ControlFlow::Continue(())
    });
}
