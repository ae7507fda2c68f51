//! `cpu-bound`: threads that only compute.

use super::start::{join_all, spawn_all};
use crate::thread::JoinHandle;
use anyhow::Result;
use peer_protocol::{Params, Workload, compute};
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let (tasks, iterations) = (params.get("tasks")?, params.get("iterations")?);
    let due = sum_of_plain_loop(tasks, iterations);
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let threads = spawn_all(tasks, move |number| compute(iterations, number))?;
        let done = sum_of_results(threads)?;
        round.metric("wall", start.elapsed().as_secs_f64(), "s", done, due);
        Ok(())
    }))
}

/// JoinerFor threads; gives the sum of their results.
pub fn sum_of_results(threads: Vec<JoinHandle<u64>>) -> Result<u64> {
    join_all(threads).try_fold(0, |sum: u64, result| Ok(sum.wrapping_add(result?)))
}

/// What that sum must be when each has computed.
pub fn sum_of_plain_loop(tasks: u64, iterations: u64) -> u64 {
    (0..tasks).fold(0, |sum: u64, number| {
        sum.wrapping_add(compute(iterations, number))
    })
}
