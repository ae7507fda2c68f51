//! Traces for Perfetto: carriers are its processors, virtual threads its threads.
//!
//! The switches are written as if the Linux kernel had recorded them (`sched_switch`,
//! `sched_waking`), so that Perfetto's tables `sched` and `thread_state` and all that is made of
//! them work as for an operating system. What a kernel does not know is written as track events:
//!
//! | on the track of | |
//! |---|---|
//! | a virtual thread | its scopes, and in them its waits, as slices; arrows from its waker |
//! | a platform thread | what happened while it carried no virtual thread |
//! | the process | counters: running and runnable threads |
//!
//! Perfetto's numbers of threads have 32 bits, and 0 is no thread. So virtual threads get numbers
//! of their own, one after the other, above all that Linux gives; their names have the real ones.

use crate::proto::Message;
use crate::timeline::{Event, Timeline, What, Why};
use state::{State, States};
use std::collections::HashMap;
use std::io::{self, Write};
use tracks::Tracks;

mod state;
mod tracks;

/// The number of the first virtual thread; Linux gives 2^22 at most.
const FIRST_TID: u64 = 1 << 24;
/// Events of one processor that are written in one packet.
const BUNDLE: usize = 512;
/// With more waits and wakes than this, they are not written as slices and arrows.
const MOST_DETAILS: usize = 400_000;
/// With more threads than this, only those that ran most often get names.
const MOST_NAMES: usize = 5_000;

/// What became of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Switches.
    pub switches: u64,
    /// Wakes and spawns.
    pub wakes: u64,
    /// Whether there were too many waits for slices and arrows.
    pub without_details: bool,
    /// The number of threads without names, because there were too many.
    pub unnamed: usize,
}

/// Writes a trace.
///
/// # Errors
/// The ones of `out`.
///
/// # Examples
/// ```
/// let mut trace = Vec::new();
/// let timeline = pirn_events::Timeline::default();
/// let summary = pirn_events::perfetto::write(&timeline, &mut trace)?;
/// assert_eq!(summary.switches, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<Summary> {
    let ids = timeline.threads.keys().zip(FIRST_TID..);
    let mut trace = Trace {
        timeline,
        tids: ids.map(|(id, tid)| (*id, tid)).collect(),
        bundles: vec![Vec::new(); timeline.rows.len()],
        current: vec![0; timeline.rows.len()],
        states: States::default(),
        summary: Summary::default(),
        out,
    };
    let details = timeline.events.iter().filter(|event| {
        let park = matches!(
            event.what,
            What::Switch {
                why: Why::Park(_),
                ..
            }
        );
        park || matches!(event.what, What::Wake(_))
    });
    trace.summary.without_details = details.count() > MOST_DETAILS;
    trace.write_head()?;
    let mut tracks = Tracks::new(timeline, !trace.summary.without_details);
    tracks.begin(&mut trace)?;
    for event in &timeline.events {
        trace.add(event)?;
        tracks.add(event, &mut trace)?;
    }
    for cpu in 0..trace.bundles.len() {
        trace.flush(cpu)?;
    }
    Ok(trace.summary)
}

/// A trace that is being written.
struct Trace<'a, W> {
    timeline: &'a Timeline,
    /// The numbers of the virtual threads.
    tids: HashMap<u64, u64>,
    /// Events of each processor that have yet to be written.
    bundles: Vec<Vec<Message>>,
    /// The thread on each processor.
    current: Vec<u64>,
    states: States,
    summary: Summary,
    out: &'a mut W,
}

