//! Circles of threads that wait for each other.
//!
//! Threads are seen one after the other, so what looks like a circle may never have been one: a
//! thread that is seen to wait may have gone on when the next is seen. So a circle is looked at
//! again. If all its threads still wait, and none has run in between, then there was a moment, at
//! the end of the first look, at which all of them waited; and each was found again, waiting for
//! the same thread as before.

use super::Noted;
use core::ops::Range;
use pirn_dump::{Blocker, Finding, State, Thread, Waiter};
use pirn_rt::arch;
use pirn_rt::sched;
use pirn_rt::stack::Slot;
use pirn_rt::vthread::Core;
use pirn_rt::vthread::wait_reason::Kind;
use std::collections::HashMap;

/// The maximum number of threads for which the holder of the lock that they wait for is guessed.
const GUESSES: usize = 10_000;

/// A thread that waits without a deadline, and whose blocker is known or may be guessed.
struct Seen {
    waiter: Waiter,
    /// The word of the lock for which the thread waits, if the holder must be guessed. Until
    /// [`guess`](Deadlocks::guess) finds the holder, the blocker is thread 0, which does not exist.
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

    /// Looks for circles among the threads, when all have been added. Looks at each thread of a
    /// circle again, and reports the circle only if none of them has run since.
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

    /// Guesses which threads hold the locks that other threads wait for. Reads only the stacks of
    /// waiting threads, because all threads of a circle wait.
    fn guess(&mut self) {
        if self.guesses == 0 {
            return;
        }
        let mut holders = Holders::new(self.seen.iter().filter_map(|seen| seen.lock));
        for seen in self.seen.iter().take(GUESSES) {
            sched::inspect(seen.slot, |core, parked| {
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

/// Returns the thread or scope that a thread waits for, if it is known and the wait has no
/// deadline.
fn blocker(noted: &Noted) -> Option<Blocker> {
    if noted.is_timed() {
        return None;
    }
    match noted.reason.kind() {
        Kind::Mutex | Kind::RwLockToRead | Kind::RwLockToWrite if noted.owner != 0 => {
            Some(Blocker::Thread(noted.owner))
        }
        Kind::Join => Some(Blocker::Thread(noted.reason.argument())),
        Kind::Scope => Some(Blocker::Scope(noted.reason.argument())),
        _ => None,
    }
}

/// Looks at a thread again. Returns it if it has not run since, and waits for the same.
fn again(seen: &Seen) -> Option<Thread> {
    let mut name = [0u8; 256];
    let (noted, length) = sched::inspect(seen.slot, |core, parked| {
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

/// The most bytes from where a pointer leads to the word of the lock.
const REACH: u64 = 256;
/// The most bytes that are read of a stack, from its innermost frame on.
const DEPTH: usize = 64 << 10;

/// The words of locks that keep no owner, as the locks of `std` are, with the pointers to them.
///
/// A guard is a reference to its lock, on the stack of the thread that holds the lock. Of the
/// threads that wait for something else, that thread has the pointer nearest to the lock's word:
/// the word is in the lock, behind its data. This is a guess. A thread that has borrowed the lock
/// has the same pointer: then there is no answer. An unused part of a frame may have one, optimised
/// code keeps none to a lock in a static, and the word of a condition variable that has been
/// notified twice looks like the word of a mutex.
struct Holders {
    /// In the order of addresses.
    words: Vec<Word>,
}

struct Word {
    address: u64,
    /// The least distance at which a pointer was found, and the thread on whose stack: 0 if there
    /// are several.
    nearest: Option<(u64, u64)>,
}

impl Holders {
    /// Returns words of which nothing is known yet.
    fn new(words: impl Iterator<Item = u64>) -> Holders {
        let mut words: Vec<u64> = words.collect();
        words.sort_unstable();
        words.dedup();
        let word = |address| Word {
            address,
            nearest: None,
        };
        Holders {
            words: words.into_iter().map(word).collect(),
        }
    }

    /// Looks for pointers on the stack of a thread that is off it and waits for the word `reason`,
    /// or for something else. Does not allocate.
    fn read(&mut self, thread: u64, reason: Option<u64>, stack: Range<usize>) {
        let (Some(first), Some(last)) = (self.words.first(), self.words.last()) else {
            return;
        };
        let all = first.address.saturating_sub(REACH)..=last.address;
        let end = stack.end.min(stack.start + DEPTH);
        for place in (stack.start.next_multiple_of(8)..end).step_by(8) {
            // SAFETY: there are threads, so the handler is in place. The stack of a thread that the
            // caller has claimed. By an instruction, so that no sanitizer objects.
            let pointer = unsafe { arch::fetch_u64(place) }.value;
            if all.contains(&pointer) {
                self.note(pointer, thread, reason);
            }
        }
    }

    fn note(&mut self, pointer: u64, thread: u64, reason: Option<u64>) {
        let from = self.words.partition_point(|word| word.address < pointer);
        let words = self.words[from..].iter_mut();
        for word in words.take_while(|word| word.address - pointer <= REACH) {
            if reason == Some(word.address) {
                continue;
            }
            let distance = word.address - pointer;
            word.nearest = match word.nearest {
                Some((nearest, _)) if nearest < distance => continue,
                Some((nearest, other)) if nearest == distance && other != thread => {
                    Some((distance, 0))
                }
                _ => Some((distance, thread)),
            };
        }
    }

    /// Returns the id of the thread that probably holds the lock with this word.
    fn of(&self, word: u64) -> Option<u64> {
        let place = self
            .words
            .binary_search_by_key(&word, |it| it.address)
            .ok()?;
        let (_, thread) = self.words[place].nearest?;
        (thread != 0).then_some(thread)
    }
}
