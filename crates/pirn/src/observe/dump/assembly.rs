//! Putting a dump together: the different stacks and places, groups of threads that are alike,
//! numbers.

use super::since::Sights;
use super::stacks::Stacks;
use super::waits;
use super::walk::{Seen, Walker};
use crate::sys;
use crate::vthread::record::Place;
use core::ptr;
use pirn_dump::{Grouper, State, Thread, Totals};
use std::collections::HashMap;

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
    sights: &'a mut Sights,
    /// How many threads may be listed that are no examples; `None`: there are to be none.
    room: Option<usize>,
    /// The time of the dump, in nanoseconds since 1970.
    now: u64,
    /// The same by the runtime's clock.
    now_here: u64,
}

impl<'a> Assembly<'a> {
    /// Returns an assembly without threads.
    pub(super) fn new(sights: &'a mut Sights, room: Option<usize>, now: u64) -> Assembly<'a> {
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
            now_here: sys::now(),
        }
    }

    /// Adds a thread that the walker has just seen.
    pub(super) fn add(&mut self, mut seen: Seen, walker: &mut Walker) {
        let (frames, unwinder) = (&mut walker.frames, &walker.unwinder);
        let stack = (frames.len > 0).then(|| self.stacks.number(frames, seen.exact, unwinder));
        let waits = seen.state == State::Waiting;
        let since = waits.then(|| self.sights.note(seen.slot, seen.id, seen.mounts, self.now));
        self.totals.listed += 1;
        self.totals.by_state[seen.state as usize] += 1;
        self.totals.unclaimed += u64::from(stack.is_none());
        if let (State::Running, Some(carrier)) = (seen.state, seen.carrier) {
            self.mounted.insert(carrier, seen.id);
        }
        waits::find_owner(&mut seen.wait);
        let until = seen.until.map(|until| {
            // A time before 1970 or after 2554 is as good as the nearest.
            self.now.saturating_add(until).saturating_sub(self.now_here)
        });
        let thread = Thread {
            id: seen.id,
            name: None,
            state: seen.state,
            wait: seen.wait,
            until,
            stack,
            place: Some(self.places.number(seen.place)),
            scope: (seen.scope != 0).then_some(seen.scope),
            carrier: seen.carrier,
            mounts: u64::from(seen.mounts),
            unmoved_since: since,
            interrupted: seen.interrupted,
            is_virtual: true,
            stack_bytes: seen.stack_bytes,
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
            let name = seen.named.then(|| walker.name().to_vec());
            self.threads.push(Thread { name, ..thread });
        }
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
