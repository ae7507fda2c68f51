//! A burst of trivially short virtual threads: spawn them all, then wait till all are done.

use crate::place::Place;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Result, ensure};
use pirn::thread::{self, Thread};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub struct SpawnBurst;

impl Workload for SpawnBurst {
    fn name(&self) -> &'static str {
        "spawn_burst"
    }

    fn about(&self) -> &'static str {
        "spawn 100,000 short virtual threads, wait till all are done"
    }

    fn warm_bytes(&self) -> usize {
        2 << 30
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let count = size.pick(100_000, 1000);
        let inside = Place::Virtual.run(move || burst(count))?;
        let main = burst(count)?;
        Ok(vec![
            Sample::nanos("from a virtual thread", inside, count, "thread").goals(&[150.0]),
            Sample::nanos("from main", main, count, "thread"),
        ])
    }
}

/// One word that every thread of a burst adds to, as to a wait group: how many are done above
/// this bit, the sum of their numbers below.
static TALLY: AtomicU64 = AtomicU64::new(0);
const ONE_DONE: u64 = 1 << 40;

/// Whom the last one wakes.
static WAITER: Mutex<Option<Thread>> = Mutex::new(None);

fn burst(count: usize) -> Result<Duration> {
    let count = count as u64;
    let expected = count * ONE_DONE + count * (count - 1) / 2;
    TALLY.store(0, Ordering::SeqCst);
    *WAITER.lock().unwrap() = Some(thread::current());

    let start = Instant::now();
    for i in 0..count {
        drop(thread::spawn(move || done(i, count)));
    }
    while TALLY.load(Ordering::SeqCst) / ONE_DONE < count {
        thread::park();
    }
    let elapsed = start.elapsed();

    let tally = TALLY.load(Ordering::SeqCst);
    ensure!(
        tally == expected,
        "the threads added up to {tally:#x}, not {expected:#x}"
    );
    Ok(elapsed)
}

fn done(i: u64, count: u64) {
    let before = TALLY.fetch_add(ONE_DONE + i, Ordering::SeqCst);
    if before / ONE_DONE == count - 1 {
        let waiter = WAITER.lock().unwrap();
        waiter
            .as_ref()
            .expect("set before the first spawn")
            .unpark();
    }
}
