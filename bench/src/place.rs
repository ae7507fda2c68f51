//! Where a piece of a workload runs: on a virtual thread or on a platform thread.

use crate::stats::least;
use crate::workload::Sample;
use anyhow::{Context, Result};
use std::fmt;
use std::sync::mpsc::{self, Receiver};

/// A kind of thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Virtual,
    Platform,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Place::Virtual => "virtual",
            Place::Platform => "platform",
        })
    }
}

impl Place {
    pub const BOTH: [Place; 2] = [Place::Virtual, Place::Platform];

    /// Starts `f` on a new thread of this kind.
    pub fn start<T: Send + 'static>(self, f: impl FnOnce() -> T + Send + 'static) -> Running<T> {
        let (tx, rx) = mpsc::channel();
        // Nobody waits for the result when `send` fails.
        let body = move || drop(tx.send(f()));
        match self {
            Place::Virtual => drop(pirn::thread::spawn(body)),
            Place::Platform => drop(std::thread::spawn(body)),
        }
        Running(rx)
    }

    /// Runs `f` on a new thread of this kind and waits for it.
    pub fn run<T: Send + 'static>(
        self,
        f: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.start(f).wait()?
    }
}

/// The result of a thread to come.
pub struct Running<T>(Receiver<T>);

impl<T> Running<T> {
    /// Waits for the result. Not by `join`: a platform thread that joins a virtual one may work as
    /// a carrier meanwhile, and the workloads want no more carriers than they were given.
    pub fn wait(self) -> Result<T> {
        self.0.recv().context("the thread panicked")
    }
}

/// Compares the two kinds of thread: `chunk` does `count` pieces of work and gives the nanoseconds
/// for each, a `unit`. Chunks alternate, so that a change in the machine's pace meets both alike,
/// and the quickest counts, being the least disturbed: both kinds run the very same code.
/// Gives one metric for each kind, and the ratio with the goal that virtual threads lose nothing.
pub fn compare(
    prefix: &str,
    unit: &str,
    count: usize,
    chunk: fn(usize) -> Result<f64>,
) -> Result<Vec<Sample>> {
    const CHUNKS: usize = 5;
    let mut nanos = [Vec::new(), Vec::new()];
    for _ in 0..CHUNKS {
        for (place, nanos) in Place::BOTH.into_iter().zip(&mut nanos) {
            nanos.push(place.run(move || chunk(count))?);
        }
    }
    let [on_virtual, on_platform] = nanos.map(|nanos| least(&nanos));
    let unit = format!("ns/{unit}");
    let name = |what: &str| format!("{prefix}{what}");
    Ok(vec![
        Sample::new(name("virtual"), on_virtual, &unit),
        Sample::new(name("platform"), on_platform, &unit),
        Sample::new(name("virtual/platform"), on_virtual / on_platform, "ratio").goals(&[1.1]),
    ])
}
