//! What tools may ask for. Each command only looks; none changes anything.
//!
//! A command runs on a platform thread of the server: it may allocate and take locks, as `std`
//! does, but its table of descriptors is not the process's, so it cannot ask the kernel about the
//! process's descriptors. It writes its answer to a client that may be slow, so it holds nothing
//! that the program waits for.

use super::budget::{self, Budget};
use super::request::{Refusal, Request, VERSION};
use crate::dump;
use crate::events::session;
use crate::metrics;
use pirn_rt::runtime;
use std::io::{self, Write};
use std::time::Duration;

/// A command.
pub struct Command {
    /// What the request calls it.
    pub name: &'static str,
    /// What the answer is: `text`, or the name of a format.
    pub kind: &'static str,
    /// The keys that a request may have.
    pub keys: &'static [&'static str],
    /// How long a client may take to read the whole answer, in seconds, however long that took to
    /// make; `None`: it is a stream, which ends when the client hangs up.
    pub seconds: Option<u64>,
    /// Writes the answer. An error before the first 64 KiB, or before the first flush, reaches the
    /// client as a text.
    pub run: fn(&Request<'_>, &mut dyn Write) -> io::Result<()>,
}

/// All commands.
pub const ALL: &[Command] = &[
    Command {
        name: "version",
        kind: "text",
        keys: &[],
        seconds: Some(10),
        run: version,
    },
    Command {
        name: "dump",
        kind: "dump",
        keys: &["threads", "max"],
        seconds: Some(60),
        run: dump,
    },
    Command {
        name: "events",
        kind: "events",
        keys: &["seconds"],
        seconds: None,
        run: events,
    },
    Command {
        name: "metrics",
        kind: "text",
        keys: &[],
        seconds: Some(10),
        run: super::metrics::answer,
    },
    Command {
        name: "watch",
        kind: "lines",
        keys: &["interval-ms"],
        seconds: None,
        run: super::metrics::watch,
    },
];

/// Returns the command that a request asks for, with the keys that it has.
pub(super) fn find(request: &Request<'_>) -> Result<&'static Command, Refusal> {
    let mut all = ALL.iter();
    match all.find(|command| command.name == request.command) {
        Some(command) => request.check_keys(command.keys).map(|()| command),
        None => {
            let known: Vec<_> = ALL.iter().map(|command| command.name).collect();
            let (name, known) = (request.command, known.join(", "));
            Err(Refusal(format!(
                "this process does not know the command {name:?} (it knows: {known}): it was built \
                 with another version of pirn than the tool"
            )))
        }
    }
}

/// `events`: what happens in the next `seconds`, in the form of the crate `pirn-events`. Without
/// them, or with 0, what has been kept.
fn events(request: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    match request.number("seconds")? {
        None | Some(0) => session::kept(out, "asked for"),
        Some(seconds) => session::record(Duration::from_secs(seconds), out),
    }
}

/// `version`: what answers here, line by line.
fn version(_: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    let known: Vec<_> = ALL.iter().map(|command| command.name).collect();
    let carriers = runtime::get().map_or(0, |runtime| runtime.settings.parallelism);
    writeln!(out, "pirn {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "protocol {VERSION}")?;
    writeln!(out, "pid {}", std::process::id())?;
    writeln!(out, "parallelism {carriers}")?;
    writeln!(out, "commands {}", known.join(" "))
}

/// `dump`: all virtual threads, in the form of the crate `pirn-dump`. With `threads=all` each is
/// listed, or the first `max`; otherwise examples of each group.
fn dump(request: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    dump_within(request, out, budget::PATIENCE)
}

/// The same, waiting up to `patience` for its memory.
pub fn dump_within(
    request: &Request<'_>,
    out: &mut dyn Write,
    patience: Duration,
) -> io::Result<()> {
    let most = request.number("max")?.unwrap_or(u64::MAX);
    let threads = match request.text("threads") {
        None | Some("examples") => None,
        Some("all") => Some(usize::try_from(most).unwrap_or(usize::MAX)),
        Some(other) => {
            let text = format!("threads is {other:?}, not all or examples");
            return Err(Refusal(text).into());
        }
    };
    let listed = threads.map_or(0, |_| most.min(alive()));
    let mut budget = Budget::take(listed.saturating_mul(BYTES_PER_THREAD), patience)?;
    budget.is_free()?;
    let dump = dump::take(&dump::Contents { threads });
    if threads.is_some() {
        budget.resize(bytes(&dump));
    }
    dump.write_to(out)
}

/// How much memory a listed thread takes, unless it has a long name.
const BYTES_PER_THREAD: u64 = size_of::<pirn_dump::Thread>() as u64 + 32;

/// Returns the number of threads.
fn alive() -> u64 {
    let count = |runtime| {
        metrics::collect(runtime, metrics::Depth::Counters)
            .threads
            .all()
    };
    runtime::get().map_or(0, count)
}

/// Returns how much memory the threads of a dump take.
fn bytes(dump: &pirn_dump::Dump) -> u64 {
    let threads = dump.threads.iter();
    let names = threads.map(|thread| thread.name.as_ref().map_or(0, Vec::capacity));
    (dump.threads.len() * size_of::<pirn_dump::Thread>() + names.sum::<usize>()) as u64
}
