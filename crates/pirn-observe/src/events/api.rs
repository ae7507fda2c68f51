//! What the threads did lately.
//!
//! A recorder keeps the last events of each carrier, in memory of a fixed size: which thread ran
//! when, for what it waited, who woke it, when scopes were opened and closed. It costs little, and
//! may be on all the time. When something goes wrong, it has what came before.
//!
//! * `pirn events PID` records a running process for some seconds, and writes a trace for
//!   [Perfetto](https://ui.perfetto.dev). The process need not have prepared anything.
//! * A [`Recorder`] keeps the last events all the time, and writes a file when a rule says so;
//!   `pirn events FILE` makes a trace of it. `PIRN_EVENTS` starts one from outside.

use super::settings::{DEFAULT_BYTES, Keep};
use super::{session, trace_writer};
use pirn_rt::recorder::LEAST_BYTES;
use pirn_rt::runtime;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Keeps the last events, from [`start`](Self::start) on until the process ends.
///
/// `PIRN_EVENTS` in the environment takes its place: see [`start`](Self::start).
#[derive(Clone, Debug)]
#[must_use = "a recorder begins with `.start()`"]
pub struct Recorder {
    keep: Keep,
}

impl Recorder {
    /// Returns a recorder that keeps 1 MiB of events per carrier, and has no rules.
    pub fn new() -> Recorder {
        let keep = Keep {
            bytes: DEFAULT_BYTES,
            ..Keep::default()
        };
        Recorder { keep }
    }

    /// Sets the memory of each carrier in bytes, rounded down to a power of two, at least 16 KiB. A
    /// switch between threads takes 16 bytes, as does a wake; a park or a spawn takes 32. If the
    /// recorder is or has been on, also for `pirn events`, the memory stays what it was.
    pub fn memory(mut self, bytes: usize) -> Recorder {
        self.keep.bytes = bytes.max(LEAST_BYTES);
        self
    }

    /// Writes a file when a thread has kept its carrier for longer than this without a switch.
    pub fn stuck(mut self, limit: Duration) -> Recorder {
        self.keep.rules.stuck = Some(limit);
        self
    }

    /// Writes a file when a thread was woken, or spawned, and ran only after more than this.
    pub fn latency(mut self, limit: Duration) -> Recorder {
        self.keep.rules.latency = Some(limit);
        self
    }

    /// Decides whether a file is written when a virtual thread panics; by default not.
    pub fn panics(mut self, write: bool) -> Recorder {
        self.keep.rules.panic = write;
        self
    }

    /// Sets the folder for files, by default [`std::env::temp_dir`].
    ///
    /// A file is called `pirn-PID-MILLISECONDS.events`, and only its user may read it. At most one
    /// per minute is written, and 16 in all. A line on standard error tells of each, unless
    /// `PIRN_QUIET` is set.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Recorder {
        self.keep.folder = Some(folder.into());
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
        trace_writer::start(runtime, self.keep)
    }
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

/// Writes the events that have been kept to `to`, in the form that `pirn events` reads.
///
/// Without a [`Recorder`], or `PIRN_EVENTS`, there are none.
///
/// # Errors
/// Those of `to`, or there is no memory.
pub fn write(to: &mut impl Write) -> io::Result<()> {
    session::kept(to, "asked for by the program")
}

/// Records for this long, and writes the events to `to` meanwhile, in the form that
/// `pirn events` reads. Returns when the time is up.
///
/// # Errors
/// The process has not spawned a virtual thread yet; `OutOfMemory`; or those of `to`.
pub fn record(length: Duration, to: &mut impl Write) -> io::Result<()> {
    session::record(length, to)
}
