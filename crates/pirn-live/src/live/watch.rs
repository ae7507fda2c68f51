//! Reading the lines that the process writes.

use std::io::{self, BufRead, Read};
use std::thread;
use std::time::{Duration, Instant};

use super::identity::Identity;
use super::sample::Sample;
use super::shared::{Shared, Status};
use crate::attach::{self, Answer, Failure};

/// How long the process may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at what else is wanted.
const LOOK: Duration = Duration::from_millis(100);
/// A process that has hung up may take this long to end.
const ENDING: Duration = Duration::from_millis(500);
/// A sample that is late by this much is missed.
const LATE: Duration = Duration::from_secs(2);
/// So many damaged lines in a row are passed over.
const MOST_DAMAGED: u32 = 2;
/// No process has so many carriers that a line is longer.
const LONGEST: u64 = 8 << 20;

/// Has the process write its lines.
pub(super) fn ask(identity: &Identity, interval: Duration) -> Result<Answer, Failure> {
    let connection = attach::connect(identity.pid)?;
    if !identity.is_there() {
        return Err(Failure::NoProcess(identity.pid)); // Another has its number.
    }
    let millis = interval.as_millis().to_string();
    let answer = connection.ask("watch", &[("interval-ms", &millis)], PATIENCE)?;
    answer
        .set_patience(Some(LOOK))
        .map_err(|error| Failure::Own {
            doing: "wait for lines",
            error,
        })?;
    Ok(answer)
}

/// Why reading has stopped.
enum Stop {
    /// The `Live` has been dropped.
    Unwanted,
    /// Lines are wanted at this interval.
    Interval(Duration),
    /// There are no more lines, and why.
    Over(String),
}

/// Reads lines until the process ends, or the `Live` is dropped.
pub(super) fn run(
    shared: &Shared,
    identity: &Identity,
    mut answer: Answer,
    mut interval: Duration,
) {
    let mut elapsed = None;
    loop {
        match read(shared, identity, &mut answer, interval, &mut elapsed) {
            Stop::Unwanted => return,
            Stop::Over(why) => return shared.show(|state| state.status = Status::Ended(why)),
            Stop::Interval(wanted) => match ask(identity, wanted) {
                Ok(begun) => (answer, interval) = (begun, wanted),
                Err(failure) => {
                    let why = ended(identity, &failure.to_string());
                    return shared.show(|state| state.status = Status::Ended(why));
                }
            },
        }
    }
}

/// Reads the lines of one answer. `elapsed` is when the last line came, on the line of time that
/// begins with the first sample.
fn read(
    shared: &Shared,
    identity: &Identity,
    answer: &mut Answer,
    interval: Duration,
    elapsed: &mut Option<(f64, Instant)>,
) -> Stop {
    let (mut line, mut last) = (Vec::new(), Instant::now());
    // The process counts from the line before, or from the beginning of the answer. Of the first
    // line, and of one after a damaged one, only the time of its coming says how long it has been.
    let mut is_first = true;
    let mut damaged = 0;
    loop {
        {
            let state = shared.lock();
            if state.stop {
                return Stop::Unwanted;
            }
            if state.interval != interval {
                return Stop::Interval(state.interval);
            }
        }
        let room = LONGEST.saturating_sub(line.len() as u64);
        match answer.by_ref().take(room).read_until(b'\n', &mut line) {
            Ok(_) if line.last() == Some(&b'\n') => {
                let parsed = Sample::parse(&String::from_utf8_lossy(&line));
                line.clear();
                last = Instant::now();
                match parsed {
                    Ok(sample) => {
                        shared.add(completed(sample, identity, is_first, elapsed));
                        (is_first, damaged) = (false, 0);
                    }
                    // The next one may be whole; a process that means something else by lines never
                    // writes one.
                    Err(_) if damaged < MOST_DAMAGED => (is_first, damaged) = (true, damaged + 1),
                    Err(error) => return Stop::Over(error),
                }
            }
            Ok(_) if line.len() as u64 >= LONGEST => {
                return Stop::Over("a line is too long".into());
            }
            Ok(_) => return Stop::Over(ended(identity, "it has hung up")),
            Err(error) if is_pause(&error) => tell_of_silence(shared, identity, last, interval),
            Err(error) => return Stop::Over(ended(identity, &error.to_string())),
        }
    }
}

/// Adds what only this side knows.
fn completed(
    mut sample: Sample,
    identity: &Identity,
    is_first: bool,
    elapsed: &mut Option<(f64, Instant)>,
) -> Sample {
    let now = Instant::now();
    sample.elapsed = match *elapsed {
        None => 0.0,
        Some((before, at)) if is_first => before + (now - at).as_secs_f64(),
        Some((before, _)) => before + sample.interval.max(0.0),
    };
    *elapsed = Some((sample.elapsed, now));
    if let Some(stat) = identity.stat() {
        (sample.cpu_seconds, sample.resident) = (stat.cpu_seconds, stat.resident);
    }
    sample
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Says that there have been no lines, if there should have been.
fn tell_of_silence(shared: &Shared, identity: &Identity, last: Instant, interval: Duration) {
    let silent = last.elapsed();
    if silent < interval + LATE {
        return;
    }
    let why = match identity.stat().map(|stat| stat.state) {
        Some('T') => "it is stopped (kill -CONT lets it go on)",
        Some('t') => "a debugger holds it",
        Some('D') => "it waits for a device or a file system",
        _ => "",
    };
    let status = Status::Silent {
        seconds: silent.as_secs(),
        why: why.into(),
    };
    let is_known = shared.lock().status == status;
    if !is_known {
        shared.show(|state| state.status = status);
    }
}

/// Returns why there are no more lines: in most cases the process has ended.
fn ended(identity: &Identity, otherwise: &str) -> String {
    let begin = Instant::now();
    let Identity { pid, name, .. } = identity;
    loop {
        if !identity.is_there() {
            return format!("process {pid} ({name:?}) has ended");
        }
        if begin.elapsed() >= ENDING {
            return format!("process {pid} ({name:?}) does not answer any more: {otherwise}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}
