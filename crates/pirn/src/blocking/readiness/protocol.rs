//! The protocol by which an event of a descriptor finds the threads that wait for it.
//!
//! Edge-triggered events must not be lost between an attempt that returns `EAGAIN` and going to
//! sleep. So each descriptor counts its events, and the protocol is:
//!
//! ```text
//!   1. read the count            the poller, on an event:
//!   2. try the operation           a. lock the waiters
//!   3. EAGAIN: lock the waiters    b. count += 1
//!   4. count changed? go to 1      c. claim a waiter, unlock, wake it
//!   5. join the list, unlock, park
//! ```
//!
//! An event after 2 comes before 3 (then 4 sees it) or after 5 (then c wakes us). An event counted
//! before 1 came before 2, so the operation finds its data.
//!
//! Of the threads that want to do the same operation, an event wakes one. It passes the *baton* on
//! when it leaves, because one edge may stand for many bytes or connections. Observers, which only
//! ask for readiness (`poll`, `select`), are all woken.
//!
//! The *generation* counts the lives of the number. It is read before 1 and compared at 4, so that
//! nobody joins the list in a later life than the one in which it tried. Closing ends two lives:
//! one before the system call, for the threads that wait, and one after it, for threads that have
//! tried in between, while the descriptor was still open.
//!
//! A read of a TCP stream that gives fewer bytes than it asked for has *emptied* the stream. It
//! notes the generation and the count of step 1. As long as both are the same, step 2 would find
//! nothing, and is left out: bytes that arrive after the read are reported by an event that has not
//! been counted at step 1. Three things stay readable after a short read, and may have been
//! counted: the end of the stream, an error, and what follows urgent data. An event that tells of
//! them ([`Event::lasting`]) ends these omissions for the rest of the life.
//!
//! `crates/pirn-model` checks this file: `readiness_model.rs`.

use crate::blocking::list::{Linked, Links, List};
use crate::blocking::wait::{Outcome, Wait, WakeList};
use crate::lock::Lock;
use crate::primitives::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::time::Deadline;
use core::ops::ControlFlow;
use core::ptr::NonNull;

/// The operation to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    Read = 0,
    Write = 1,
}

/// An event of a descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    /// It may be readable.
    pub(crate) read: bool,
    /// It may be writable.
    pub(crate) write: bool,
    /// It has something to read that a short read may leave behind.
    pub(crate) lasting: bool,
}

impl Event {
    /// All that an event can say.
    pub(crate) const ALL: Event = Event {
        read: true,
        write: true,
        lasting: true,
    };
}

