//! `wait-and-hurry`: threads that all wait for something, then all compute.

use super::cpu_bound::{sum_of_plain_loop, sum_of_results};
use super::start::spawn_all;
use crate::thread;
use anyhow::Result;
use peer_protocol::{Params, Workload, compute};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let (tasks, iterations) = (params.get("tasks")?, params.get("iterations")?);
    let time = Duration::from_millis(params.get("ms")?);
    let due = sum_of_plain_loop(tasks, iterations);
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let threads = spawn_all(tasks, move |number| {
            thread::sleep(time);
            compute(iterations, number)
        })?;
        let done = sum_of_results(threads)?;
        round.metric("wall", start.elapsed().as_secs_f64(), "s", done, due);
        Ok(())
    }))
}
