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
//! Of the threads that want to do the same operation, an event wakes one. It *hands off* to the
//! next when it leaves, because one edge may stand for many bytes or connections. Observers, which
//! only ask for readiness (`poll`, `select`), are all woken.
//!
//! Tasks of async code are observers too: a task that has been woken need not try, because it may
//! be dropped first, so it cannot be trusted with a hand-off. Its step 5 leaves its waker in the
//! list and returns. A thread that an event wakes together with a task tries as well, so neither
//! misses what the other leaves.
//!
//! The *generation* counts the lives of the number. It is read before 1 and compared at 4, so that
//! no thread joins the list in a later life than the one in which it tried. Closing ends two lives:
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
//! `crates/pirn-model` checks this file: `readiness_model.rs`, `task_model.rs`.

use crate::blocking::fds::waiters::{FdWaiter, FdWaiters, FdWakes, Interest};
use crate::blocking::wait::{Outcome, Wait};
use crate::lock::Lock;
use crate::primitives::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::time::Deadline;
use core::task::Waker;

/// An event of a descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    /// The descriptor may be readable.
    pub(crate) read: bool,
    /// The descriptor may be writable.
    pub(crate) write: bool,
    /// The descriptor has something to read that a short read may leave behind.
    pub(crate) lasting: bool,
}

impl Event {
    /// An event that says all that an event can say.
    pub(crate) const ALL: Event = Event {
        read: true,
        write: true,
        lasting: true,
    };
}

/// The events of one descriptor, and the threads that wait for them.
pub struct Readiness {
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
    pub fn counts(&self) -> [u32; 2] {
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
        // Relaxed: the word carries no other data. A reader that has seen the count of an event
        // sees whether the event is a lasting one.
        self.emptied.load(Relaxed) == pair(since) && !self.is_lasting(since.0)
    }

    /// Returns whether there has been a lasting event in this generation.
    #[inline]
    pub(crate) fn is_lasting(&self, generation: u32) -> bool {
        self.lasting.load(Relaxed) == generation.wrapping_add(1) // Relaxed: as in `is_emptied`.
    }

    /// Calls `f` under the lock: meanwhile no thread joins or leaves, and no event is reported.
    pub(crate) fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        let _waiters = self.waiters.lock();
        f()
    }

    /// Reports an event of the descriptor in its life `generation`.
    pub(crate) fn report(&self, generation: u32, event: Event) {
        let Event { read, write, .. } = event;
        let mut first = true;
        loop {
            let mut wakes = FdWakes::new();
            let more = {
                let mut waiters = self.waiters.lock();
                // Relaxed: threads that wait in a later life have taken the lock.
                if self.generation.load(Relaxed) != generation {
                    return; // An event of the descriptor's earlier life.
                }
                if core::mem::take(&mut first) {
                    if event.lasting {
                        // Relaxed: the store of the count orders it for threads that see the count.
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
            wakes.perform();
            if !more {
                return;
            }
        }
    }

    /// Ends the life of the descriptor and wakes all waiters. Returns the next generation.
    pub(crate) fn retire(&self) -> u32 {
        let next = self.retire_unseen();
        self.close_all(next);
        next
    }

    /// Ends the life `generation` of the descriptor, unless that life has ended. Returns the next
    /// generation if it did.
    pub(crate) fn retire_from(&self, generation: u32) -> Option<u32> {
        let next = generation.wrapping_add(1);
        // Release: as in `retire_unseen`. Relaxed on failure: nothing is concluded.
        self.generation
            .compare_exchange(generation, next, Release, Relaxed)
            .ok()?;
        self.close_all(next);
        Some(next)
    }

    /// Ends the life of the descriptor, and wakes no thread. Returns the next generation.
    pub(crate) fn retire_unseen(&self) -> u32 {
        // Release: pairs with the Acquire in `generation`.
        self.generation.fetch_add(1, Release).wrapping_add(1)
    }

    /// Wakes all waiters, unless the descriptor has begun another life than `generation`.
    fn close_all(&self, generation: u32) {
        loop {
            let mut wakes = FdWakes::new();
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

    /// Returns whether a thread waits.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.lock().is_empty()
    }

    /// Wakes the next thread that wants to do the same operation.
    pub(crate) fn hand_off(&self, interest: Interest) {
        let mut wakes = FdWakes::new();
        self.waiters.lock().claim_doer(interest, &mut wakes);
        wakes.perform();
    }

    /// Parks until an event after the `count`th. Returns at once if one has come, or the life
    /// `generation` has ended. Calls `joined` under the lock when the thread has joined the list.
    /// `begin` begins the wait, if the thread may wait.
    #[inline]
    pub fn park_until_event(
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
    /// added. Calls `joined` as [`park_until_event`](Self::park_until_event) does.
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

    /// Adds a task, or renews its waker, unless there has been an event after the `count`th, or the
    /// life `generation` has ended: then returns that. Calls `joined` as
    /// [`park_until_event`](Self::park_until_event) does.
    ///
    /// `waker` is exchanged for the one that the task had until now.
    ///
    /// # Safety
    /// The waiter is a [task](FdWaiter::task), and observes no other descriptor. It and the place
    /// of its waker stay where they are until [`stop_observing`](Self::stop_observing) has
    /// returned.
    pub(crate) unsafe fn await_event(
        &self,
        interest: Interest,
        (generation, count): (u32, u32),
        waiter: &FdWaiter,
        waker: &mut Option<Waker>,
        joined: impl FnOnce(),
    ) -> Result<(), Outcome> {
        let mut waiters = self.waiters.lock();
        // Relaxed, both: as in `park_until_event`.
        if self.generation.load(Relaxed) != generation {
            return Err(Outcome::Closed);
        }
        if self.counts[interest as usize].load(Relaxed) != count {
            return Err(Outcome::Ready);
        }
        // SAFETY: the caller's contract.
        unsafe { waiters.put_task(waiter, waker) };
        joined();
        Ok(())
    }

    /// Takes an observer out, if it is there. A task's waker is the caller's afterwards.
    ///
    /// # Safety
    /// The waiter observes no other descriptor.
    pub unsafe fn stop_observing(&self, waiter: &FdWaiter) {
        // SAFETY: the caller's contract.
        unsafe { self.waiters.lock().remove(waiter) };
    }
}
