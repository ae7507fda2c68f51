//! Putting a dump together: the different stacks and places, groups of threads that are alike,
//! numbers.

use super::first_seen::FirstSeen;
use super::stacks::Stacks;
use super::walk::{Seen, Walker};
use crate::waits::WallClock;
use crate::waits::crowds::Crowds;
use crate::waits::deadlocks::Deadlocks;
use crate::waits::standstill::Standstill;
use core::ptr;
use pirn_dump::{Finding, Grouper, State, Thread, Totals, Wait};
use pirn_rt::vthread::record::Place;
use std::collections::HashMap;

/// How often a thread is looked at again because of what has been loaded meanwhile.
const RELOADS: u32 = 3;

/// The walker does not know all that is loaded.
struct Outdated;

/// See the module's documentation.
pub(super) struct Assembly<'a> {
    pub(super) stacks: Stacks,
    pub(super) places: Places,
    pub(super) grouper: Grouper,
    /// The examples, and others as far as there is room.
    pub(super) threads: Vec<Thread>,
    pub(super) totals: Totals,
    /// The threads that ran, by the numbers of their carriers.
    pub(super) mounted: HashMap<u32, u64>,
    sights: &'a mut FirstSeen,
    /// How many threads may be listed that are no examples; `None`: there are to be none.
    room: Option<usize>,
    /// The time of the dump, in nanoseconds since 1970.
    now: u64,
    clock: WallClock,
    deadlocks: Deadlocks,
    standstill: Standstill,
    crowds: Crowds,
}

impl<'a> Assembly<'a> {
    /// Returns an assembly without threads.
    pub(super) fn new(sights: &'a mut FirstSeen, room: Option<usize>, now: u64) -> Assembly<'a> {
        Assembly {
            stacks: Stacks::new(),
            places: Places::default(),
            grouper: Grouper::default(),
            threads: Vec::new(),
            totals: Totals::default(),
            mounted: HashMap::new(),
            sights,
            room,
            now,
            clock: WallClock::now(),
            deadlocks: Deadlocks::default(),
            standstill: Standstill::new(),
            crowds: Crowds::default(),
        }
    }

    /// Adds a thread that the walker has just seen. If a library has been opened since the walker
    /// has looked what is loaded, and the thread is in it, it is looked at again.
    pub(super) fn add(&mut self, mut seen: Seen, walker: &mut Walker) {
        for _ in 0..RELOADS {
            match self.stack(&seen, walker) {
                Ok(stack) => return self.add_with(seen, stack, walker),
                Err(Outdated) => match walker.look_anew(seen.slot) {
                    Some(again) => seen = again,
                    None => return, // It has ended meanwhile.
                },
            }
        }
        let (frames, unwinder) = (&mut walker.frames, &walker.unwinder);
        let stack = match frames.len {
            0 => None,
            _ => self.stacks.number_as_it_is(frames, seen.exact, unwinder),
        };
        self.add_with(seen, stack, walker);
    }

    /// Returns the number of the stack of a thread that the walker has just seen, if it has seen
    /// that.
    fn stack(&mut self, seen: &Seen, walker: &mut Walker) -> Result<Option<u32>, Outdated> {
        let (frames, unwinder) = (&mut walker.frames, &walker.unwinder);
        if frames.len == 0 {
            return Ok(None);
        }
        let number = self.stacks.number(frames, seen.exact, unwinder);
        number.map(Some).ok_or(Outdated)
    }

    fn add_with(&mut self, seen: Seen, stack: Option<u32>, walker: &Walker) {
        let waits = seen.state == State::Waiting;
        let since = waits.then(|| self.sights.note(seen.slot, seen.id, seen.mounts, self.now));
        self.totals.listed += 1;
        self.totals.by_state[seen.state as usize] += 1;
        self.totals.unclaimed += u64::from(stack.is_none());
        if let (State::Running, Some(carrier)) = (seen.state, seen.carrier) {
            self.mounted.insert(carrier, seen.id);
        }
        self.note(&seen);
        let thread = Thread {
            id: seen.id,
            name: None,
            state: seen.state,
            wait: seen.noted.map_or(Wait::None, |noted| noted.plain()),
            until: seen.noted.and_then(|noted| noted.until(&self.clock)),
            stack,
            place: Some(self.places.number(seen.place)),
            scope: (seen.scope != 0).then_some(seen.scope),
            carrier: seen.carrier,
            mounts: u64::from(seen.mounts),
            unmoved_since: since,
            interrupted: seen.interrupted,
            is_virtual: true,
            stack_bytes: seen.stack_bytes,
            works_for: Vec::new(),
        };
        let example = self.grouper.add(&thread, self.threads.len() as u32);
        let listed = match &mut self.room {
            _ if example => true,
            None => false,
            Some(0) => {
                self.totals.cut += 1;
                false
            }
            Some(room) => {
                *room -= 1;
                true
            }
        };
        if listed {
            self.threads.push(Thread {
                name: seen.named.then(|| walker.name().to_vec()),
                wait: seen.noted.map_or(Wait::None, |noted| noted.wait()),
                works_for: walker.works_for.texts(),
                ..thread
            });
        }
    }

    /// Adds a thread to what is to be found out about all of them.
    fn note(&mut self, seen: &Seen) {
        let &Seen {
            slot,
            id,
            mounts,
            scope,
            ref noted,
            ..
        } = seen;
        self.standstill.add(slot, id, mounts, noted.as_ref());
        if let Some(noted) = noted {
            self.deadlocks.add(slot, id, mounts, scope, noted);
            self.crowds.add(noted);
        }
    }

    /// Returns what has been found out about all threads, when the last has been added. `others`:
    /// there are threads that have not been added.
    pub(super) fn findings(&mut self, others: bool) -> Vec<Finding> {
        self.crowds.count(&mut self.threads);
        let mut findings = self.deadlocks.findings();
        findings.extend(self.standstill.finding(others));
        findings
    }
}

/// The different places at which threads were spawned.
#[derive(Default)]
pub(super) struct Places {
    pub(super) all: Vec<pirn_dump::Place>,
    /// By address, as most are found. The compiler may have made several copies of one.
    read: HashMap<*const core::panic::Location<'static>, u32>,
}

impl Places {
    fn number(&mut self, place: Place) -> u32 {
        let all = &mut self.all;
        *self.read.entry(ptr::from_ref(place)).or_insert_with(|| {
            let place = pirn_dump::Place {
                file: place.file().into(),
                line: place.line(),
                column: place.column(),
            };
            let known = all.iter().position(|known| *known == place);
            known.unwrap_or_else(|| {
                all.push(place);
                all.len() - 1
            }) as u32
        })
    }
}
