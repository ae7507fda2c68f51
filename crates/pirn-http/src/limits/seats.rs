//! All seats of a server, in 64 shards with a lock each: the streams of a connection share its
//! shard, and no lock is shared by all requests.
//!
//! A shard knows at which tick the watch looks at a seat next. The seat's thread moves its own due
//! with one store, and takes the lock only if the watch would look too late. The watch looks at
//! what is due, and queues the seat anew if its thread has moved on:
//!
//! ```text
//!   the seat's thread                    the watch, under the lock
//!   due <- tick                          look <- NEVER
//!   if look > tick:                      due is past: the seat expires
//!       under the lock: look <- tick     due is ahead: look <- due
//! ```
//!
//! All four are SeqCst, so that one of the two sees what the other has stored. A request on a
//! connection that is kept open takes no lock, unless nothing has queued the seat for the shortest
//! of the time limits, 5 s by default.
//!
//! Rejected: one lock and a walk over all seats every 100 ms: with 100,000 connections that was a
//! million looks per second, and each stream of HTTP/2 took the lock twice.

use super::hangups::Client;
use crate::poison::locked;
use pirn::thread::Thread;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, OnceLock};

/// The due of a thread that was late.
pub(super) const EXPIRED: u64 = u64::MAX;
/// A tick that never comes.
pub(super) const FOREVER: u64 = u64::MAX >> 3;
/// The look of a seat that is not queued.
const NEVER: u64 = u64::MAX;
const SHARDS: u64 = 64;

/// The part of a seat that other threads read.
pub(crate) struct State {
    pub(super) number: u64,
    /// See [`watch`](super::watch).
    due: AtomicU64,
    /// The tick at which the watch looks at it next. Written under the shard's lock.
    look: AtomicU64,
    pub(super) client: Client,
    pub(super) thread: OnceLock<Thread>,
}

impl State {
    /// Sets what is limited. Returns whether the watch must be [told](Seats::look_by), as it would
    /// look too late.
    #[inline]
    pub(super) fn set(&self, due: u64) -> bool {
        // SeqCst: see the module's documentation. An expired seat stays expired.
        if self.due.swap(due, SeqCst) == EXPIRED {
            self.due.store(EXPIRED, Relaxed); // Relaxed: the watch has done with it.
        }
        due != 0 && due >> 2 < self.look.load(SeqCst) && due >> 2 < FOREVER
    }

    /// Sets that nothing is limited, be the seat expired or not.
    pub(super) fn absorb(&self) {
        self.due.store(0, SeqCst);
    }

    pub(super) fn due(&self) -> u64 {
        self.due.load(SeqCst)
    }

    pub(super) fn has_expired(&self) -> bool {
        self.due.load(Acquire) == EXPIRED // Acquire: pairs with the exchange in `expire`.
    }

    /// Interrupts the thread, unless it has gone on meanwhile.
    pub(super) fn expire(&self, due: u64) {
        let expired = self.due.compare_exchange(due, EXPIRED, SeqCst, Relaxed);
        if expired.is_ok() {
            self.interrupt();
        }
    }

    pub(crate) fn interrupt(&self) {
        if let Some(thread) = self.thread.get() {
            thread.interrupt();
        }
    }
}

/// See the module's documentation.
pub(super) struct Seats(Box<[Shard]>);

/// In cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Shard(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    /// How many seats there have been.
    count: u64,
    seats: HashMap<u64, Arc<State>>,
    /// The tick of the next look, and the number of the seat.
    looks: BTreeSet<(u64, u64)>,
}

impl Taken {
    fn look_by(&mut self, state: &State, tick: u64) {
        let before = state.look.load(Relaxed); // Relaxed: written under the lock only.
        if tick < before {
            self.looks.remove(&(before, state.number));
            self.looks.insert((tick, state.number));
            state.look.store(tick, SeqCst);
        }
    }
}

impl Default for Seats {
    fn default() -> Seats {
        Seats((0..SHARDS).map(|_| Shard::default()).collect())
    }
}

