//! `hogs`: threads that compute, allocate or work in the C library, and share the cores with a
//! thread that is to run every millisecond.

use super::start::{join, spawn, spawn_all};
use crate::thread;
use anyhow::{Result, bail};
use peer_protocol::{Params, Workload, compute};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Does one piece of work, of some microseconds; gets a number, and returns it.
type Piece = fn(u64) -> u64;

pub fn new(params: &Params) -> Result<Workload> {
    let (tasks, ms) = (params.get("tasks")?, params.get("ms")?);
    let piece: Piece = match params.get("kind")? {
        0 => calculation,
        1 => allocation,
        2 => filling,
        kind => bail!("kind={kind} is not 0, 1 or 2"),
    };
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let hogs = spawn_all(tasks, move |number| work(number, piece, &over))?;
        let ticker = spawn(tasks, move || {
            let late = ticks(Duration::from_millis(ms));
            stop.store(true, Relaxed);
            late
        })?;
        let mut late = join(ticker)?;
        let done: Vec<(u64, u64)> = hogs.into_iter().map(join).collect::<Result<_>>()?;
        // Not `ms`: hogs that wait for a core see only later that it is over, and those that have
        // one work on meanwhile. 100 OS threads did 30 % more work than two cores can.
        let elapsed = start.elapsed().as_secs_f64() * 1e3;

        let sum = done.iter().map(|(number, _)| number).sum();
        let due = tasks * (tasks - 1) / 2;
        late.sort_unstable();
        let rank = (late.len() * 99).div_ceil(100);
        round.metric("p99", late[rank - 1].as_secs_f64() * 1e3, "ms", sum, due);
        let pieces: u64 = done.iter().map(|(_, pieces)| pieces).sum();
        let least = done.iter().map(|&(_, pieces)| pieces).min().unwrap_or(0);
        let mean = pieces as f64 / tasks as f64;
        round.metric("least", least as f64 / mean, "of the mean", sum, due);
        round.metric("work", pieces as f64 / elapsed, "pieces/ms", sum, due);
        Ok(())
    }))
}

/// Works until it is over. Returns the thread's number, and how many pieces it did.
fn work(number: u64, piece: Piece, over: &AtomicBool) -> (u64, u64) {
    let mut pieces = 0;
    let mut number = number;
    while !over.load(Relaxed) {
        number = piece(number);
        pieces += 1;
    }
    (number, pieces)
}

fn calculation(number: u64) -> u64 {
    black_box(compute(1000, number));
    number
}

fn allocation(number: u64) -> u64 {
    (0..50).fold(number, |number, _| *black_box(Box::new(number)))
}

fn filling(number: u64) -> u64 {
    let mut memory = vec![0u8; 64 << 10];
    memory.fill(black_box(number as u8));
    let same = black_box(&memory)[100] == number as u8;
    if same { number } else { u64::MAX }
}

/// Sleeps until each millisecond, for this long. Returns how late it woke for each.
fn ticks(duration: Duration) -> Vec<Duration> {
    let start = Instant::now();
    let count = duration.as_millis() as u32;
    let tick = |number| {
        let due = Duration::from_millis(1) * number;
        if let Some(left) = due.checked_sub(start.elapsed()) {
            thread::sleep(left);
        }
        start.elapsed().saturating_sub(due)
    };
    (1..=count).map(tick).collect()
}
