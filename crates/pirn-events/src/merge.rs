//! One order of the events of all rows.
//!
//! Each row is in order, but stamps of different rows may contradict each other: events share
//! stamps, and the clocks of cores differ by some nanoseconds. A thread runs on one carrier at a
//! time. So a mount waits for the event by which the thread leaves its last carrier, if that has a
//! later stamp.

use crate::stamps::Stamps;
use crate::timeline::{Event, What};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// An event of a row that is not known here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    pub(crate) stamp: u64,
    pub(crate) thread: u64,
    pub(crate) what: What,
}

/// How far ahead the event is looked for by which a thread leaves.
const AHEAD: usize = 256;

/// Merges the rows' events.
pub(crate) fn merge(rows: Vec<Vec<Raw>>, stamps: &Stamps) -> Vec<Event> {
    let rows: Vec<Vec<Event>> = (0..)
        .zip(rows)
        .map(|(row, events)| spread(row, &events, stamps))
        .collect();
    let mut merged = Vec::with_capacity(rows.iter().map(Vec::len).sum());
    let mut rows: Vec<Pending> = rows.into_iter().map(Pending::new).collect();
    let heads = rows
        .iter()
        .enumerate()
        .filter_map(|(i, row)| Some(Reverse((row.time()?, i))));
    let mut heap: BinaryHeap<_> = heads.collect();
    // Which row carries a thread, and which thread a row.
    let mut carriers: HashMap<u64, usize> = HashMap::new();
    let mut carried = vec![0; rows.len()];
    while let Some(Reverse((time, index))) = heap.pop() {
        let Some(mut event) = rows[index].head() else {
            continue;
        };
        if rows[index].time() != Some(time) {
            continue; // It has been postponed meanwhile.
        }
        if let What::Switch { next, .. } = event.what
            && next != 0
            && let Some(other) = carriers.get(&next).copied().filter(|other| *other != index)
            && let Some(later) = rows[other].leaves(next)
            && rows[index].postpone(later + 1)
        {
            let time = rows[index].time().unwrap_or(time);
            heap.push(Reverse((time, index)));
            continue;
        }
        event.time = time;
        if let What::Switch { next, .. } = event.what {
            if carriers.get(&carried[index]) == Some(&index) {
                carriers.remove(&carried[index]);
            }
            carried[index] = next;
            if next != 0 {
                carriers.insert(next, index);
            }
        }
        merged.push(event);
        rows[index].advance();
        if let Some(time) = rows[index].time() {
            heap.push(Reverse((time, index)));
        }
    }
    merged
}

/// The events of a row that have yet to be merged.
struct Pending {
    events: Vec<Event>,
    next: usize,
    /// The earliest time for the next one.
    earliest: u64,
    /// How often the next one has been postponed.
    postponed: u32,
}

impl Pending {
    fn new(events: Vec<Event>) -> Pending {
        Pending {
            events,
            next: 0,
            earliest: 0,
            postponed: 0,
        }
    }

    fn head(&self) -> Option<Event> {
        self.events.get(self.next).copied()
    }

    fn time(&self) -> Option<u64> {
        Some(self.head()?.time.max(self.earliest))
    }

    fn advance(&mut self) {
        self.earliest = self.time().unwrap_or(self.earliest);
        self.next += 1;
        self.postponed = 0;
    }

    /// Puts the next event off until `time`. Refuses if that was in vain before.
    fn postpone(&mut self, time: u64) -> bool {
        self.postponed += 1;
        self.earliest = self.earliest.max(time);
        self.postponed <= 4
    }

    /// Returns when the row's thread leaves, if it is this one.
    fn leaves(&self, thread: u64) -> Option<u64> {
        let ahead = self.events[self.next..].iter().take(AHEAD);
        let mut switches = ahead.filter(|event| matches!(event.what, What::Switch { .. }));
        let leaves = switches.next().filter(|event| event.thread == thread)?;
        Some(leaves.time.max(self.earliest))
    }
}

/// Gives the events of a row their times. Events with the same stamp follow each other closely.
fn spread(row: usize, events: &[Raw], stamps: &Stamps) -> Vec<Event> {
    let mut spread = Vec::with_capacity(events.len());
    let mut latest = 0;
    for (begin, same) in runs(events) {
        let next = events.get(begin + same.len()).map(|event| event.stamp);
        let until_next = next.map_or(u64::MAX, |next| next.saturating_sub(same[0].stamp));
        let step = stamps.step(until_next, same.len() as u64);
        for (i, event) in (0..).zip(same) {
            let time = stamps
                .nanos(event.stamp.saturating_add(i * step))
                .max(latest);
            latest = time;
            spread.push(Event {
                time,
                row,
                thread: event.thread,
                what: event.what,
            });
        }
    }
    spread
}

/// Returns the runs of events with the same stamp, each with the index of its first.
fn runs(events: &[Raw]) -> impl Iterator<Item = (usize, &[Raw])> {
    let mut index = 0;
    events.chunk_by(|a, b| a.stamp == b.stamp).map(move |run| {
        let begin = index;
        index += run.len();
        (begin, run)
    })
}

#[cfg(test)]
mod tests;
