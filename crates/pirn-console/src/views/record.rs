//! What carriers did while events were recorded, as bars.
//!
//! A carrier may switch a million times per second, and no screen has that many points: turns that
//! are shorter than one are put together.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pirn_dump::show;
use pirn_events::{Recording, Timeline, What, Why};
use serde::Serialize;

use super::row::cut;
use crate::Console;
use crate::request::Query;
use pirn_live::attach;

/// The seconds that can be recorded.
const LONGEST: u64 = 30;
/// How long the process may be silent besides.
const PATIENCE: Duration = Duration::from_secs(20);
/// No bar is shorter than this part of the whole.
const POINTS: u64 = 1_500;

/// The answer to `record`. Times are in microseconds since its beginning.
#[derive(Serialize)]
pub struct Record {
    length: f64,
    /// In milliseconds since 1970.
    begin: u64,
    events: usize,
    lost: u64,
    complete: bool,
    carriers: Vec<Carrier>,
    /// The threads that are named in bars: number and name.
    threads: BTreeMap<u64, String>,
}

#[derive(Default, Serialize)]
struct Carrier {
    number: u32,
    tid: u32,
    /// The number of turns that threads had, and how long they took together.
    turns: u64,
    busy: f64,
    bars: Vec<Bar>,
}

/// What a carrier did for a while.
#[derive(Debug, PartialEq, Serialize)]
struct Bar {
    from: f64,
    to: f64,
    /// The thread that ran; 0: none; of several short turns the one with the longest.
    thread: u64,
    /// The number of turns.
    turns: u64,
    /// The part of the time in which threads ran, from 0 to 1.
    busy: f64,
    /// How the last turn ended.
    end: String,
}

/// Records for some `seconds`, and answers with bars. What was recorded is kept for a trace.
pub fn record(console: &Console, query: &Query) -> Result<Record, String> {
    let seconds = query.number("seconds").unwrap_or(2).clamp(1, LONGEST);
    let bytes = ask(console, seconds)?;
    let recording = Recording::read(&mut bytes.as_slice()).map_err(|error| error.to_string())?;
    let record = Record::of(&recording);
    let mut recorded = console
        .recorded
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    *recorded = Some(Arc::new(bytes));
    Ok(record)
}

/// Has the process record.
fn ask(console: &Console, seconds: u64) -> Result<Vec<u8>, String> {
    let identity = console.live.identity();
    if !identity.is_there() {
        return Err("the process has ended".into());
    }
    let said = |error: attach::Failure| error.to_string();
    let connection = attach::connect(identity.pid).map_err(said)?;
    let patience = PATIENCE + Duration::from_secs(seconds);
    let pairs = [("seconds", &*seconds.to_string())];
    let mut answer = connection.ask("events", &pairs, patience).map_err(said)?;
    let mut bytes = Vec::new();
    let read = answer.read_to_end(&mut bytes);
    read.map_err(|error| format!("the recording breaks off: {error}"))?;
    Ok(bytes)
}

