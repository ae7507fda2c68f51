//! Whether anything inside of the process can wake its virtual threads.
//!
//! It cannot if all of them wait for each other's doing, without a deadline, and no platform thread
//! is left that could do something: all that there are belong to the runtime, or wait themselves
//! for a virtual thread to end. Then only a signal handler can help, or a debugger.
//!
//! Threads are seen one after the other. So they are all looked at again: if none has run since,
//! and none has begun that was not seen, then all of them waited at the end of the first look.

use super::Noted;
use pirn_dump::Finding;
use pirn_rt::blocking::wait::relying_platform_threads;
use pirn_rt::sched;
use pirn_rt::sched::runtime;
use pirn_rt::stack::Slot;
use pirn_rt::vthread::helper;
use pirn_rt::vthread::wait_reason::Kind;
use std::fs;

/// The most threads that a finding names.
const NAMED: usize = 16;

struct Seen {
    id: u64,
    slot: Slot,
    mounts: u32,
}

/// The threads of a walk, as long as nothing can wake them.
pub struct Standstill {
    /// How many threads had begun before the walk.
    begun: u64,
    /// `None`: something can.
    seen: Option<Vec<Seen>>,
}

impl Standstill {
    /// Returns the state before a walk.
    #[expect(clippy::new_without_default, reason = "it begins to count")]
    pub fn new() -> Standstill {
        Standstill {
            begun: threads_begun(),
            seen: Some(Vec::new()),
        }
    }

    /// Adds a thread, with what it waits for if it is parked.
    pub fn add(&mut self, slot: Slot, id: u64, mounts: u32, noted: Option<&Noted>) {
        match &mut self.seen {
            Some(seen) if noted.is_some_and(waits_for_others) => {
                seen.push(Seen { id, slot, mounts });
            }
            seen => *seen = None,
        }
    }

    /// Looks at the threads again, when all have been added. `others`: there are threads that have
    /// not been added.
    pub fn finding(&self, others: bool) -> Option<Finding> {
        let seen = self.seen.as_ref().filter(|seen| !seen.is_empty())?;
        if others || is_busy() || has_outsiders() || !seen.iter().all(still_waits) || is_busy() {
            return None;
        }
        // The walk has passed the slots of those that have begun since.
        if threads_begun() != self.begun {
            return None;
        }
        Some(Finding {
            kind: "nothing-can-wake".into(),
            text: format!(
                "nothing inside the process can wake its {} virtual threads: none runs or waits \
                 for a descriptor, a time or a call, and no platform thread could wake one",
                seen.len()
            ),
            threads: seen.iter().take(NAMED).map(|seen| seen.id).collect(),
        })
    }
}

/// Returns whether only other threads of the process can end the wait.
fn waits_for_others(noted: &Noted) -> bool {
    let inside = matches!(
        noted.reason.kind(),
        Kind::Futex
            | Kind::Mutex
            | Kind::RwLockToRead
            | Kind::RwLockToWrite
            | Kind::Condvar
            | Kind::Semaphore
            | Kind::Barrier
            | Kind::Once
            | Kind::Park
            | Kind::Join
            | Kind::Scope
            | Kind::ScopeEvent
    );
    inside && !noted.is_timed() && !noted.reason.looks_again()
}

fn still_waits(seen: &Seen) -> bool {
    let same = sched::inspect(seen.slot, |core, parked| {
        parked && core.id() == seen.id && core.mounts() == seen.mounts
    });
    same == Some(true)
}

/// Returns how many threads have begun to run, in all.
fn threads_begun() -> u64 {
    runtime::get().map_or(0, |runtime| runtime.sum(|counters| &counters.begun))
}

/// Returns whether the runtime has something to do, or a time to wait for.
fn is_busy() -> bool {
    runtime::get().is_none_or(|runtime| {
        runtime.injector.len() > 0
            || runtime.idle.count() < runtime.settings.parallelism
            || !runtime.timers.next_deadline().is_never()
    })
}

/// Returns whether there is a platform thread that is not the runtime's and may run by itself.
fn has_outsiders() -> bool {
    let list = || Some(fs::read_dir("/proc/self/task").ok()?.count());
    let own_of_all = helper::among(list);
    own_of_all.is_none_or(|(own, all)| all > own + relying_platform_threads())
}
