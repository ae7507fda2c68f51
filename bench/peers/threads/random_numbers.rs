//! `random-numbers`: threads that sleep and draw random numbers from the generator of each thread.

use super::start::{join_all, spawn_all};
use crate::thread;
use anyhow::Result;
use peer_protocol::{Params, Workload};
use std::hint::black_box;
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let (tasks, times) = (params.get("tasks")?, params.get("times")?);
    let time = Duration::from_millis(params.get("ms")?);
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let threads = spawn_all(tasks, move |_| draw(times, time))?;
        let drawn = join_all(threads).sum::<Result<u64>>()?;
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", drawn, tasks * times);
        Ok(())
    }))
}

fn draw(times: u64, pause: Duration) -> u64 {
    let (mut drawn, mut sum) = (0, 0.0);
    for _ in 0..times {
        thread::sleep(pause);
        sum += number();
        drawn += 1;
    }
    black_box(sum);
    drawn
}

/// Not inlined, for the generator is thread-local, and a coroutine may wake on another thread than
/// it fell asleep on: the compiler must not keep the generator's address across the sleep.
#[inline(never)]
fn number() -> f64 {
    fastrand::f64()
}
