//! Keeping the last events all the time, and writing them to a file when a rule says so.
//!
//! The trace writer is a platform thread. It ends the clock's batches every millisecond while there
//! are switches, and looks whether a rule has been met. It writes one file per [`PAUSE_NS`] at
//! most, and [`MOST_FILES`] in the life of a process.

use super::session::{kept, switch_on};
use super::settings::{Keep, Rules};
use super::watch::Watch;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pirn_rt::recorder::{self, User, carrier_ring, rules};
use pirn_rt::runtime::Runtime;
use pirn_rt::vthread::start_helper;
use pirn_rt::{notices, sys};
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
/// Whether the environment has decided that.
static BY_ENVIRONMENT: AtomicBool = AtomicBool::new(false);

/// Does what `PIRN_EVENTS` says, whatever the program will ask for.
///
/// # Errors
/// As for [`start`].
pub fn start_by_environment(runtime: &'static Runtime, keep: Keep) -> io::Result<()> {
    match keep.bytes {
        0 => KEEPS.store(true, Relaxed), // Relaxed: complete in itself.
        _ => start(runtime, keep)?,
    }
    BY_ENVIRONMENT.store(true, Relaxed); // Relaxed: as above.
    Ok(())
}

/// Returns whether the environment has decided what is kept.
pub(super) fn is_by_environment() -> bool {
    BY_ENVIRONMENT.load(Relaxed) // Relaxed: as above.
}

/// Starts keeping events.
///
/// # Errors
/// There is one already, or no memory or no platform thread for it.
pub fn start(runtime: &'static Runtime, keep: Keep) -> io::Result<()> {
    if KEEPS.swap(true, Relaxed) {
        // Relaxed: complete in itself.
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "events are being kept already",
        ));
    }
    let user = switch_on(runtime, keep.bytes)?;
    let wanted = [
        (keep.rules.latency.is_some(), rules::LATENCY),
        (keep.rules.panic, rules::PANIC),
    ];
    let wanted = wanted.iter().filter(|(wanted, _)| *wanted);
    rules::want(
        wanted.fold(0, |all, (_, rule)| all | rule),
        limit(&keep.rules),
    );
    let writer = TraceWriter {
        runtime,
        watch: Watch::new(runtime),
        keep,
        written: 0,
        last: 0,
        _user: user,
    };
    start_helper("pirn-recorder", 256 << 10, || writer.run())
}

/// Returns the latency above which the rule is met, in ticks of the recorder's clock.
fn limit(rules: &Rules) -> u64 {
    let Some(latency) = rules.latency else {
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
    keep: Keep,
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
        let limit = self.keep.rules.stuck.unwrap_or(Duration::MAX);
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        if let Some(stuck) = self.watch.look(limit) {
            let millis = stuck.nanos / 1_000_000;
            return Some(format!(
                "the platform thread {} has carried one thread for {millis} ms",
                stuck.tid
            ));
        }
        let (fired, thread) = rules::take()?;
        Some(if fired & rules::PANIC != 0 {
            format!("thread {thread} has panicked")
        } else {
            let limit = self.keep.rules.latency.unwrap_or_default();
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
            Ok(path) => notices::write(&format!("{reason}: events are in {}", path.display())),
            Err(error) => notices::write(&format!("{reason}: events were not written: {error}")),
        }
    }

    /// Makes the next file, which only this user may read.
    fn create(&self) -> io::Result<(PathBuf, File)> {
        let folder = self.keep.folder.clone().unwrap_or_else(std::env::temp_dir);
        // Processes of several containers may have the same number, and the same folder.
        let now = sys::clock(libc::CLOCK_REALTIME) / 1_000_000;
        let path = folder.join(format!("pirn-{}-{now}.events", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        Ok((path, file))
    }
}
