//! What tools may ask for: one line, `pirn 1 COMMAND key=value …`. Each command only looks; none
//! changes anything.
//!
//! A command runs on a platform thread of the server: it may allocate and take locks, as `std`
//! does, but its table of descriptors is not the process's, so it cannot ask the kernel about the
//! process's descriptors. It writes its answer to a client that may be slow, so it holds nothing
//! that the program waits for.
//!
//! # Memory
//!
//! A list of a million threads takes some 200 MB from the moment that it is made until its client
//! has read it, up to a minute. There are few clients, so lists of up to [`SMALL`] bytes are made
//! as they are asked for. Larger ones are made one at a time ([`LISTS`]).
//!
//! A tool must not end a process whose memory is short: an allocation that fails would abort it. So
//! a command first asks the allocator for all that its answer may take. The allocator knows neither
//! what the program's other threads take meanwhile, nor what a cgroup refuses.

use super::{Permit, Permits};
use crate::dump;
use crate::events;
use crate::metrics::{self, Line, Memory, Metrics, Sample, collect};
use core::ops::RangeInclusive;
use pirn_rt::{environment, sched::runtime};
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// The version of the protocol.
const VERSION: u32 = 1;
/// Bytes of the longest request, with the end of its line.
pub(super) const LONGEST: usize = 4096;

type Run = fn(&Request<'_>, &mut dyn Write) -> io::Result<()>;

/// A command.
#[derive(Clone, Copy)]
pub(super) struct Command {
    /// What the request calls it.
    pub(super) name: &'static str,
    /// What the answer is: `text`, or the name of a format.
    pub(super) kind: &'static str,
    /// The keys that a request may have.
    pub(super) keys: &'static [&'static str],
    /// How long a client may take to read the whole answer, in seconds, however long that took to
    /// make; `None`: it is a stream, which ends when the client hangs up.
    pub(super) seconds: Option<u64>,
    /// Writes the answer. An error before the first 64 KiB, or before the first flush, reaches the
    /// client as a text.
    pub(super) run: Run,
}

/// All commands.
pub(super) const ALL: [Command; 5] = [
    command("version", "text", &[], Some(10), version),
    command("dump", "dump", &["threads", "max"], Some(60), dump),
    command("events", "events", &["seconds"], None, events),
    command("metrics", "text", &[], Some(10), prometheus),
    command("watch", "lines", &["interval-ms"], None, watch),
];

const fn command(
    name: &'static str,
    kind: &'static str,
    keys: &'static [&'static str],
    seconds: Option<u64>,
    run: Run,
) -> Command {
    Command {
        name,
        kind,
        keys,
        seconds,
        run,
    }
}

/// Returns an error whose text the client gets.
fn refused<T>(text: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Returns the names of all commands.
fn names(separator: &str) -> String {
    ALL.map(|command| command.name).join(separator)
}

/// Returns the command that a request asks for, with the keys that it has.
pub(super) fn find(request: &Request<'_>) -> io::Result<&'static Command> {
    let name = request.command;
    let Some(command) = ALL.iter().find(|command| command.name == name) else {
        return refused(format!(
            "this process does not know the command {name:?} (it knows: {}): it was built with \
             another version of pirn than the tool",
            names(", ")
        ));
    };
    let known = |key: &str| command.keys.contains(&key);
    match request.pairs.iter().find(|(key, _)| !known(key)) {
        None => Ok(command),
        Some((key, _)) => refused(format!("{name} has no {key}")),
    }
}

/// A request.
#[derive(Debug, PartialEq)]
pub(super) struct Request<'a> {
    command: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    /// Parses a line, without its end.
    pub(super) fn parse(line: &'a [u8]) -> io::Result<Request<'a>> {
        let Ok(line) = core::str::from_utf8(line) else {
            return refused("the request is not text".into());
        };
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        if words.next() != Some("pirn") {
            return refused("this is not a request of pirn's tools".into());
        }
        let version = words.next().unwrap_or_default();
        if version.parse() != Ok(VERSION) {
            return refused(format!(
                "this process speaks version {VERSION} of the protocol, the tool version {version:?}"
            ));
        }
        let Some(command) = words.next() else {
            return refused("the request has no command".into());
        };
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some((key, _)) if pairs.iter().any(|(other, _)| *other == key) => {
                    return refused(format!("{key} is there twice"));
                }
                Some(pair) => pairs.push(pair),
                None => return refused(format!("{word:?} is not key=value")),
            }
        }
        Ok(Request { command, pairs })
    }

    /// Returns the value of a key, if it is there.
    fn text(&self, key: &str) -> Option<&'a str> {
        let pair = self.pairs.iter().find(|(other, _)| *other == key);
        pair.map(|pair| pair.1)
    }

    /// Returns the value of a key, if it is there, as a number.
    fn number(&self, key: &str) -> io::Result<Option<u64>> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Some(number)),
            _ => refused(format!("{key} is {text:?}, not a number")),
        }
    }
}