impl Record {
    fn of(recording: &Recording) -> Record {
        let timeline = Timeline::new(recording);
        let least = (timeline.end - timeline.begin) / POINTS;
        let mut rows: Vec<Bars> = timeline
            .rows
            .iter()
            .map(|_| Bars::new(&timeline, least))
            .collect();
        for event in &timeline.events {
            if let (What::Switch { why, next }, Some(bars)) = (event.what, rows.get_mut(event.row))
            {
                bars.switch(event.time, event.thread, why, next);
            }
        }
        let carriers: Vec<Carrier> = timeline
            .rows
            .iter()
            .zip(rows)
            .filter_map(|(row, bars)| Some(bars.done(row.carrier?, row.tid, timeline.end)))
            .collect();
        let named = carriers
            .iter()
            .flat_map(|it| &it.bars)
            .map(|bar| bar.thread);
        let named = named.filter_map(|id| Some((id, timeline.threads.get(&id)?.name.as_ref()?)));
        let named = named.map(|(id, name)| (id, cut(&show::plain(name.as_bytes()))));
        Record {
            length: micros(timeline.end - timeline.begin),
            begin: timeline.begin.wrapping_add_signed(timeline.since_1970) / 1_000_000,
            events: timeline.events.len(),
            lost: recording.lost,
            complete: recording.complete,
            threads: named.collect(),
            carriers,
        }
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// The bars of one carrier, while they are made.
struct Bars {
    begin: u64,
    /// Nothing shorter than this, in nanoseconds, becomes a bar of its own.
    least: u64,
    /// Since when the carrier has done what it does now, and the thread that it runs, or 0.
    since: u64,
    mounted: u64,
    /// What is too short for a bar so far: when it began, and its turns.
    short: Option<Short>,
    made: Carrier,
}

#[derive(Default)]
struct Short {
    from: u64,
    turns: u64,
    busy: u64,
    /// The thread of the longest turn, and how long that was.
    longest: (u64, u64),
    end: String,
}

impl Bars {
    fn new(timeline: &Timeline, least: u64) -> Bars {
        Bars {
            begin: timeline.begin,
            least,
            since: timeline.begin,
            mounted: 0,
            short: None,
            made: Carrier::default(),
        }
    }

    /// A thread leaves, and another comes; either may be 0.
    fn switch(&mut self, time: u64, thread: u64, why: Why, next: u64) {
        // What ran when the recording began is known when it leaves.
        self.mounted = if why == Why::Mount {
            0
        } else {
            thread.max(self.mounted)
        };
        self.piece(time, why);
        self.mounted = next;
    }

    /// Ends what the carrier has done since the last switch.
    fn piece(&mut self, time: u64, why: Why) {
        let (from, thread) = (self.since, self.mounted);
        let length = time.saturating_sub(from);
        self.since = time;
        let turns = u64::from(thread != 0);
        let busy = if thread == 0 { 0 } else { length };
        self.made.turns += turns;
        self.made.busy += micros(busy);
        if length >= self.least {
            self.end_short(from);
            if thread != 0 {
                self.bar(
                    from,
                    time,
                    &Short {
                        turns,
                        busy,
                        longest: (thread, busy),
                        end: why.to_string(),
                        from,
                    },
                );
            }
            return;
        }
        let new = || Short {
            from,
            ..Short::default()
        };
        let short = self.short.get_or_insert_with(new);
        short.turns += turns;
        short.busy += busy;
        if busy >= short.longest.1 {
            short.longest = (thread, busy);
        }
        short.end = why.to_string();
        if time - short.from >= self.least {
            self.end_short(time);
        }
    }

    fn end_short(&mut self, time: u64) {
        if let Some(short) = self.short.take()
            && short.turns > 0
        {
            self.bar(short.from, time, &short);
        }
    }

    fn bar(&mut self, from: u64, to: u64, of: &Short) {
        self.made.bars.push(Bar {
            from: micros(from.saturating_sub(self.begin)),
            to: micros(to.saturating_sub(self.begin)),
            thread: of.longest.0,
            turns: of.turns,
            busy: of.busy as f64 / to.saturating_sub(from).max(1) as f64,
            end: of.end.clone(),
        });
    }

    fn done(mut self, number: u32, tid: u32, end: u64) -> Carrier {
        self.piece(end, Why::Yield);
        self.end_short(end);
        if let (Some(last), true) = (self.made.bars.last_mut(), self.mounted != 0) {
            last.end = "goes on".into();
        }
        Carrier {
            number,
            tid,
            ..self.made
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bars of turns: when they began and ended, in nanoseconds, and whose they were.
    fn bars(turns: &[(u64, u64, u64)], end: u64) -> Carrier {
        let timeline = Timeline {
            end,
            ..Timeline::default()
        };
        let mut bars = Bars::new(&timeline, 100);
        for &(from, to, thread) in turns {
            bars.switch(from, 0, Why::Mount, thread);
            bars.switch(to, thread, Why::Yield, 0);
        }
        bars.done(3, 17, end)
    }

    #[test]
    fn long_turns_have_bars_of_their_own() {
        let carrier = bars(&[(1000, 3000, 7), (5000, 6000, 8)], 9000);
        let bar = |bar: &Bar| (bar.from, bar.to, bar.thread, bar.turns, bar.busy);
        let shown: Vec<_> = carrier.bars.iter().map(bar).collect();
        assert_eq!(shown, [(1.0, 3.0, 7, 1, 1.0), (5.0, 6.0, 8, 1, 1.0)]);
        assert_eq!((carrier.number, carrier.turns, carrier.busy), (3, 2, 3.0));
    }

    #[test]
    fn short_turns_are_put_together() {
        let turns: Vec<_> = (0..10_000)
            .map(|turn| (turn * 10, turn * 10 + 5, turn % 3 + 1))
            .collect();
        let carrier = bars(&turns, 100_000);
        assert_eq!(carrier.turns, 10_000);
        assert!(
            (900..=1000).contains(&carrier.bars.len()),
            "{}",
            carrier.bars.len()
        );
        assert_eq!(
            carrier.bars.iter().map(|bar| bar.turns).sum::<u64>(),
            10_000
        );
        for bar in &carrier.bars {
            assert!((0.4..=0.6).contains(&bar.busy), "{bar:?}");
            assert!(bar.to > bar.from);
        }
        assert!(carrier.bars.is_sorted_by(|one, other| one.to <= other.from));
    }

    #[test]
    fn what_runs_at_both_ends_is_shown() {
        let timeline = Timeline {
            end: 1000,
            ..Timeline::default()
        };
        let mut bars = Bars::new(&timeline, 10);
        bars.switch(400, 5, Why::Yield, 6);
        let carrier = bars.done(0, 0, 1000);
        let shown: Vec<_> = carrier
            .bars
            .iter()
            .map(|bar| (bar.thread, &*bar.end))
            .collect();
        assert_eq!(shown, [(5, "yields"), (6, "goes on")]);
    }
}
