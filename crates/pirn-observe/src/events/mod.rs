//! What the threads did lately: reading the [recorder](pirn_rt::recorder)'s rings, and when.
//!
//! A recorder keeps the last events of each carrier, in memory of a fixed size. [`stream`] writes
//! the rings, with names, as bytes for `crates/pirn-events`; [`trace_writer`] records all the time,
//! and writes a file when a rule of its [`Recorder`] says so.

mod stream;
mod trace_writer;

pub(crate) use stream::lost;
#[doc(hidden)]
pub use trace_writer::start_by_environment;

use crate::BadValue;
use pirn_rt::environment;
use pirn_rt::recorder::{LEAST_BYTES, Rings, User, carrier_ring, rings};
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::time::Deadline;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use stream::Stream;

/// Keeps the last events, from [`start`](Self::start) on until the process ends.
///
/// `PIRN_EVENTS` in the environment takes its place: see [`start`](Self::start).
#[derive(Clone, Debug)]
#[must_use = "a recorder begins with `.start()`"]
pub struct Recorder {
    /// The memory of each carrier's ring; 0: nothing is kept.
    bytes: usize,
    /// A file is written when a thread keeps its carrier for longer than this.
    stuck: Option<Duration>,
    /// A file is written when a thread is runnable for longer than this before it runs.
    latency: Option<Duration>,
    /// A file is written when a thread panics.
    panics: bool,
    /// Where files are written; by default the folder for temporary ones.
    folder: Option<PathBuf>,
}

impl Recorder {
    /// Returns a recorder that keeps 1 MiB of events per carrier, and has no rules.
    pub fn new() -> Recorder {
        Recorder {
            bytes: DEFAULT_BYTES,
            stuck: None,
            latency: None,
            panics: false,
            folder: None,
        }
    }

    /// Sets the memory of each carrier in bytes, rounded down to a power of two, at least 16 KiB. A
    /// switch between threads takes 16 bytes, as does a wake; a park or a spawn takes 32. If the
    /// recorder is or has been on, also for `pirn events`, the memory stays what it was.
    pub fn memory(mut self, bytes: usize) -> Recorder {
        self.bytes = bytes.max(LEAST_BYTES);
        self
    }

    /// Writes a file when a thread has kept its carrier for longer than this without a switch.
    pub fn stuck(mut self, limit: Duration) -> Recorder {
        self.stuck = Some(limit);
        self
    }

    /// Writes a file when a thread was woken, or spawned, and ran only after more than this.
    pub fn latency(mut self, limit: Duration) -> Recorder {
        self.latency = Some(limit);
        self
    }

    /// Decides whether a file is written when a virtual thread panics; by default not.
    pub fn panics(mut self, write: bool) -> Recorder {
        self.panics = write;
        self
    }

    /// Sets the folder for files, by default [`std::env::temp_dir`].
    ///
    /// A file is called `pirn-PID-MILLISECONDS.events`, and only its user may read it. At most one
    /// per minute is written, and 16 in all. A line on standard error tells of each, unless
    /// `PIRN_QUIET` is set.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Recorder {
        self.folder = Some(folder.into());
        self
    }

    /// Begins to keep events. Starts the runtime, if it has not started.
    ///
    /// Where `PIRN_EVENTS` is set, it says what is kept, and this does nothing.
    ///
    /// # Errors
    /// `AlreadyExists` if a recorder has been started before; `OutOfMemory`; or the runtime could
    /// not start.
    pub fn start(self) -> io::Result<()> {
        let runtime = runtime::ensure_started()?;
        if trace_writer::is_by_environment() {
            return Ok(());
        }
        trace_writer::start(runtime, self)
    }
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

/// Writes the events that have been kept to `to`, in the form that `pirn events` reads.
///
/// Without a [`Recorder`] or `PIRN_EVENTS`, no events are kept.
///
/// # Errors
/// `to` fails, or there is no memory.
pub fn write(to: &mut impl Write) -> io::Result<()> {
    kept(to, "asked for by the program")
}

/// Records for this long, and writes the events to `to` meanwhile, in the form that
/// `pirn events` reads. Returns when the time is up.
///
/// # Errors
/// The process has not spawned a virtual thread yet; `OutOfMemory`; or `to` fails.
pub fn record(length: Duration, to: &mut impl Write) -> io::Result<()> {
    /// How often the clock's batches are ended.
    const TICK: Duration = Duration::from_millis(1);
    /// The rings are read once per this many ticks: before the fastest writer has filled one.
    const TICKS_PER_DRAIN: u32 = 4;
    let runtime = runtime::get()
        .ok_or_else(|| io::Error::other("the process has not spawned any virtual thread yet"))?;
    let user = switch_on(runtime, DEFAULT_BYTES)?;
    let rings = rings().ok_or_else(no_memory)?;
    let until = Deadline::after(length);
    let mut stream = Stream::begin(rings, to, stream::From::Now, "asked for")?;
    let mut ticks = 0u32;
    while !until.has_passed() {
        std::thread::sleep(TICK); // Parks, on a virtual thread.
        carrier_ring::tick();
        ticks = ticks.wrapping_add(1);
        if ticks.is_multiple_of(TICKS_PER_DRAIN) {
            stream.drain()?;
        }
    }
    drop(user);
    stream.drain()?;
    stream.end()
}

