//! `pingpong`: two threads pass a number to and fro, which grows by one on each way.

use super::start::{inside, join, spawn};
use crate::sync::mpsc;
use crate::thread::{self, Thread};
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let trips = params.get("trips")?;
    Ok(Box::new(move |round| {
        let mut report = |metric: &str, (elapsed, number): (Duration, u64)| {
            let nanos = nanos_per(elapsed, trips);
            round.metric(metric, nanos, "ns/round trip", number, 2 * trips);
        };
        report("channel", inside(move || over_channels(trips))?);
        report("park", inside(move || with_park(trips))?);
        Ok(())
    }))
}

/// The time taken, and the number at the end.
fn over_channels(trips: u64) -> Result<(Duration, u64)> {
    let (there, arriving) = mpsc::channel();
    let (replies, back) = mpsc::channel();
    let other = spawn(1, move || -> Result<()> {
        for number in arriving {
            replies.send(number + 1)?;
        }
        Ok(())
    })?;
    let mut number = 0;
    let start = Instant::now();
    for _ in 0..trips {
        there.send(number + 1)?;
        number = back.recv()?;
    }
    let elapsed = start.elapsed();
    drop(there);
    join(other)??;
    Ok((elapsed, number))
}

/// The same, where the number is a shared word that says whose turn it is: the first thread's while
/// it is even.
fn with_park(trips: u64) -> Result<(Duration, u64)> {
    let number = Arc::new(AtomicU64::new(0));
    let (first, shared) = (thread::current(), Arc::clone(&number));
    let second = spawn(1, move || {
        for trip in 0..trips {
            wait_for(&shared, 2 * trip + 1);
            pass(&shared, &first);
        }
        crate::end_after_park();
    })?;
    let start = Instant::now();
    for trip in 1..=trips {
        pass(&number, second.thread());
        wait_for(&number, 2 * trip);
    }
    let elapsed = start.elapsed();
    join(second)?;
    Ok((elapsed, number.load(Ordering::SeqCst)))
}

fn wait_for(number: &AtomicU64, turn: u64) {
    while number.load(Ordering::SeqCst) != turn {
        thread::park();
    }
}

fn pass(number: &AtomicU64, other: &Thread) {
    number.fetch_add(1, Ordering::SeqCst);
    other.unpark();
}
