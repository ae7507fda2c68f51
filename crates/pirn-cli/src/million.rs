//! `pirn demo million`: a million virtual threads are spawned, park, are woken and joined.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use indicatif::BinaryBytes;
use pirn::thread::{self, JoinHandle, Thread};

use crate::measure::Usage;
use crate::report::{self, count};

/// Runs the demo, printing a line after each step. `Ok(false)` means that some threads could not be
/// spawned, or did not end well.
pub fn run(threads: usize, out: &mut dyn Write) -> io::Result<bool> {
    writeln!(out, "{} virtual threads", count(threads as u64))?;
    let shared = Arc::new(Shared::new(thread::current()));
    let mut steps = Steps::begin(out)?;

    let (handles, refused) = spawn(threads, &shared);
    let spawned = handles.len();
    if let Some(error) = refused {
        let spawned = count(spawned as u64);
        steps.remark(&format!("only {spawned} could be spawned: {error}"))?;
    }
    steps.done("spawn", spawned)?;

    shared.parked.wait_for(spawned);
    steps.done("park", spawned)?;
    let memory = pirn::metrics::snapshot();

    shared.go_on.store(true, Ordering::SeqCst);
    for handle in &handles {
        handle.thread().unpark();
    }
    shared.woken.wait_for(spawned);
    steps.done("wake", spawned)?;

    let panicked = handles
        .into_iter()
        .map(JoinHandle::join)
        .filter(Result::is_err)
        .count();
    steps.done("join", spawned)?;
    write!(
        steps.out,
        "while they were parked, {}",
        report::memory(&memory)
    )?;
    if panicked > 0 {
        steps.remark(&format!("{} panicked", count(panicked as u64)))?;
    }
    Ok(spawned == threads && panicked == 0)
}

/// Spawns up to this many virtual threads; the error is the reason if there are fewer.
fn spawn(threads: usize, shared: &Arc<Shared>) -> (Vec<JoinHandle<()>>, Option<io::Error>) {
    let mut handles = Vec::with_capacity(threads);
    for _ in 0..threads {
        let shared = Arc::clone(shared);
        match thread::Builder::new().spawn(move || shared.park_until_woken()) {
            Ok(handle) => handles.push(handle),
            Err(error) => return (handles, Some(error)),
        }
    }
    (handles, None)
}

/// The data that all the virtual threads share.
struct Shared {
    parked: Rollcall,
    woken: Rollcall,
    go_on: AtomicBool,
}

impl Shared {
    fn new(waiter: Thread) -> Self {
        Shared {
            parked: Rollcall::new(waiter.clone()),
            woken: Rollcall::new(waiter),
            go_on: AtomicBool::new(false),
        }
    }

    fn park_until_woken(&self) {
        self.parked.arrive();
        while !self.go_on.load(Ordering::SeqCst) {
            thread::park();
        }
        self.woken.arrive();
    }
}

/// Counts the threads that have arrived, and wakes the one that waits for all.
struct Rollcall {
    arrived: AtomicUsize,
    /// Unknown until all are spawned; until then, more than can exist.
    expected: AtomicUsize,
    waiter: Thread,
}

impl Rollcall {
    fn new(waiter: Thread) -> Self {
        Rollcall {
            arrived: AtomicUsize::new(0),
            expected: AtomicUsize::new(usize::MAX),
            waiter,
        }
    }

    /// Either this call sees the number that the waiter expects, or the waiter sees this arrival:
    /// each stores its own number before it loads the other's, and both are `SeqCst`.
    fn arrive(&self) {
        let arrived = self.arrived.fetch_add(1, Ordering::SeqCst) + 1;
        if arrived >= self.expected.load(Ordering::SeqCst) {
            self.waiter.unpark();
        }
    }

    fn wait_for(&self, expected: usize) {
        self.expected.store(expected, Ordering::SeqCst);
        while self.arrived.load(Ordering::SeqCst) < expected {
            thread::park();
        }
    }
}

/// The small table of steps, printed as they are done.
struct Steps<'a> {
    out: &'a mut dyn Write,
    before: Usage,
    started: Instant,
}

impl<'a> Steps<'a> {
    fn begin(out: &'a mut dyn Write) -> io::Result<Self> {
        writeln!(
            out,
            "{:<6} {:>12} {:>14} {:>14} {:>12} {:>20}",
            "step", "time", "per thread", "resident", "page tables", "memory per thread"
        )?;
        out.flush()?;
        Ok(Steps {
            out,
            before: Usage::now()?,
            started: Instant::now(),
        })
    }

    /// Prints the line of a step of this many threads, and starts the time of the next step.
    fn done(&mut self, step: &str, threads: usize) -> io::Result<()> {
        let elapsed = self.started.elapsed();
        let usage = Usage::now()?;
        let each = threads.max(1) as f64;
        let grown = usage.memory().saturating_sub(self.before.memory());
        writeln!(
            self.out,
            "{step:<6} {:>12} {:>14} {:>14} {:>12} {:>20}",
            format!("{:.1} ms", elapsed.as_secs_f64() * 1e3),
            format!("{:.0} ns", elapsed.as_secs_f64() * 1e9 / each),
            BinaryBytes(usage.resident).to_string(),
            BinaryBytes(usage.page_tables).to_string(),
            format!("{:.0} bytes", grown as f64 / each)
        )?;
        self.out.flush()?;
        self.started = Instant::now();
        Ok(())
    }

    fn remark(&mut self, remark: &str) -> io::Result<()> {
        writeln!(self.out, "  {remark}")
    }
}

#[cfg(test)]
mod tests;
