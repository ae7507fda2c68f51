//! `cpu-bound` and `wait-and-hurry`: tasks that compute.
//!
//! They compute on the workers, as threads of any other kind would. For long computations tokio's
//! authors advise `spawn_blocking`, which uses platform threads, or to yield now and then: a
//! worker that computes polls nothing else meanwhile.

use crate::tasks::joined_sum;
use anyhow::Result;
use peer_protocol::{Params, Workload, compute};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinError;
use tokio::time::sleep;

pub fn cpu_bound(runtime: Runtime, params: &Params) -> Result<Workload> {
    let computations = Computations::new(params)?;
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let done = runtime.block_on(computations.run())?;
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", done, computations.due);
        Ok(())
    }))
}

pub fn wait_and_hurry(runtime: Runtime, params: &Params) -> Result<Workload> {
    let computations = Computations::new(params)?;
    let pause = Duration::from_millis(params.get("ms")?);
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let done = runtime.block_on(computations.run_after(pause))?;
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", done, computations.due);
        Ok(())
    }))
}

/// A task for each number, which computes with the number as its seed.
pub struct Computations {
    tasks: u64,
    iterations: u64,
    /// The sum of all results, computed beforehand.
    pub due: u64,
}

impl Computations {
    pub fn new(params: &Params) -> Result<Computations> {
        let (tasks, iterations) = (params.get("tasks")?, params.get("iterations")?);
        let results = (0..tasks).map(|number| compute(iterations, number));
        Ok(Computations {
            tasks,
            iterations,
            due: results.fold(0, u64::wrapping_add),
        })
    }

    /// Spawns the tasks, joins them, and gives the sum of their results.
    pub async fn run(&self) -> Result<u64, JoinError> {
        let iterations = self.iterations;
        let spawn = |number| tokio::spawn(async move { compute(iterations, number) });
        joined_sum((0..self.tasks).map(spawn).collect()).await
    }

    /// As `run`, and each task sleeps first.
    async fn run_after(&self, pause: Duration) -> Result<u64, JoinError> {
        let iterations = self.iterations;
        let spawn = |number| {
            tokio::spawn(async move {
                sleep(pause).await;
                compute(iterations, number)
            })
        };
        joined_sum((0..self.tasks).map(spawn).collect()).await
    }
}