/// `version`: what answers here, line by line.
fn version(_: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    let carriers = runtime::get().map_or(0, |runtime| runtime.settings.parallelism);
    writeln!(out, "pirn {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "protocol {VERSION}")?;
    writeln!(out, "pid {}", std::process::id())?;
    writeln!(out, "parallelism {carriers}")?;
    writeln!(out, "commands {}", names(" "))
}

/// `events`: what happens in the next `seconds`, in the form of the crate `pirn-events`. Without
/// them, or with 0, the events that have been kept.
fn events(request: &Request<'_>, mut out: &mut dyn Write) -> io::Result<()> {
    match request.number("seconds")? {
        None | Some(0) => events::kept(out, "asked for"),
        Some(seconds) => events::record(Duration::from_secs(seconds), &mut out),
    }
}

/// `dump`: all virtual threads, in the form of the crate `pirn-dump`. With `threads=all` each is
/// listed, or the first `max`; otherwise examples of each group.
fn dump(request: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    let most = request.number("max")?.unwrap_or(u64::MAX);
    let threads = match request.text("threads") {
        None | Some("examples") => None,
        Some("all") => Some(usize::try_from(most).unwrap_or(usize::MAX)),
        Some(other) => return refused(format!("threads is {other:?}, not all or examples")),
    };
    let count = |runtime| collect(runtime, Memory::default).threads.iter().sum();
    let listed = threads.map_or(0, |_| most.min(runtime::get().map_or(0, count)));
    let bytes = listed.saturating_mul(size_of::<pirn_dump::Thread>() as u64 + 32);
    let _permit = memory(bytes, PATIENCE)?;
    dump::make(&dump::Options { threads }).write_to(out)
}

/// The lists of more than [`SMALL`] bytes that are made, or being read.
static LISTS: Permits = Permits::new(1);

/// Forgets the list of the parent, in the child of a fork.
pub(super) fn after_fork() {
    LISTS.reset();
}

/// Bytes of a list that needs no permit: some 200,000 threads.
const SMALL: u64 = 64 << 20;
/// How long a list waits for its permit. A client waits for longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a dump needs beside its list of threads: stacks by their addresses, groups, modules, the
/// encoded answer. A million threads in a hundred groups took less.
const BESIDE: u64 = 24 << 20;

/// Checks that the process can allocate a list of this size, and what a dump needs beside it.
/// Returns the permit that a large one needs.
fn memory(bytes: u64, patience: Duration) -> io::Result<Option<Permit>> {
    let permit = (bytes > SMALL).then(|| LISTS.take_within(patience));
    if let Some(None) = permit {
        return refused(
            "busy: another large list of threads is being made or read: try again, or ask for groups \
             only"
                .into(),
        );
    }
    let bytes = bytes.saturating_add(BESIDE);
    match usize::try_from(bytes).map(environment::probe_allocator) {
        Ok(Ok(())) => Ok(permit.flatten()),
        _ => refused(format!(
            "the process has no memory for this dump, which may need {} MiB: raise its limit \
             (`prlimit --as`, `--data`), ask for groups only, or take a core file (gcore) and look \
             at that",
            bytes.div_ceil(1 << 20)
        )),
    }
}

/// `metrics`: the text for Prometheus.
fn prometheus(_: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(metrics::snapshot().to_prometheus().as_bytes())
}

/// `watch interval-ms=N`: a line of JSON per interval, until the client hangs up.
fn watch(request: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    const INTERVALS: RangeInclusive<u64> = 10..=3_600_000;
    let interval = request.number("interval-ms")?.unwrap_or(1000);
    if !INTERVALS.contains(&interval) {
        let (least, most) = INTERVALS.into_inner();
        return refused(format!(
            "interval-ms is {interval}, not from {least} to {most}"
        ));
    }
    let interval = Duration::from_millis(interval);
    let (mut memory, mut before) = (None, None::<Line>);
    let (mut next, mut last) = (Instant::now(), Instant::now());
    loop {
        let metrics = snapshot(&mut memory);
        let now = Instant::now();
        let line = Line::new(metrics, now - last, before.as_ref());
        last = now;
        writeln!(out, "{line}")?;
        out.flush()?;
        before = Some(line);
        // A client that is slow gets fewer lines, not old ones.
        next = (next + interval).max(Instant::now());
        thread::sleep(next - Instant::now());
    }
}

/// Takes a snapshot, with memory that is a few seconds old at most: to ask about many stacks takes
/// milliseconds.
fn snapshot(memory: &mut Option<(Instant, Memory)>) -> Metrics {
    const MEMORY_EVERY: Duration = Duration::from_secs(5);
    let Some(runtime) = runtime::get() else {
        return Metrics::of(Sample::default());
    };
    let memory = || match memory {
        Some((since, memory)) if since.elapsed() < MEMORY_EVERY => *memory,
        _ => memory.insert((Instant::now(), metrics::memory(runtime))).1,
    };
    Metrics::of(collect(runtime, memory))
}

#[cfg(test)]
mod tests;
