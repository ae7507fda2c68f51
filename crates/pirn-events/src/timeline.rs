//! The events of a recording in order, with times and names.

use crate::awaited::Awaited;
use crate::kinds::{self, FOREIGN};
use crate::merge::{Raw, merge};
use crate::recording::{Place, Recording, Scope, Segment};
use crate::stamps::Stamps;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// What happened, in order.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The process's number.
    pub pid: u32,
    /// The path of its program.
    pub program: String,
    /// The carriers by number, then other platform threads.
    pub rows: Vec<Row>,
    /// The events, by time; a row's events are in the order in which they happened.
    pub events: Vec<Event>,
    /// The virtual threads that occur in events.
    pub threads: BTreeMap<u64, Thread>,
    /// The names of scopes.
    pub scopes: BTreeMap<u64, Scope>,
    /// The places at which threads were spawned, by address.
    pub places: BTreeMap<u64, Place>,
    /// The first and the last moment, in nanoseconds of the monotonic clock.
    pub begin: u64,
    /// See [`begin`](Self::begin).
    pub end: u64,
    /// What to add to times for nanoseconds since 1970.
    pub since_1970: i64,
    /// The number of slots and events that had been overwritten.
    pub lost: u64,
}

/// A platform thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number, if it is one of the runtime's carriers.
    pub carrier: Option<u32>,
    /// The kernel's number of it.
    pub tid: u32,
}

/// A virtual thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its name, if it has one that is known.
    pub name: Option<String>,
    /// The address of the place at which it was spawned; 0 if that is not known.
    pub place: u64,
    /// The number of times that it was mounted.
    pub mounts: u64,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds of the monotonic clock.
    pub time: u64,
    /// The index of the row on which it happened.
    pub row: usize,
    /// The virtual thread that was mounted there, or 0.
    pub thread: u64,
    /// What happened.
    pub what: What,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The thread leaves, and the next one is mounted. Either may be 0: the carrier's own loop.
    Switch {
        /// Why it leaves.
        why: Why,
        /// The thread that is mounted.
        next: u64,
    },
    /// A thread is spawned at a place.
    Spawn {
        /// The new thread.
        thread: u64,
        /// The address of the place, or 0.
        place: u64,
    },
    /// A thread is woken.
    Wake(u64),
    /// A thread is interrupted; 0: a platform thread.
    Interrupt(u64),
    /// A scope is opened.
    ScopeOpened(u64),
    /// A scope is cancelled.
    ScopeCancelled(u64),
    /// A scope is closed.
    ScopeClosed(u64),
    /// A platform thread begins to make a call for the thread.
    Offload,
    /// The thread has the result of that.
    Offloaded,
    /// The carrier goes to sleep.
    Sleep,
    /// The carrier wakes up.
    Awake,
    /// A platform thread has carried one thread for long.
    Stuck {
        /// The kernel's number of the platform thread.
        tid: u32,
        /// For how many nanoseconds.
        nanos: u64,
    },
    /// A spare carrier is put to work.
    Spare(u64),
    /// The thread's closure has panicked.
    Panic,
}

/// Why a thread leaves its carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There was none.
    Mount,
    /// It yields.
    Yield,
    /// It waits.
    Park(Awaited),
    /// It has been preempted.
    Preempt,
    /// It ends.
    Exit,
}

/// What the thread does then, in words; nothing where there was none.
impl Display for Why {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Why::Mount => Ok(()),
            Why::Yield => f.write_str("yields"),
            Why::Park(awaited) => write!(f, "waits: {awaited}"),
            Why::Preempt => f.write_str("is preempted"),
            Why::Exit => f.write_str("ends"),
        }
    }
}

impl Timeline {
    /// Makes a timeline of a recording.
    ///
    /// # Examples
    /// ```
    /// let timeline = pirn_events::Timeline::new(&pirn_events::Recording::default());
    /// assert!(timeline.events.is_empty());
    /// ```
    pub fn new(recording: &Recording) -> Timeline {
        let stamps = Stamps::new(recording);
        let mut names = recording.names.clone();
        let mut rows = Vec::new();
        let mut raw = Vec::new();
        for (number, carrier) in &recording.carriers {
            rows.push(Row {
                carrier: Some(*number),
                tid: carrier.tid,
            });
            let mut events = Decoder::new(&stamps, &mut names);
            carrier
                .segments
                .iter()
                .for_each(|segment| events.add(segment));
            raw.push(events.done(recording.mounted.get(number).copied()));
        }
        add_silent(recording, &stamps, &mut rows, &mut raw);
        let mut named = BTreeMap::new();
        add_outside(recording, &stamps, &mut rows, &mut raw, &mut named);
        names.extend(named.into_iter().map(|(id, name)| {
            let name = String::from_utf8_lossy(&name).into_owned();
            (id, name)
        }));
        let events = merge(raw, &stamps);
        let clock = recording.clocks.first().copied().unwrap_or_default();
        let last = recording.clocks.last().copied().unwrap_or_default();
        let begin = events.first().map_or(clock.monotonic, |event| event.time);
        let end = events.last().map_or(begin, |event| event.time);
        let mut timeline = Timeline {
            pid: recording.pid,
            program: String::from_utf8_lossy(&recording.program).into_owned(),
            rows,
            events,
            places: recording.places.clone(),
            begin,
            end: end.max(last.monotonic),
            since_1970: clock.real.wrapping_sub(clock.monotonic) as i64,
            lost: recording.lost,
            ..Timeline::default()
        };
        timeline.note_threads(&names);
        timeline.note_scopes(recording, &names);
        timeline
    }

