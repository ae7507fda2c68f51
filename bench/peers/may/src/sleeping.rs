//! `sleepers`, `database` and `random-numbers`: coroutines that mostly sleep.

use crate::coroutines::{joined, sum_below};
use anyhow::{Result, ensure};
use may::coroutine::{JoinHandle, sleep};
use may::go;
use may::sync::Semphore;
use peer_protocol::{Params, Workload};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Spawns a coroutine for each number below `count`; gives the seconds until all are joined, and
/// the sum of what they returned.
fn sum_of_all(count: u64, spawn: impl FnMut(u64) -> JoinHandle<u64>) -> (f64, u64) {
    let start = Instant::now();
    let handles: Vec<_> = (0..count).map(spawn).collect();
    let sum = handles.into_iter().map(joined).sum();
    (start.elapsed().as_secs_f64(), sum)
}

pub fn sleepers(params: &Params) -> Result<Workload> {
    let threads = params.get("threads")?;
    let time = Duration::from_millis(params.get("ms")?);
    Ok(Box::new(move |round| {
        let (wall, sum) = sum_of_all(threads, |number| {
            go!(move || {
                sleep(time);
                println!("{number}");
                number
            })
        });
        round.metric("wall", wall, "s", sum, sum_below(threads));
        Ok(())
    }))
}

/// What the queries of `database` share.
struct Database {
    permits: Semphore,
    used: AtomicU64,
    breached: AtomicBool,
}

impl Database {
    fn query(&self, limit: u64, time: Duration) -> u64 {
        self.permits.wait();
        if self.used.fetch_add(1, SeqCst) >= limit {
            self.breached.store(true, SeqCst);
        }
        sleep(time);
        self.used.fetch_sub(1, SeqCst);
        self.permits.post();
        1
    }
}

pub fn database(params: &Params) -> Result<Workload> {
    let (tasks, permits) = (params.get("tasks")?, params.get("permits")?);
    let time = Duration::from_millis(params.get("ms")?);
    Ok(Box::new(move |round| {
        let database = Arc::new(Database {
            permits: Semphore::new(permits as usize),
            used: AtomicU64::new(0),
            breached: AtomicBool::new(false),
        });
        let (wall, answers) = sum_of_all(tasks, |_| {
            let database = database.clone();
            go!(move || database.query(permits, time))
        });
        ensure!(
            !database.breached.load(SeqCst),
            "more than {permits} held a permit at once"
        );
        round.metric("wall", wall, "s", answers, tasks);
        Ok(())
    }))
}

pub fn random_numbers(params: &Params) -> Result<Workload> {
    let (tasks, times) = (params.get("tasks")?, params.get("times")?);
    let time = Duration::from_millis(params.get("ms")?);
    Ok(Box::new(move |round| {
        let (wall, drawn) = sum_of_all(tasks, |_| {
            go!(move || {
                let mut sum = 0;
                for _ in 0..times {
                    sleep(time);
                    sum = draw().wrapping_add(sum);
                }
                black_box(sum);
                times
            })
        });
        round.metric("wall", wall, "s", drawn, tasks * times);
        Ok(())
    }))
}

/// Not inlined, for the generator is thread-local, and a coroutine wakes on another thread than it
/// fell asleep on: the compiler must not keep the generator's address across the sleep.
#[inline(never)]
fn draw() -> u64 {
    fastrand::u64(..)
}
