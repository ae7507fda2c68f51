//! Track events: slices of scopes and waits, arrows from wakers, counters.

use super::Trace;
use crate::proto::Message;
use crate::timeline::{Event, Timeline, What, Why};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

// Types of track events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// The tracks: of the process, then of counters; the tracks of rows and virtual threads follow.
const PROCESS: u64 = 1;
const RUNNING: u64 = 2;
const RUNNABLE: u64 = 3;
const FIRST_ROW: u64 = 16;

/// The least time between two values of a counter, in nanoseconds, and the most values.
const COUNTER_NS: u64 = 20_000;
const MOST_VALUES: u64 = 5_000;
/// The sequence that all packets belong to.
const SEQUENCE: u64 = 1;

/// Writes the track events of a timeline.
pub(super) struct Tracks<'a> {
    timeline: &'a Timeline,
    /// Whether waits and wakes are written.
    details: bool,
    /// The names that have been written, with their numbers.
    names: HashMap<String, u64>,
    described: HashSet<u64>,
    /// The threads of which a wait has been begun.
    waiting: HashSet<u64>,
    /// The arrow to a thread that has been woken.
    arrows: HashMap<u64, u64>,
    arrow: u64,
    /// When the counters are due.
    counters_due: u64,
}

/// One track event, apart from its time.
struct Mark<'a> {
    track: u64,
    kind: u64,
    name: &'a str,
    /// What is to be known about it.
    note: Option<(&'a str, String)>,
    /// The arrow that begins, and the one that ends here.
    from: Option<u64>,
    to: Option<u64>,
}

