//! `cpu-bound` and `wait-and-hurry`: coroutines that compute.

use crate::coroutines::joined;
use anyhow::Result;
use may::coroutine::{JoinHandle, sleep};
use may::go;
use peer_protocol::{Params, Workload, compute};
use std::thread;
use std::time::{Duration, Instant};

/// Many computations, and what must come out of them.
#[derive(Clone, Copy)]
pub struct Computations {
    tasks: u64,
    iterations: u64,
    /// The sum of all results.
    pub due: u64,
}

impl Computations {
    pub fn new(params: &Params) -> Result<Computations> {
        let (tasks, iterations) = (params.get("tasks")?, params.get("iterations")?);
        Ok(Computations {
            tasks,
            iterations,
            due: on_platform_threads(tasks, iterations),
        })
    }

    /// A coroutine for each, which does `first` before it computes; the sum of what they returned.
    pub fn in_coroutines(self, first: impl Fn() + Clone + Send + 'static) -> u64 {
        let spawn = |number| -> JoinHandle<u64> {
            let (first, iterations) = (first.clone(), self.iterations);
            go!(move || {
                first();
                compute(iterations, number)
            })
        };
        let handles: Vec<_> = (0..self.tasks).map(spawn).collect();
        handles.into_iter().map(joined).fold(0, u64::wrapping_add)
    }
}

fn on_platform_threads(tasks: u64, iterations: u64) -> u64 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let share = |core| {
            let numbers = (core as u64..tasks).step_by(cores);
            scope.spawn(move || {
                numbers
                    .map(|number| compute(iterations, number))
                    .fold(0, u64::wrapping_add)
            })
        };
        let handles: Vec<_> = (0..cores).map(share).collect();
        let results = handles.into_iter().map(|handle| handle.join().unwrap());
        results.fold(0, u64::wrapping_add)
    })
}

pub fn cpu_bound(params: &Params) -> Result<Workload> {
    let computations = Computations::new(params)?;
    Ok(wall(computations, || {}))
}

/// may runs a coroutine that wakes from its sleep on its timer thread, until it next waits: what
/// is computed here is computed there, by one after the other. That is may as it comes; a
/// `yield_now` after the sleep would send each to a worker.
pub fn wait_and_hurry(params: &Params) -> Result<Workload> {
    let time = Duration::from_millis(params.get("ms")?);
    let computations = Computations::new(params)?;
    Ok(wall(computations, move || sleep(time)))
}

fn wall(computations: Computations, first: impl Fn() + Clone + Send + 'static) -> Workload {
    Box::new(move |round| {
        let start = Instant::now();
        let done = computations.in_coroutines(first.clone());
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", done, computations.due);
        Ok(())
    })
}