impl<W: Write> Trace<'_, W> {
    /// Writes a packet.
    fn packet(&mut self, packet: &Message) -> io::Result<()> {
        self.out
            .write_all(Message::new().message(1, packet).as_bytes())
    }

    /// Returns the number of a virtual thread; 0 is no thread.
    fn tid(&self, thread: u64) -> u64 {
        self.tids.get(&thread).copied().unwrap_or(0)
    }

    /// Writes clocks, processes and threads.
    fn write_head(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let real = timeline.begin.saturating_add_signed(timeline.since_1970);
        // CLOCK_BOOTTIME (6) is what ftrace uses; CLOCK_MONOTONIC (3), CLOCK_REALTIME (1).
        let clocks = [(6, timeline.begin), (3, timeline.begin), (1, real)];
        let snapshot = clocks.iter().fold(Message::new(), |snapshot, (id, time)| {
            snapshot.message(1, &Message::new().number(1, *id).number(2, *time))
        });
        self.packet(&Message::new().message(6, &snapshot))?;
        let pid = u64::from(timeline.pid);
        let process = Message::new().number(1, pid).text(3, &timeline.program);
        let mut tree = Message::new().message(1, &process);
        for (row, platform) in timeline.rows.iter().enumerate() {
            if platform.tid == 0 {
                continue; // A carrier that wrote nothing.
            }
            let title = timeline.row_title(row);
            tree = tree.message(2, &thread_of(platform.tid.into(), pid, &title));
        }
        let mut named: Vec<_> = timeline.threads.iter().collect();
        if named.len() > MOST_NAMES {
            self.summary.unnamed = named.len() - MOST_NAMES;
            named.sort_by_key(|(_, thread)| std::cmp::Reverse(thread.mounts));
            named.truncate(MOST_NAMES);
        }
        for (id, _) in named {
            let title = timeline.title(*id);
            tree = tree.message(2, &thread_of(self.tid(*id), pid, &title));
        }
        self.packet(&Message::new().number(8, timeline.begin).message(2, &tree))
    }

    /// Adds what a kernel would have recorded of an event.
    fn add(&mut self, event: &Event) -> io::Result<()> {
        match event.what {
            What::Switch { why, next } => {
                self.summary.switches += 1;
                let before = self.current[event.row];
                self.current[event.row] = next;
                self.states.switch(before, why, next);
                // As in the kernel: runs or could run, sleeps, is dead.
                let state = match why {
                    Why::Mount | Why::Yield | Why::Preempt => 0,
                    Why::Park(_) => 1,
                    Why::Exit => 16,
                };
                let switch = Message::new()
                    .number(2, self.tid(before))
                    .number(3, PRIORITY)
                    .signed(4, state)
                    .number(6, self.tid(next))
                    .number(7, PRIORITY);
                self.kernel(event, self.tid(before), 4, &switch)
            }
            What::Wake(thread) | What::Spawn { thread, .. } => {
                self.summary.wakes += 1;
                self.states.set(thread, State::Runnable);
                let waking = Message::new()
                    .number(2, self.tid(thread))
                    .number(3, PRIORITY)
                    .number(4, 1)
                    .number(5, event.row as u64);
                let waker = match event.thread {
                    0 => self.timeline.rows[event.row].tid.into(),
                    thread => self.tid(thread),
                };
                self.kernel(event, waker, 20, &waking)
            }
            _ => Ok(()),
        }
    }

    /// Adds an event of the kernel: the field of `FtraceEvent` and its content.
    fn kernel(&mut self, event: &Event, tid: u64, field: u32, what: &Message) -> io::Result<()> {
        let message = Message::new()
            .number(1, event.time)
            .number(2, tid)
            .message(field, what);
        self.bundles[event.row].push(message);
        match self.bundles[event.row].len() {
            BUNDLE => self.flush(event.row),
            _ => Ok(()),
        }
    }

    /// Writes the events of a processor.
    fn flush(&mut self, cpu: usize) -> io::Result<()> {
        let events = std::mem::take(&mut self.bundles[cpu]);
        if events.is_empty() {
            return Ok(());
        }
        let bundle = Message::new().number(1, cpu as u64);
        let bundle = events
            .iter()
            .fold(bundle, |bundle, event| bundle.message(2, event));
        self.packet(&Message::new().message(1, &bundle))
    }
}

/// An ordinary priority, by the kernel's numbers.
const PRIORITY: u64 = 120;

/// Returns a thread of a process tree.
fn thread_of(tid: u64, pid: u64, name: &str) -> Message {
    Message::new().number(1, tid).text(2, name).number(3, pid)
}

#[cfg(test)]
mod tests;
