//! Circles of threads that wait for each other.
//!
//! Threads are seen one after the other, so what looks like a circle may never have been one: a
//! thread that is seen to wait may have gone on when the next is seen. So a circle is looked at
//! again. If all its threads still wait, and none has run in between, then there was a moment, at
//! the end of the first look, at which all of them waited; and each was found again, waiting for
//! the same thread as before.

use super::Noted;
use super::holders::Holders;
use pirn_dump::{Blocker, Finding, State, Thread, Waiter};
use pirn_rt::stack::Slot;
use pirn_rt::vthread::awaited::Kind;
use pirn_rt::vthread::{Core, table};
use std::collections::HashMap;

/// The most threads of which is guessed for which others they wait.
const GUESSES: usize = 10_000;

/// A thread that waits, without a deadline, for threads that are known, or may be guessed.
struct Seen {
    waiter: Waiter,
    /// The word of the lock for which it waits, whose holder is guessed. Until then it waits for
    /// thread 0, which there is not.
    lock: Option<u64>,
    slot: Slot,
    mounts: u32,
}

/// The threads of a walk that wait for known threads.
#[derive(Default)]
pub struct Deadlocks {
    seen: Vec<Seen>,
    guesses: usize,
}

impl Deadlocks {
    /// Adds a thread that is parked, as it was seen.
    pub fn add(&mut self, slot: Slot, id: u64, mounts: u32, scope: u64, noted: &Noted) {
        let lock = noted.std_lock().filter(|_| !noted.is_timed());
        let lock = lock.filter(|_| self.guesses < GUESSES);
        self.guesses += usize::from(lock.is_some());
        let blocker = lock.map(|_| Blocker::Thread(0)).or_else(|| blocker(noted));
        if let Some(blocker) = blocker {
            let waiter = Waiter {
                thread: id,
                scope,
                blocker,
            };
            self.seen.push(Seen {
                waiter,
                lock,
                slot,
                mounts,
            });
        }
    }

    /// Looks for circles among the threads, when all have been added, and at those found again.
    pub fn findings(&mut self) -> Vec<Finding> {
        self.guess();
        let waiters: Vec<Waiter> = self.seen.iter().map(|seen| seen.waiter).collect();
        let circles = pirn_dump::cycles(&waiters);
        if circles.is_empty() {
            return Vec::new();
        }
        let by_id: HashMap<u64, &Seen> = self
            .seen
            .iter()
            .map(|seen| (seen.waiter.thread, seen))
            .collect();
        let confirmed = circles.iter().filter_map(|circle| {
            let threads: Option<Vec<Thread>> = circle
                .iter()
                .map(|id| by_id.get(id).and_then(|seen| again(seen)))
                .collect();
            threads.map(|threads| pirn_dump::cycle_finding(&threads))
        });
        confirmed.collect()
    }

    /// Guesses which of the threads hold the locks for which others wait: in a circle, all wait.
    fn guess(&mut self) {
        if self.guesses == 0 {
            return;
        }
        let mut holders = Holders::new(self.seen.iter().filter_map(|seen| seen.lock));
        for seen in self.seen.iter().take(GUESSES) {
            table::walk(seen.slot, |core, parked| {
                let (stack, sp) = (seen.slot.frames(), core.continuation.saved().addr());
                if parked && seen.is(core) && stack.contains(&sp) {
                    holders.read(seen.waiter.thread, seen.lock, sp..stack.end);
                }
            });
        }
        for seen in &mut self.seen {
            if let Some(holder) = seen.lock.and_then(|lock| holders.of(lock)) {
                seen.waiter.blocker = Blocker::Thread(holder);
            }
        }
    }
}

impl Seen {
    /// Returns whether this is the thread, and has not run since.
    fn is(&self, core: &Core) -> bool {
        core.id() == self.waiter.thread && core.mounts() == self.mounts
    }
}

/// Returns whom a thread waits for, if that is known and the wait has no deadline.
fn blocker(noted: &Noted) -> Option<Blocker> {
    if noted.is_timed() {
        return None;
    }
    match noted.awaited.kind() {
        Kind::Mutex | Kind::RwLockToRead | Kind::RwLockToWrite if noted.owner != 0 => {
            Some(Blocker::Thread(noted.owner))
        }
        Kind::Join => Some(Blocker::Thread(noted.awaited.argument())),
        Kind::Scope => Some(Blocker::Scope(noted.awaited.argument())),
        _ => None,
    }
}

/// Looks at a thread again. Returns it if it has not run since, and waits for the same.
fn again(seen: &Seen) -> Option<Thread> {
    let mut name = [0u8; 256];
    let (noted, length) = table::walk(seen.slot, |core, parked| {
        let noted = (parked && seen.is(core)).then(|| Noted::of(core))?;
        let same = match seen.lock {
            Some(lock) => noted.std_lock() == Some(lock),
            None => blocker(&noted) == Some(seen.waiter.blocker),
        };
        same.then(|| (noted, copy_name(core, &mut name)))
    })
    .flatten()?;
    Some(Thread {
        id: seen.waiter.thread,
        name: length.map(|length| name[..length].to_vec()),
        state: State::Waiting,
        wait: noted.plain(),
        ..Thread::default()
    })
}

/// Copies a thread's name, as much as there is room for. Returns the length, if there is one.
fn copy_name(core: &Core, to: &mut [u8]) -> Option<usize> {
    let name = core.name()?.as_bytes();
    let length = name.len().min(to.len());
    to[..length].copy_from_slice(&name[..length]);
    Some(length)
}
