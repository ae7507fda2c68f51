//! Putting a dump together: the different stacks and places, groups of threads that are alike,
//! numbers, and since when threads wait.

use super::unwind::{Frames, MOST_FRAMES, Unwinder};
use super::walk::{Seen, Walker};
use crate::hooks::hooks;
use crate::waits::deadlocks::Deadlocks;
use crate::waits::standstill::Standstill;
use crate::waits::{Crowds, WallClock};
use core::ptr;
use pirn_dump::{End, Finding, Grouper, Stack, State, Thread, Totals, Wait};
use pirn_rt::stack::Slot;
use pirn_rt::stack::region::MAX_SLOTS;
use pirn_rt::vthread::record::Place;
use std::collections::HashMap;

/// How often a thread is looked at again because libraries were loaded meanwhile.
const RELOADS: u32 = 3;

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
    /// How many threads may still be listed that are no examples; `None`: only examples are listed.
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

    /// Adds a thread that the walker has just seen. If the thread is in a library that was opened
    /// after the walker read which libraries are loaded, the walker looks at the thread again.
    pub(super) fn add(&mut self, mut seen: Seen, walker: &mut Walker) {
        for look in 0.. {
            let (frames, unwinder) = (&mut walker.frames, &walker.unwinder);
            let stack = match frames.len {
                0 => return self.add_with(seen, None, walker),
                _ => self
                    .stacks
                    .number(frames, seen.exact, unwinder, look == RELOADS),
            };
            if stack.is_some() {
                return self.add_with(seen, stack, walker);
            }
            match walker.look_anew(seen.slot) {
                Some(again) => seen = again,
                None => return, // It has ended meanwhile.
            }
        }
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

    /// Adds a thread to what the findings about all threads come from.
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

    /// Returns the findings about all threads, when the last has been added. `others`:
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

/// Interposed functions are looked for in this many frames.
const RUNTIME_FRAMES: usize = 32;
/// When this many bytes of frames are kept, only the first frame of further stacks is.
const MOST_BYTES: usize = 32 << 20;
const FEW_FRAMES: usize = 8;

/// The different stacks of a dump.
///
/// Most threads have the stack of another thread, frame by frame: one look into a table finds it. A
/// new one is checked, and compared as it is shown, without the runtime's own frames: there are
/// several ways through the runtime into the same wait.
pub(super) struct Stacks {
    pub(super) all: Vec<Stack>,
    /// Stacks as they were read, with a word that says how: their numbers.
    read: HashMap<Box<[u64]>, u32>,
    /// Stacks as they are shown.
    shown: HashMap<Box<[u64]>, u32>,
    /// The addresses of all interposed functions, sorted.
    interposed: Vec<usize>,
    bytes: usize,
}

impl Stacks {
    pub(super) fn new() -> Stacks {
        Stacks {
            all: Vec::new(),
            read: HashMap::new(),
            shown: HashMap::new(),
            interposed: (hooks().interposed)(),
            bytes: 0,
        }
    }

    /// Returns the number of a stack. `exact`: the thread was stopped, and the first frame has the
    /// instruction that it runs next; otherwise the thread has left its stack.
    ///
    /// `None`, unless it is taken `as_it_is`: the stack has unknown code, and a library has been
    /// loaded since the list of modules was made. The frames beyond that code are missing, or
    /// wrong.
    pub(super) fn number(
        &mut self,
        frames: &mut Frames,
        exact: bool,
        unwinder: &Unwinder,
        as_it_is: bool,
    ) -> Option<u32> {
        let mut key = [0; MOST_FRAMES + 1];
        key[..frames.len].copy_from_slice(frames.counters());
        key[frames.len] = frames.end as u64 | u64::from(exact) << 8;
        let key = &key[..frames.len + 1];
        if let Some(&number) = self.read.get(key) {
            return Some(number);
        }
        unwinder.check(frames);
        if !as_it_is && frames.end == End::Lost && unwinder.modules.are_old() {
            return None;
        }
        if self.bytes > MOST_BYTES && frames.len > FEW_FRAMES {
            (frames.len, frames.end) = (FEW_FRAMES, End::TooDeep);
        }
        let number = self.number_as_shown(frames, exact, unwinder);
        if self.bytes <= MOST_BYTES {
            self.bytes += size_of_val(key);
            self.read.insert(key.into(), number);
        }
        Some(number)
    }

    fn number_as_shown(&mut self, frames: &Frames, exact: bool, unwinder: &Unwinder) -> u32 {
        let stack = self.stack(frames, exact, unwinder);
        let hidden = stack.runtime_frames as usize;
        let mut key = stack.frames[hidden..].to_vec();
        if let Some(first) = key
            .first_mut()
            .filter(|_| hidden == 0 && !stack.exact_first)
        {
            // The switch is in two places of a function.
            let function = unwinder.modules.function_at(*first as usize);
            *first = function.map_or(*first, |function| function.start as u64);
        }
        key.push(stack.end as u64 | u64::from(stack.exact_first) << 8 | u64::from(hidden > 0) << 9);
        let key = key.into_boxed_slice();
        if let Some(&number) = self.shown.get(&key) {
            return number;
        }
        let number = self.all.len() as u32;
        self.bytes += size_of_val(&*key) + size_of_val(&*stack.frames);
        self.all.push(stack);
        self.shown.insert(key, number);
        number
    }

    fn stack(&self, frames: &Frames, exact: bool, unwinder: &Unwinder) -> Stack {
        if frames.interrupted > 0 {
            // Leaves out the frames by which the runtime has interrupted the thread.
            return Stack {
                frames: frames.counters()[frames.interrupted.min(frames.len)..].to_vec(),
                exact_first: true,
                end: frames.end,
                runtime_frames: 0,
            };
        }
        let interposed = |counter: &u64| {
            let function = unwinder.modules.function_at(*counter as usize - 1);
            function.is_some_and(|f| self.interposed.binary_search(&f.start).is_ok())
        };
        let mut first = frames.counters().iter().take(RUNTIME_FRAMES);
        let hidden = match exact {
            true => None,
            false => first.position(interposed),
        };
        Stack {
            frames: frames.counters().to_vec(),
            exact_first: exact,
            end: frames.end,
            runtime_frames: hidden.unwrap_or(0) as u32,
        }
    }
}

/// The unit of the times that are kept, in nanoseconds.
const UNIT_NS: u64 = 10_000_000;

/// The thread that a dump saw in a slot.
#[derive(Clone, Copy, Default)]
struct Sight {
    id: u64,
    mounts: u32,
    /// In units after the first dump.
    time: u32,
}

/// Since when a thread has not moved. A park reads no clock: the thread's mounts are counted, and a
/// dump notes when it first saw a count. So a second dump knows which threads have waited since the
/// first.
#[derive(Default)]
pub(super) struct FirstSeen {
    /// For each region, if a thread was seen there, its slots.
    regions: Vec<Box<[Sight]>>,
    /// The time of the first dump, in nanoseconds since 1970.
    first: u64,
}

impl FirstSeen {
    /// Notes a thread that waits in a slot, and how often it had been mounted. Returns the time of
    /// the dump that first saw it like this; `now` is the time of this one.
    pub(super) fn note(&mut self, slot: Slot, id: u64, mounts: u32, now: u64) -> u64 {
        if self.first == 0 {
            self.first = now;
        }
        let region = slot.region();
        if region >= self.regions.len() {
            self.regions.resize_with(region + 1, Box::default);
        }
        if self.regions[region].is_empty() {
            self.regions[region] = vec![Sight::default(); MAX_SLOTS].into();
        }
        let sight = &mut self.regions[region][slot.index()];
        if (sight.id, sight.mounts) != (id, mounts) {
            let time = (now.saturating_sub(self.first) / UNIT_NS) as u32;
            *sight = Sight { id, mounts, time };
            return now;
        }
        self.first + u64::from(sight.time) * UNIT_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_moves_or_ends_is_seen_anew() {
        const START: u64 = 1_700_000_000_000_000_000;
        let mut sights = FirstSeen::default();
        let slot = Slot(3 << 12 | 5);
        assert_eq!(sights.note(slot, 7, 1, START), START);
        let later = START + 10 * UNIT_NS;
        assert_eq!(sights.note(slot, 7, 1, later), START);
        assert_eq!(sights.note(slot, 7, 2, later), later);
        assert_eq!(sights.note(slot, 7, 2, later + UNIT_NS), later);
        assert_eq!(sights.note(slot, 8, 2, later + UNIT_NS), later + UNIT_NS);
    }
}
