//! Keeping the last events all the time, and writing them to a file when a rule says so.
//!
//! The trace writer is a platform thread. It ends the clock's batches every millisecond while there
//! are switches, and looks whether a rule has been met. It writes one file per [`PAUSE_NS`] at
//! most, and [`MOST_FILES`] in the life of a process.

use super::{Recorder, kept, switch_on};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pirn_rt::recorder::{self, User, carrier_ring, kinds};
use pirn_rt::sched::runtime::Runtime;
use pirn_rt::vthread::start_helper;
use pirn_rt::{environment, sys};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// The time between two looks, and while nothing has happened for a while.
const LOOK_NS: u64 = 1_000_000;
const IDLE_LOOK_NS: u64 = 20_000_000;
/// Looks without a switch until the looks become rarer.
const PATIENCE: u32 = 100;
/// The least time between two files.
const PAUSE_NS: u64 = 60_000_000_000;
/// The most files that a process writes by itself.
const MOST_FILES: u32 = 16;

/// Whether there is a trace writer.
static KEEPS: AtomicBool = AtomicBool::new(false);
/// Whether `PIRN_EVENTS` in the environment has decided what is kept.
static BY_ENVIRONMENT: AtomicBool = AtomicBool::new(false);

/// Does what `PIRN_EVENTS` says, whatever the program will ask for.
///
/// # Errors
/// As for [`start`].
#[doc(hidden)]
pub fn start_by_environment(runtime: &'static Runtime, recorder: Recorder) -> io::Result<()> {
    match recorder.bytes {
        0 => KEEPS.store(true, Relaxed), // Relaxed: publishes no other data.
        _ => start(runtime, recorder)?,
    }
    BY_ENVIRONMENT.store(true, Relaxed); // Relaxed: publishes no other data.
    Ok(())
}

/// Returns whether the environment has decided what is kept.
pub(super) fn is_by_environment() -> bool {
    BY_ENVIRONMENT.load(Relaxed) // Relaxed: publishes no other data.
}

/// Starts keeping events.
///
/// # Errors
/// There is one already, or no memory or no platform thread for it.
pub(super) fn start(runtime: &'static Runtime, recorder: Recorder) -> io::Result<()> {
    if KEEPS.swap(true, Relaxed) {
        // Relaxed: publishes no other data.
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "events are being kept already",
        ));
    }
    let user = switch_on(runtime, recorder.bytes)?;
    let latency = recorder.latency.map_or(0, |_| recorder::LATENCY_RULE);
    let panics = if recorder.panics {
        recorder::PANIC_RULE
    } else {
        0
    };
    recorder::want_rules(latency | panics, limit(recorder.latency));
    let writer = TraceWriter {
        runtime,
        watch: Watch::new(runtime),
        recorder,
        written: 0,
        last: 0,
        _user: user,
    };
    start_helper("pirn-recorder", 256 << 10, || writer.run())
}

/// Returns the latency above which the rule is met, in ticks of the recorder's clock.
fn limit(latency: Option<Duration>) -> u64 {
    let Some(latency) = latency else {
        return u64::MAX;
    };
    let nanos = latency.as_nanos() as f64;
    if !recorder::is_counter() {
        return nanos as u64;
    }
    let (begin, ticks) = (sys::now(), recorder::clock());
    sys::nap(10_000_000);
    let passed = (recorder::clock() - ticks) as f64;
    (nanos * passed / (sys::now() - begin) as f64) as u64
}

struct TraceWriter {
    runtime: &'static Runtime,
    recorder: Recorder,
    watch: Watch,
    /// The number of files.
    written: u32,
    /// The time of the last one.
    last: u64,
    _user: User,
}

impl TraceWriter {
    fn run(mut self) {
        let (mut switches, mut still) = (0, 0);
        loop {
            sys::nap(if still < PATIENCE {
                LOOK_NS
            } else {
                IDLE_LOOK_NS
            });
            carrier_ring::tick();
            let now = self.runtime.processors.switches();
            still = if now == switches { still + 1 } else { 0 };
            switches = now;
            if let Some(reason) = self.reason()
                && self.may_write()
            {
                self.write(&reason);
            }
        }
    }

    /// Returns the rule that has been met, in words.
    fn reason(&mut self) -> Option<String> {
        let limit = self.recorder.stuck.unwrap_or(Duration::MAX);
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        if let Some((tid, nanos)) = self.watch.look(limit) {
            let millis = nanos / 1_000_000;
            return Some(format!(
                "the platform thread {tid} has carried one thread for {millis} ms"
            ));
        }
        let (fired, thread) = recorder::take_fired()?;
        Some(if fired & recorder::PANIC_RULE != 0 {
            format!("thread {thread} has panicked")
        } else {
            let limit = self.recorder.latency.unwrap_or_default();
            format!("thread {thread} was runnable for more than {limit:?} before it ran")
        })
    }

    fn may_write(&self) -> bool {
        self.written < MOST_FILES && (self.written == 0 || sys::now() - self.last >= PAUSE_NS)
    }

    fn write(&mut self, reason: &str) {
        self.written += 1;
        self.last = sys::now();
        match self.create().and_then(|(path, file)| {
            let mut file = BufWriter::new(file);
            kept(&mut file, reason)?;
            file.flush()?;
            Ok(path)
        }) {
            Ok(path) => environment::notice(&format!("{reason}: events are in {}", path.display())),
            Err(error) => {
                environment::notice(&format!("{reason}: events were not written: {error}"))
            }
        }
    }

    /// Makes the next file, which only this user may read.
    fn create(&self) -> io::Result<(PathBuf, File)> {
        let folder = self
            .recorder
            .folder
            .clone()
            .unwrap_or_else(std::env::temp_dir);
        // Processes of several containers may have the same number, and the same folder.
        let now = sys::clock(libc::CLOCK_REALTIME) / 1_000_000;
        let path = folder.join(format!("pirn-{}-{now}.events", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        Ok((path, file))
    }
}

/// A run that is longer than this is an event.
const LONG_NS: u64 = 10_000_000;

/// The last look at the processors: finds threads that keep their carriers, on processors that the
/// monitor has not seen switch.
struct Watch {
    runtime: &'static Runtime,
    seen: Vec<Seen>,
}

#[derive(Clone, Default)]
struct Seen {
    /// When the monitor first saw the thread on its processor.
    first_seen: u64,
    noted: bool,
    reported: bool,
}

impl Watch {
    fn new(runtime: &'static Runtime) -> Watch {
        Watch {
            runtime,
            seen: vec![Seen::default(); runtime.processors.count()],
        }
    }

    /// Looks at all processors. If a thread has kept one for longer than the limit, returns the
    /// holder and the time; once per such run.
    fn look(&mut self, limit_ns: u64) -> Option<(u32, u64)> {
        let now = sys::now();
        let mut found = None;
        for processor in self.runtime.processors.used() {
            let seen = &mut self.seen[processor.index];
            let first_seen = processor.first_seen();
            if first_seen != seen.first_seen {
                *seen = Seen {
                    first_seen,
                    ..Seen::default()
                };
            }
            if first_seen == 0 {
                continue;
            }
            let tid = processor.holder.load(Relaxed); // Relaxed: statistics only.
            let nanos = now.saturating_sub(first_seen);
            if nanos > LONG_NS && !seen.noted {
                seen.noted = true;
                recorder::outside(0, kinds::STUCK, nanos, u64::from(tid));
            }
            if nanos > limit_ns && !seen.reported {
                seen.reported = true;
                found = Some((tid, nanos));
            }
        }
        found
    }
}