impl<'a> Mark<'a> {
    fn new(track: u64, kind: u64, name: &'a str) -> Mark<'a> {
        Mark {
            track,
            kind,
            name,
            note: None,
            from: None,
            to: None,
        }
    }

    fn note(mut self, key: &'a str, text: String) -> Mark<'a> {
        self.note = Some((key, text));
        self
    }
}

impl<'a> Tracks<'a> {
    pub(super) fn new(timeline: &'a Timeline, details: bool) -> Tracks<'a> {
        Tracks {
            timeline,
            details,
            names: HashMap::new(),
            described: HashSet::new(),
            waiting: HashSet::new(),
            arrows: HashMap::new(),
            arrow: 0,
            counters_due: 0,
        }
    }

    /// Writes the tracks of the process, and begins the scopes that were open before the first
    /// event.
    pub(super) fn begin<W: Write>(&mut self, trace: &mut Trace<'_, W>) -> io::Result<()> {
        let timeline = self.timeline;
        let process = Message::new()
            .number(1, timeline.pid.into())
            .text(6, program_name(&timeline.program));
        let track = Message::new().number(1, PROCESS).message(3, &process);
        // The first packet begins the state of the sequence.
        self.descriptor(&track, 1, trace)?;
        for (uuid, name) in [(RUNNING, "running threads"), (RUNNABLE, "runnable threads")] {
            let track = Message::new()
                .number(1, uuid)
                .number(5, PROCESS)
                .text(2, name);
            self.descriptor(&track.message(8, &Message::new()), 2, trace)?;
        }
        for id in open_before(timeline) {
            let owner = timeline.scopes[&id].owner;
            if owner != 0 && timeline.threads.contains_key(&owner) {
                let track = self.thread_track(owner, trace)?;
                let title = self.scope_title(id);
                self.mark(timeline.begin, &Mark::new(track, BEGIN, &title), trace)?;
            }
        }
        Ok(())
    }

    /// Writes the track events of an event.
    pub(super) fn add<W: Write>(
        &mut self,
        event: &Event,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<()> {
        self.count(event.time, trace)?;
        match event.what {
            What::Switch { why, next } => self.switch(event, why, next, trace),
            What::Wake(thread) if self.details => self.wake(event, "wakes", thread, trace),
            What::Spawn { thread, place } if self.details => {
                self.wake(event, "spawns", thread, trace)?;
                match self.timeline.places.get(&place) {
                    Some(place) => {
                        let text = format!("{}:{}:{}", place.file, place.line, place.column);
                        self.instant(event, "spawned at", Some(("place", text)), trace)
                    }
                    None => Ok(()),
                }
            }
            What::Wake(_) | What::Spawn { .. } => Ok(()),
            What::ScopeOpened(id) => {
                let track = self.track(event, trace)?;
                let title = self.scope_title(id);
                let mark = Mark::new(track, BEGIN, &title).note("scope", id.to_string());
                self.mark(event.time, &mark, trace)
            }
            What::ScopeClosed(_) => {
                let track = self.track(event, trace)?;
                self.mark(event.time, &Mark::new(track, END, ""), trace)
            }
            What::ScopeCancelled(id) => {
                let note = ("scope", id.to_string());
                self.instant(event, "cancels a scope", Some(note), trace)
            }
            What::Sleep => {
                let track = self.track(event, trace)?;
                self.mark(event.time, &Mark::new(track, BEGIN, "sleeps"), trace)?;
                self.waiting.insert(track);
                Ok(())
            }
            What::Awake => {
                let track = self.track(event, trace)?;
                match self.waiting.remove(&track) {
                    true => self.mark(event.time, &Mark::new(track, END, ""), trace),
                    false => Ok(()),
                }
            }
            _ => self.moment(event, trace),
        }
    }

    /// Writes an event that needs no others.
    fn moment<W: Write>(&mut self, event: &Event, trace: &mut Trace<'_, W>) -> io::Result<()> {
        let timeline = self.timeline;
        let (name, note) = match event.what {
            What::Interrupt(thread) => ("interrupts", Some(("thread", timeline.title(thread)))),
            What::Offload => ("offloads a call", None),
            What::Offloaded => ("has the call's result", None),
            What::Panic => ("panics", None),
            What::Stuck { tid, nanos } => {
                let text = format!("{tid}, {} ms", nanos / 1_000_000);
                ("a carrier is stuck", Some(("platform thread", text)))
            }
            What::Spare(number) => {
                let note = ("carrier", number.to_string());
                ("adds a spare carrier", Some(note))
            }
            _ => return Ok(()),
        };
        self.instant(event, name, note, trace)
    }

    fn switch<W: Write>(
        &mut self,
        event: &Event,
        why: Why,
        next: u64,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<()> {
        if !self.details {
            return Ok(());
        }
        if let Why::Park(awaited) = why
            && event.thread != 0
        {
            let track = self.thread_track(event.thread, trace)?;
            let name = format!("waits: {}", awaited.kind());
            let mark = Mark::new(track, BEGIN, &name).note("for", awaited.to_string());
            self.mark(event.time, &mark, trace)?;
            self.waiting.insert(track);
        }
        if next == 0 {
            return Ok(());
        }
        let (arrow, track) = (self.arrows.remove(&next), self.thread_track(next, trace)?);
        if self.waiting.remove(&track) {
            self.mark(event.time, &Mark::new(track, END, ""), trace)?;
        }
        if arrow.is_some() {
            let mut mark = Mark::new(track, INSTANT, "runs");
            mark.to = arrow;
            self.mark(event.time, &mark, trace)?;
        }
        Ok(())
    }

    /// Writes the beginning of an arrow to a thread.
    fn wake<W: Write>(
        &mut self,
        event: &Event,
        verb: &str,
        thread: u64,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<()> {
        let track = self.track(event, trace)?;
        self.arrow += 1;
        self.arrows.insert(thread, self.arrow);
        let mut mark = Mark::new(track, INSTANT, verb);
        mark.note = Some(("thread", self.timeline.title(thread)));
        mark.from = Some(self.arrow);
        self.mark(event.time, &mark, trace)
    }

    fn instant<W: Write>(
        &mut self,
        event: &Event,
        name: &str,
        note: Option<(&str, String)>,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<()> {
        let track = self.track(event, trace)?;
        let mut mark = Mark::new(track, INSTANT, name);
        mark.note = note;
        self.mark(event.time, &mark, trace)
    }

    /// Writes the counters, if they are due.
    fn count<W: Write>(&mut self, time: u64, trace: &mut Trace<'_, W>) -> io::Result<()> {
        if time < self.counters_due {
            return Ok(());
        }
        let length = self.timeline.end - self.timeline.begin;
        self.counters_due = time + COUNTER_NS.max(length / MOST_VALUES);
        let values = [
            (RUNNING, trace.states.running),
            (RUNNABLE, trace.states.runnable),
        ];
        values.iter().try_for_each(|(track, value)| {
            let event = Message::new().number(9, COUNTER).number(11, *track);
            self.event(time, &event.number(30, *value), None, trace)
        })
    }

    /// Returns the track of an event: the mounted thread's, or the row's.
    fn track<W: Write>(&mut self, event: &Event, trace: &mut Trace<'_, W>) -> io::Result<u64> {
        if event.thread != 0 {
            return self.thread_track(event.thread, trace);
        }
        let uuid = FIRST_ROW + event.row as u64;
        let tid = self.timeline.rows[event.row].tid;
        let title = self.timeline.row_title(event.row);
        self.describe(uuid, tid.into(), &title, trace)
    }

    fn thread_track<W: Write>(&mut self, thread: u64, trace: &mut Trace<'_, W>) -> io::Result<u64> {
        let tid = trace.tid(thread);
        let title = self.timeline.title(thread);
        self.describe(tid, tid, &title, trace)
    }

    /// Writes the descriptor of a thread's track, unless that has been done.
    fn describe<W: Write>(
        &mut self,
        uuid: u64,
        tid: u64,
        title: &str,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<u64> {
        if self.described.insert(uuid) {
            let thread = Message::new()
                .number(1, self.timeline.pid.into())
                .number(2, tid)
                .text(5, title);
            let track = Message::new()
                .number(1, uuid)
                .number(5, PROCESS)
                .message(4, &thread);
            self.descriptor(&track, 2, trace)?;
        }
        Ok(uuid)
    }

    fn descriptor<W: Write>(
        &self,
        track: &Message,
        flags: u64,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<()> {
        let packet = Message::new()
            .number(8, self.timeline.begin)
            .number(10, SEQUENCE)
            .number(13, flags)
            .message(60, track);
        trace.packet(&packet)
    }

    /// Writes a slice's beginning or end, or an instant.
    fn mark<W: Write>(
        &mut self,
        time: u64,
        mark: &Mark<'_>,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<()> {
        let mut event = Message::new().number(9, mark.kind).number(11, mark.track);
        let mut interned = None;
        if mark.kind != END {
            let known = self.names.len() as u64 + 1;
            let id = *self.names.entry(mark.name.to_owned()).or_insert_with(|| {
                let name = Message::new().number(1, known).text(2, mark.name);
                interned = Some(Message::new().message(2, &name));
                known
            });
            event = event.number(10, id);
        }
        if let Some((key, text)) = &mark.note {
            event = event.message(4, &Message::new().text(10, key).text(6, text));
        }
        if let Some(arrow) = mark.from {
            event = event.fixed(47, arrow);
        }
        if let Some(arrow) = mark.to {
            event = event.fixed(48, arrow);
        }
        self.event(time, &event, interned.as_ref(), trace)
    }

    fn event<W: Write>(
        &self,
        time: u64,
        event: &Message,
        interned: Option<&Message>,
        trace: &mut Trace<'_, W>,
    ) -> io::Result<()> {
        let mut packet = Message::new()
            .number(8, time)
            .number(10, SEQUENCE)
            .number(13, 2)
            .message(11, event);
        if let Some(interned) = interned {
            packet = packet.message(12, interned);
        }
        trace.packet(&packet)
    }

    fn scope_title(&self, id: u64) -> String {
        match self
            .timeline
            .scopes
            .get(&id)
            .map(|scope| scope.name.as_str())
        {
            None | Some("") => "scope".into(),
            Some(name) => format!("scope {name}"),
        }
    }
}

/// Returns the scopes that were open before the first event, the outermost first.
fn open_before(timeline: &Timeline) -> Vec<u64> {
    let mut opened = HashSet::new();
    let mut closed = Vec::new();
    for event in &timeline.events {
        match event.what {
            What::ScopeOpened(id) => {
                opened.insert(id);
            }
            What::ScopeClosed(id) if !opened.remove(&id) => closed.push(id),
            What::ScopeClosed(_) => {}
            _ => {}
        }
    }
    let ended: HashSet<_> = closed.iter().copied().collect();
    let in_events: HashSet<_> = timeline
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::ScopeOpened(id) => Some(id),
            _ => None,
        })
        .collect();
    let scopes = timeline.scopes.keys().copied();
    let mut all: Vec<_> = scopes
        .filter(|id| !ended.contains(id) && !in_events.contains(id))
        .collect();
    // What is closed first has been opened last.
    all.extend(closed.iter().rev());
    all
}

fn program_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
