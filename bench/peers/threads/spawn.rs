//! `spawn`: threads that do next to nothing, in a burst and one by one.

use super::start::{inside, join, spawn};
use crate::thread::{self, Thread};
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let (in_burst, in_thread) = (params.get("burst")?, params.get("inside")?);
    let in_main = params.get("main")?;
    Ok(Box::new(move |round| {
        let mut report = |metric: &str, count: u64, (elapsed, done): (Duration, u64)| {
            let due = count * count.saturating_sub(1) / 2;
            round.metric(metric, nanos_per(elapsed, count), "ns/thread", done, due);
        };
        report("burst", in_burst, inside(move || burst(in_burst))?);
        report("join inside", in_thread, inside(move || joins(in_thread))?);
        report("join main", in_main, joins(in_main)?);
        Ok(())
    }))
}

/// The time it takes to spawn this many threads until the last is done, and the sum of their
/// numbers.
fn burst(count: u64) -> Result<(Duration, u64)> {
    let burst = Arc::new(Burst {
        sum: AtomicU64::new(0),
        left: AtomicU64::new(count),
        spawner: thread::current(),
    });
    let start = Instant::now();
    for number in 0..count {
        let burst = Arc::clone(&burst);
        spawn(number, move || burst.done(number))?;
    }
    while burst.left.load(Ordering::SeqCst) > 0 {
        thread::park();
    }
    Ok((start.elapsed(), burst.sum.load(Ordering::SeqCst)))
}

struct Burst {
    sum: AtomicU64,
    left: AtomicU64,
    spawner: Thread,
}

impl Burst {
    fn done(&self, number: u64) {
        self.sum.fetch_add(number, Ordering::SeqCst);
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.spawner.unpark();
        }
    }
}

/// The time it takes to spawn this many threads and join each before the next, and the sum of what
/// they return.
fn joins(count: u64) -> Result<(Duration, u64)> {
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..count {
        sum += join(spawn(number, move || number)?)?;
    }
    Ok((start.elapsed(), sum))
}