    fn note_threads(&mut self, names: &BTreeMap<u64, String>) {
        let threads = &mut self.threads;
        let mut note = |id: u64, change: &dyn Fn(&mut Thread)| {
            if id != 0 {
                let new = || Thread {
                    name: names.get(&id).cloned(),
                    ..Thread::default()
                };
                change(threads.entry(id).or_insert_with(new));
            }
        };
        for event in &self.events {
            note(event.thread, &|_| ());
            match event.what {
                What::Switch { next, .. } => note(next, &|thread| thread.mounts += 1),
                What::Spawn { thread, place } => note(thread, &|thread| thread.place = place),
                What::Wake(thread) | What::Interrupt(thread) => note(thread, &|_| ()),
                _ => {}
            }
        }
    }

    fn note_scopes(&mut self, recording: &Recording, names: &BTreeMap<u64, String>) {
        for event in &self.events {
            if let What::ScopeOpened(id) | What::ScopeClosed(id) = event.what {
                let scope = self.scopes.entry(id).or_default();
                scope.id = id;
                scope.owner = event.thread;
                if let Some(name) = names.get(&id) {
                    scope.name.clone_from(name);
                }
            }
        }
        for scope in &recording.scopes {
            self.scopes.insert(scope.id, scope.clone());
        }
    }

    /// Returns what to call a thread.
    pub fn title(&self, thread: u64) -> String {
        match self.threads.get(&thread).and_then(|t| t.name.as_deref()) {
            Some(name) => format!("{name} #{thread}"),
            None => format!("#{thread}"),
        }
    }

    /// Returns what to call a row.
    pub fn row_title(&self, row: usize) -> String {
        match self.rows.get(row) {
            Some(Row {
                carrier: Some(number),
                ..
            }) => format!("carrier {number}"),
            Some(Row { tid, .. }) => format!("platform thread {tid}"),
            None => String::new(),
        }
    }
}

/// Makes events of a carrier's slots.
struct Decoder<'a> {
    stamps: &'a Stamps,
    names: &'a mut BTreeMap<u64, String>,
    events: Vec<Raw>,
    /// The mounted thread, if that is known.
    mounted: Option<u64>,
    /// The index of the next slot.
    next: u64,
    last_stamp: u64,
}

impl<'a> Decoder<'a> {
    fn new(stamps: &'a Stamps, names: &'a mut BTreeMap<u64, String>) -> Decoder<'a> {
        Decoder {
            stamps,
            names,
            events: Vec::new(),
            mounted: None,
            next: 0,
            last_stamp: 0,
        }
    }

    fn add(&mut self, segment: &Segment) {
        if segment.first != self.next {
            self.mounted = None; // Unknown after a gap.
        }
        self.next = segment.first + segment.slots.len() as u64;
        let mut slots = segment.slots.as_slice();
        while let Some((slot, rest)) = slots.split_first() {
            slots = match slot[0] as u8 {
                kinds::NAME => self.name(slot, rest),
                kinds::TEXT | kinds::DETAIL | 0 => rest, // Its event has been overwritten.
                kind => self.event(kind, slot, rest),
            };
        }
    }

    fn name<'s>(&mut self, slot: &[u64; 2], rest: &'s [[u64; 2]]) -> &'s [[u64; 2]] {
        let length = (slot[0] >> 8) as usize;
        let texts = rest.iter().take_while(|slot| slot[0] as u8 == kinds::TEXT);
        let texts: Vec<_> = texts.take(length.div_ceil(15)).collect();
        let bytes = texts.iter().flat_map(|slot| {
            let [first, second] = slot.map(u64::to_le_bytes);
            first.into_iter().skip(1).chain(second)
        });
        let bytes: Vec<_> = bytes.take(length).collect();
        let name = String::from_utf8_lossy(&bytes).into_owned();
        self.names.insert(slot[1], name);
        &rest[texts.len()..]
    }

    fn event<'s>(&mut self, kind: u8, slot: &[u64; 2], rest: &'s [[u64; 2]]) -> &'s [[u64; 2]] {
        let (detail, rest) = match rest.split_first() {
            Some((detail, rest)) if detail[0] as u8 == kinds::DETAIL => (detail[1], rest),
            _ => (0, rest),
        };
        self.last_stamp = self.stamps.whole(slot[0]);
        let thread = self.mounted.unwrap_or(0);
        if kind == kinds::STATE {
            if self.mounted.is_none() && slot[1] != 0 {
                self.push(
                    0,
                    What::Switch {
                        why: Why::Mount,
                        next: slot[1],
                    },
                );
            }
            self.mounted = Some(slot[1]);
        } else if let Some(what) = what(kind, slot[1], detail) {
            self.push(thread, what);
            if let What::Switch { next, .. } = what {
                self.mounted = Some(next);
            }
        }
        rest
    }

    fn push(&mut self, thread: u64, what: What) {
        let stamp = self.last_stamp;
        self.events.push(Raw {
            stamp,
            thread,
            what,
        });
    }

    /// Returns the events. A thread that is mounted at the end, and of which there is no event, has
    /// been so all the time.
    fn done(mut self, mounted: Option<u64>) -> Vec<Raw> {
        if self.events.is_empty()
            && let Some(next) = mounted
        {
            self.last_stamp = self.stamps.first();
            self.push(
                0,
                What::Switch {
                    why: Why::Mount,
                    next,
                },
            );
        }
        self.events
    }
}