/// The waiting threads of one descriptor. Perhaps thousands want to do the same operation, and an
/// event for one of them must not cost a walk along all. So each kind has a list of its own, in
/// order of arrival.
pub(crate) struct FdWaiters {
    /// Threads that will do the operation, by [`Interest`].
    pub(super) doers: [List<FdWaiter>; 2],
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
    pub(super) unsafe fn append(&mut self, waiter: &FdWaiter) {
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
    pub(super) fn claim_doer(&mut self, interest: Interest, wakes: &mut WakeList) {
        let list = &mut self.doers[interest as usize];
        claim_from(list, 1, |_| true, Outcome::Ready, wakes);
    }

    /// Claims the observers of this event, while there is room for their wakes.
    pub(super) fn claim_observers(&mut self, read: bool, write: bool, wakes: &mut WakeList) {
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

/// The events of one descriptor, and the threads that wait for them.
pub(crate) struct Readiness {
    generation: AtomicU32,
    /// The numbers of events seen, by [`Interest`].
    counts: [AtomicU32; 2],
    /// The generation and the count of a read that has emptied the stream; see [`pair`].
    emptied: AtomicU64,
    /// One more than the last generation with a [lasting](Event::lasting) event; 0: there was none.
    lasting: AtomicU32,
    waiters: Lock<FdWaiters>,
}

/// Returns a generation and a count in one word.
fn pair((generation, count): (u32, u32)) -> u64 {
    u64::from(generation) << 32 | u64::from(count)
}

impl Readiness {
    /// Returns the state of a descriptor without events or waiters, in its first life.
    pub(crate) fn new() -> Readiness {
        Readiness {
            generation: AtomicU32::new(0),
            counts: [AtomicU32::new(0), AtomicU32::new(0)],
            emptied: AtomicU64::new(u64::MAX), // In use after 4 thousand million lives.
            lasting: AtomicU32::new(0),
            waiters: Lock::new(FdWaiters::new()),
        }
    }

    /// Returns the number of the descriptor's current life.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        // Acquire: pairs with the Release in `retire`. An attempt after this is made in this life
        // or in a later one.
        self.generation.load(Acquire)
    }

    /// Returns how many events of this kind there have been.
    #[inline]
    pub(crate) fn count(&self, interest: Interest) -> u32 {
        // Acquire: pairs with the Release in `report`. An attempt after this finds the data of the
        // counted events.
        self.counts[interest as usize].load(Acquire)
    }

    /// Returns the counts of all events.
    pub(crate) fn counts(&self) -> [u32; 2] {
        [self.count(Interest::Read), self.count(Interest::Write)]
    }

    /// Notes that a read, begun in this generation and after this many events, has left nothing
    /// behind.
    #[inline]
    pub(crate) fn note_emptied(&self, since: (u32, u32)) {
        self.emptied.store(pair(since), Relaxed); // Relaxed: as in `is_emptied`.
    }

    /// Returns whether a read that begins now, in this generation and after this many events, would
    /// find nothing.
    #[inline]
    pub(crate) fn is_emptied(&self, since: (u32, u32)) -> bool {
        // Relaxed: the word alone is the news. That of a lasting event comes with the count.
        self.emptied.load(Relaxed) == pair(since)
            && self.lasting.load(Relaxed) != since.0.wrapping_add(1)
    }

    /// Calls `f` under the lock: meanwhile nobody joins or leaves, and no event is reported.
    pub(crate) fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        let _waiters = self.waiters.lock();
        f()
    }

    /// Reports an event of the descriptor in its life `generation`. Returns whether somebody was
    /// woken.
    pub(crate) fn report(&self, generation: u32, event: Event) -> bool {
        let Event { read, write, .. } = event;
        let mut woke = false;
        let mut first = true;
        loop {
            let mut wakes = WakeList::new();
            let more = {
                let mut waiters = self.waiters.lock();
                // Relaxed: threads that wait in a later life have taken the lock.
                if self.generation.load(Relaxed) != generation {
                    return woke; // An event of the descriptor's earlier life.
                }
                if core::mem::take(&mut first) {
                    if event.lasting {
                        // Relaxed: before the count, which orders it for those that see the count.
                        self.lasting.store(generation.wrapping_add(1), Relaxed);
                    }
                    for (interest, wanted) in [(Interest::Read, read), (Interest::Write, write)] {
                        if wanted {
                            let count = &self.counts[interest as usize];
                            // Relaxed: changed under this lock. Release: pairs with the Acquire in
                            // `count`.
                            count.store(count.load(Relaxed).wrapping_add(1), Release);
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

    /// Ends the life of the descriptor and wakes all waiters. Returns the next generation.
    pub(crate) fn retire(&self) -> u32 {
        let next = self.retire_unseen();
        self.close_all(next);
        next
    }

    /// Ends the life of the descriptor, unless it is an earlier one than `generation`. Returns the
    /// next generation if it did.
    pub(crate) fn retire_from(&self, generation: u32) -> Option<u32> {
        let next = generation.wrapping_add(1);
        // Release: as in `retire_unseen`. Relaxed on failure: nothing is concluded.
        self.generation
            .compare_exchange(generation, next, Release, Relaxed)
            .ok()?;
        self.close_all(next);
        Some(next)
    }

    /// Ends the life of the descriptor, and wakes nobody. Returns the next generation.
    pub(crate) fn retire_unseen(&self) -> u32 {
        // Release: pairs with the Acquire in `generation`.
        self.generation.fetch_add(1, Release).wrapping_add(1)
    }

    /// Wakes all waiters; nobody if the descriptor has begun another life than `generation`.
    fn close_all(&self, generation: u32) {
        loop {
            let mut wakes = WakeList::new();
            let more = {
                let mut waiters = self.waiters.lock();
                // Checked under the lock: before it, the next life may begin and get waiters at any
                // moment. Relaxed: as in `report`.
                if self.generation.load(Relaxed) != generation {
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

    /// Returns whether somebody waits.
    pub(crate) fn is_awaited(&self) -> bool {
        let waiters = self.waiters.lock();
        let mut lists = waiters.doers.iter().chain([&waiters.observers]);
        lists.any(|list| !list.is_empty())
    }

    /// Wakes the next thread that wants to do the same operation.
    pub(crate) fn pass_baton(&self, interest: Interest) {
        let mut wakes = WakeList::new();
        self.waiters.lock().claim_doer(interest, &mut wakes);
        wakes.perform();
    }

    /// Parks until an event after the `count`th. Returns at once if one has come, or the life
    /// `generation` has ended. Calls `joined` under the lock when the thread has joined the list.
    /// `begin` begins the wait, if the thread may wait.
    #[inline]
    pub(crate) fn park(
        &self,
        interest: Interest,
        (generation, count): (u32, u32),
        deadline: Deadline,
        begin: impl FnOnce() -> Result<Wait, Outcome>,
        joined: impl FnOnce(),
    ) -> Outcome {
        let mut waiters = self.waiters.lock();
        // Relaxed: the thread that ends this life takes the lock afterwards, and wakes us.
        if self.generation.load(Relaxed) != generation {
            return Outcome::Closed;
        }
        // Relaxed: changed under this lock.
        if self.counts[interest as usize].load(Relaxed) != count {
            return Outcome::Ready;
        }
        let wait = match begin() {
            Ok(wait) => wait,
            Err(refused) => return refused,
        };
        let waiter = FdWaiter::doer(&wait, interest);
        // SAFETY: it stays here, on the stack, until a claim or the lines below have taken it out.
        unsafe { waiters.append(&waiter) };
        joined();
        drop(waiters);
        let outcome = wait.block_until(deadline);
        if !matches!(outcome, Outcome::Ready | Outcome::Closed) {
            // SAFETY: in this list, or in none.
            unsafe { self.waiters.lock().remove(&waiter) };
        }
        outcome
    }

    /// Adds an observer, unless there have been events after `counts`. Returns whether it was
    /// added. Calls `joined` as [`park`](Self::park) does.
    ///
    /// # Safety
    /// The waiter and its wait stay in their places until [`stop_observing`](Self::stop_observing)
    /// has returned.
    pub(crate) unsafe fn observe(
        &self,
        waiter: &FdWaiter,
        counts: [u32; 2],
        joined: impl FnOnce(),
    ) -> bool {
        let mut waiters = self.waiters.lock();
        if self.counts() != counts {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { waiters.append(waiter) };
        joined();
        true
    }

    /// Takes an observer out, if it is there.
    ///
    /// # Safety
    /// It observes no other descriptor.
    pub(crate) unsafe fn stop_observing(&self, waiter: &FdWaiter) {
        // SAFETY: the caller's contract.
        unsafe { self.waiters.lock().remove(waiter) };
    }
}