/// Writes what the rings have.
pub(crate) fn kept(out: &mut dyn Write, reason: &str) -> io::Result<()> {
    let rings = match rings() {
        Some(rings) => rings,
        None => no_rings()?,
    };
    let mut stream = Stream::begin(rings, out, stream::From::Oldest, reason)?;
    stream.drain()?;
    stream.end()
}

/// Returns empty rings, for a recorder that has not been switched on. It gets one per carrier when
/// it is.
fn no_rings() -> io::Result<&'static Rings> {
    static NONE: OnceLock<Rings> = OnceLock::new();
    let new = match NONE.get() {
        Some(rings) => return Ok(rings),
        None => Rings::new(0, 0).map_err(|_| no_memory())?,
    };
    Ok(NONE.get_or_init(|| new))
}

/// Switches the recorder on for as long as the result lives.
fn switch_on(runtime: &Runtime, bytes: usize) -> io::Result<User> {
    User::new(runtime.processors.count(), bytes).map_err(|_| no_memory())
}

fn no_memory() -> io::Error {
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        "no memory for the rings of events",
    )
}

/// The variable.
const VARIABLE: &str = "PIRN_EVENTS";
const ACCEPTED: &str = "0, for none, or 16K to 1G, the memory per carrier; then, if wanted, \
                        stuck=100ms, latency=50ms, panic, folder=PATH, separated by commas";

/// The memory of a carrier's ring by default: 65,536 slots.
const DEFAULT_BYTES: usize = 1 << 20;
const MOST_BYTES: usize = 1 << 30;

/// Reads the variable. `size` parses a number of bytes.
///
/// # Errors
/// Its value is not as the table of settings says.
#[doc(hidden)]
pub fn from_environment(size: fn(&str) -> Option<usize>) -> Result<Option<Recorder>, BadValue> {
    let Some(value) = environment::variable(VARIABLE) else {
        return Ok(None);
    };
    match parse(&value, size) {
        Some(recorder) => Ok(Some(recorder)),
        None => Err(BadValue {
            name: VARIABLE,
            value,
            accepted: ACCEPTED,
        }),
    }
}

fn parse(value: &OsStr, size: fn(&str) -> Option<usize>) -> Option<Recorder> {
    let mut parts = value.as_bytes().split(|byte| *byte == b',');
    let bytes = size(str::from_utf8(parts.next()?).ok()?)?;
    let is_accepted = bytes == 0 || (LEAST_BYTES..=MOST_BYTES).contains(&bytes);
    let mut recorder = Recorder {
        bytes: is_accepted.then_some(bytes)?,
        ..Recorder::new()
    };
    for part in parts {
        if let Some(folder) = part.strip_prefix(b"folder=") {
            recorder.folder = Some(PathBuf::from(OsStr::from_bytes(folder)));
            continue;
        }
        match str::from_utf8(part).ok()?.split_once('=') {
            None if part == b"panic" => recorder.panics = true,
            Some(("stuck", time)) => recorder.stuck = Some(duration(time)?),
            Some(("latency", time)) => recorder.latency = Some(duration(time)?),
            _ => return None,
        }
    }
    Some(recorder)
}

/// Parses `250us`, `100ms` or `2s`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|number| *number > 0)?;
    match &text[digits.len()..] {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Recorder> {
        let size = |text: &str| match text.split_at(text.len().saturating_sub(1)) {
            (digits, "K") => Some(digits.parse::<usize>().ok()? << 10),
            (digits, "M") => Some(digits.parse::<usize>().ok()? << 20),
            (digits, "G") => Some(digits.parse::<usize>().ok()? << 30),
            _ => text.parse().ok(),
        };
        parse(OsStr::new(text), size)
    }

    #[test]
    fn a_size_is_enough() {
        let recorder = parsed("1M").unwrap();
        assert_eq!(recorder.bytes, 1 << 20);
        assert_eq!((recorder.stuck, recorder.latency), (None, None));
        assert!(!recorder.panics && recorder.folder.is_none());
        assert_eq!(parsed("0").unwrap().bytes, 0);
    }

    #[test]
    fn rules_and_a_folder_follow() {
        let recorder = parsed("16K,stuck=100ms,latency=250us,panic,folder=/var/tmp/a=b").unwrap();
        assert_eq!(recorder.stuck, Some(Duration::from_millis(100)));
        assert_eq!(recorder.latency, Some(Duration::from_micros(250)));
        assert!(recorder.panics);
        assert_eq!(recorder.folder.unwrap(), PathBuf::from("/var/tmp/a=b"));
    }

    #[test]
    fn anything_else_is_an_error() {
        let bad = [
            "",
            "on",
            "1K",
            "2G",
            "1M,",
            "1M,stuck",
            "1M,stuck=",
            "1M,stuck=0ms",
            "1M,stuck=5",
            "1M,panic=1",
            "1M,other=1",
            "stuck=1ms",
            "-1",
            "1M,latency=1m",
        ];
        for text in bad {
            assert!(parsed(text).is_none(), "{text}");
        }
    }
}