/// Returns the event of this kind.
fn what(kind: u8, payload: u64, detail: u64) -> Option<What> {
    let switch = |why| What::Switch { why, next: payload };
    Some(match kind {
        kinds::MOUNT => switch(Why::Mount),
        kinds::YIELD => switch(Why::Yield),
        kinds::PARK => switch(Why::Park(Awaited(detail))),
        kinds::PREEMPT => switch(Why::Preempt),
        kinds::EXIT => switch(Why::Exit),
        kinds::SPAWN => What::Spawn {
            thread: payload,
            place: detail,
        },
        kinds::WAKE => What::Wake(payload),
        kinds::INTERRUPT => What::Interrupt(payload),
        kinds::SCOPE_OPEN => What::ScopeOpened(payload),
        kinds::SCOPE_CANCEL => What::ScopeCancelled(payload),
        kinds::SCOPE_CLOSE => What::ScopeClosed(payload),
        kinds::OFFLOAD => What::Offload,
        kinds::OFFLOADED => What::Offloaded,
        kinds::SLEEP => What::Sleep,
        kinds::AWAKE => What::Awake,
        kinds::STUCK => What::Stuck {
            tid: detail as u32,
            nanos: payload,
        },
        kinds::SPARE => What::Spare(payload),
        kinds::PANIC => What::Panic,
        _ => return None,
    })
}

/// Adds rows for carriers of which there is no event: what was mounted there at the end has been so
/// all the time.
fn add_silent(
    recording: &Recording,
    stamps: &Stamps,
    rows: &mut Vec<Row>,
    raw: &mut Vec<Vec<Raw>>,
) {
    for (number, thread) in &recording.mounted {
        let foreign = number & FOREIGN != 0;
        if recording.carriers.contains_key(number)
            || foreign && outside_of(recording, number & !FOREIGN)
        {
            continue;
        }
        rows.push(Row {
            carrier: (!foreign).then_some(*number),
            tid: if foreign { number & !FOREIGN } else { 0 },
        });
        let mut names = BTreeMap::new();
        raw.push(Decoder::new(stamps, &mut names).done(Some(*thread)));
    }
}

/// Returns whether a platform thread has written events from outside of carriers.
fn outside_of(recording: &Recording, tid: u32) -> bool {
    recording
        .outside
        .iter()
        .any(|event| event[4] == u64::from(tid))
}

/// Adds the events from outside of carriers: a row per platform thread, unless it is a carrier's.
fn add_outside(
    recording: &Recording,
    stamps: &Stamps,
    rows: &mut Vec<Row>,
    raw: &mut Vec<Vec<Raw>>,
    names: &mut BTreeMap<u64, Vec<u8>>,
) {
    for [first, payload, detail, thread, tid] in &recording.outside {
        if *first as u8 == kinds::NAME {
            let bytes = [detail.to_le_bytes(), thread.to_le_bytes()].concat();
            let (length, part) = ((first >> 8) as u8, first >> 16);
            let name = names.entry(*payload).or_default();
            if name.len() as u64 == 16 * part {
                name.extend(bytes.iter().take(length.into()));
            }
            continue;
        }
        let Some(what) = what(*first as u8, *payload, *detail) else {
            continue;
        };
        let tid = *tid as u32;
        // Not in a carrier's own row: a signal handler's event may come between two others.
        let same = |row: &Row| row.carrier.is_none() && row.tid == tid;
        let row = rows.iter().position(same).unwrap_or_else(|| {
            rows.push(Row { carrier: None, tid });
            raw.push(Vec::new());
            rows.len() - 1
        });
        let (stamp, thread) = (stamps.whole(*first), *thread);
        raw[row].push(Raw {
            stamp,
            thread,
            what,
        });
    }
}
