//! Spawn a virtual thread, join it, and again: from a virtual thread, and from `main`.

use crate::place::Place;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Result, ensure};
use pirn::thread;
use std::time::{Duration, Instant};

pub enum SpawnJoin {
    /// The spawning thread is a virtual one.
    Inside,
    /// It is the main thread, a platform thread.
    Main,
}

impl Workload for SpawnJoin {
    fn name(&self) -> &'static str {
        match self {
            SpawnJoin::Inside => "spawn_join_inside",
            SpawnJoin::Main => "spawn_join_main",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            SpawnJoin::Inside => "spawn a virtual thread and join it, from a virtual thread",
            SpawnJoin::Main => "spawn a virtual thread and join it, from the main thread",
        }
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let count = size.pick(100_000, 300);
        let (elapsed, goal) = match self {
            SpawnJoin::Inside => (Place::Virtual.run(move || spawn_and_join(count))?, 200.0),
            SpawnJoin::Main => (spawn_and_join(count)?, 1000.0),
        };
        Ok(vec![
            Sample::nanos("spawn + join", elapsed, count, "thread").goals(&[goal]),
        ])
    }
}

fn spawn_and_join(count: usize) -> Result<Duration> {
    let start = Instant::now();
    let mut sum = 0;
    for i in 0..count {
        sum += thread::spawn(move || i)
            .join()
            .expect("the thread only returns a number");
    }
    let elapsed = start.elapsed();
    let expected = count * (count - 1) / 2;
    ensure!(
        sum == expected,
        "the threads returned {sum} in all, not {expected}"
    );
    Ok(elapsed)
}