impl Seats {
    fn shard(&self, number: u64) -> &Mutex<Taken> {
        &self.0[(number % SHARDS) as usize].0
    }

    /// Takes a seat in the shard of this number.
    pub(super) fn take(&self, shard: u64) -> Arc<State> {
        let mut taken = locked(self.shard(shard));
        taken.count += 1; // First: no seat has the number 0.
        let state = Arc::new(State {
            number: taken.count * SHARDS + shard % SHARDS,
            due: AtomicU64::new(0),
            look: AtomicU64::new(NEVER),
            client: Client::default(),
            thread: OnceLock::new(),
        });
        taken.seats.insert(state.number, Arc::clone(&state));
        state
    }

    pub(super) fn leave(&self, state: &State) {
        let mut taken = locked(self.shard(state.number));
        taken.seats.remove(&state.number);
        let look = state.look.load(Relaxed); // Relaxed: written under the lock only.
        taken.looks.remove(&(look, state.number));
    }

    pub(super) fn find(&self, number: u64) -> Option<Arc<State>> {
        locked(self.shard(number)).seats.get(&number).cloned()
    }

    /// Has the watch look at a seat by this tick.
    pub(super) fn look_by(&self, state: &State, tick: u64) {
        locked(self.shard(state.number)).look_by(state, tick);
    }

    /// Returns all seats; what is done with them is done without a lock.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<State>> {
        let shards = self.0.iter();
        shards.flat_map(|shard| Vec::from_iter(locked(&shard.0).seats.values().cloned()))
    }

    /// Interrupts the threads that were due by this tick.
    pub(super) fn expire_late(&self, now: u64) {
        for shard in &self.0 {
            let mut late = Vec::new();
            let mut taken = locked(&shard.0);
            while let Some(&(look, number)) = taken.looks.first()
                && look <= now
            {
                taken.looks.pop_first();
                // A connection that has left HTTP may outlive its seat. Nothing limits it then.
                let Some(state) = taken.seats.get(&number).cloned() else {
                    continue;
                };
                state.look.store(NEVER, SeqCst);
                match state.due() {
                    0 | EXPIRED => {}
                    due if due >> 2 <= now => late.push((due, state)),
                    due if due >> 2 < FOREVER => taken.look_by(&state, due >> 2),
                    _ => {}
                }
            }
            drop(taken); // Interrupts wake threads: not under the lock.
            late.into_iter().for_each(|(due, state)| state.expire(due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_becomes_earlier_holds_and_a_later_one_is_looked_at_again() {
        let seats = Seats::default();
        let state = seats.take(7);
        let set = |tick: u64| {
            if state.set(tick << 2) {
                seats.look_by(&state, tick);
            }
        };
        set(10);
        set(5);
        seats.expire_late(4);
        assert_eq!(state.due(), 5 << 2);
        set(20);
        seats.expire_late(10);
        assert_eq!(state.due(), 20 << 2);
        set(15);
        seats.expire_late(14);
        assert!(!state.has_expired());
        seats.expire_late(15);
        assert!(state.has_expired());
        seats.leave(&state);
        assert!(locked(seats.shard(7)).looks.is_empty());
        assert_eq!(seats.all().count(), 0);
        // A connection that has left HTTP goes on without a seat.
        state.absorb();
        set(30);
        seats.expire_late(40);
        assert!(!state.has_expired());
    }

    #[test]
    fn a_limit_that_is_set_while_the_watch_looks_holds() {
        let seats = Seats::default();
        let state = seats.take(0);
        for tick in (1..20_000).map(|round| round * 10) {
            std::thread::scope(|scope| {
                if state.set(tick << 2) {
                    seats.look_by(&state, tick);
                }
                scope.spawn(|| seats.expire_late(tick));
                // The watch looks before, between, or after these.
                state.set(0);
                if state.set((tick + 5) << 2) {
                    seats.look_by(&state, tick + 5);
                }
            });
            seats.expire_late(tick + 5);
            assert!(state.has_expired(), "in tick {tick}");
            state.absorb();
        }
    }
}
