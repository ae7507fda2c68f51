//! `sleepers`, `database` and `random-numbers`: tasks that mostly sleep.

use crate::tasks::{joined_sum, sum_below};
use anyhow::{Result, ensure};
use peer_protocol::{Params, Workload};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio::time::sleep;

fn pause(params: &Params) -> Result<Duration> {
    Ok(Duration::from_millis(params.get("ms")?))
}

/// Spawns a task for each of the numbers 0 … count−1, and joins them. Gives the time and the sum of
/// what they returned.
async fn spawn_and_join<F>(count: u64, task: impl Fn(u64) -> F) -> Result<(f64, u64), JoinError>
where
    F: Future<Output = u64> + Send + 'static,
{
    let start = Instant::now();
    let handles = (0..count).map(|number| tokio::spawn(task(number)));
    let sum = joined_sum(handles.collect()).await?;
    Ok((start.elapsed().as_secs_f64(), sum))
}

pub fn sleepers(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (threads, pause) = (params.get("threads")?, pause(params)?);
    Ok(Box::new(move |round| {
        let (wall, sum) = runtime.block_on(spawn_and_join(threads, |number| async move {
            sleep(pause).await;
            println!("{number}");
            number
        }))?;
        round.metric("wall", wall, "s", sum, sum_below(threads));
        Ok(())
    }))
}

pub fn database(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (tasks, permits) = (params.get("tasks")?, params.get("permits")?);
    let pause = pause(params)?;
    Ok(Box::new(move |round| {
        let database = Arc::new(Database::new(permits));
        let (wall, sum) = runtime.block_on(spawn_and_join(tasks, |_| {
            let database = database.clone();
            async move { database.query(pause).await }
        }))?;
        let breached = database.breached.load(SeqCst);
        ensure!(!breached, "more than {permits} tasks held a permit");
        round.metric("wall", wall, "s", sum, tasks);
        Ok(())
    }))
}

struct Database {
    connections: Semaphore,
    permits: u64,
    held: AtomicU64,
    breached: AtomicBool,
}

impl Database {
    fn new(permits: u64) -> Database {
        Database {
            connections: Semaphore::new(permits as usize),
            permits,
            held: AtomicU64::new(0),
            breached: AtomicBool::new(false),
        }
    }

    async fn query(&self, pause: Duration) -> u64 {
        let permit = self.connections.acquire().await;
        let _permit = permit.expect("the semaphore is never closed");
        if self.held.fetch_add(1, SeqCst) >= self.permits {
            self.breached.store(true, SeqCst);
        }
        sleep(pause).await;
        self.held.fetch_sub(1, SeqCst);
        1
    }
}

pub fn random_numbers(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (tasks, times) = (params.get("tasks")?, params.get("times")?);
    let pause = pause(params)?;
    Ok(Box::new(move |round| {
        let (wall, sum) = runtime.block_on(spawn_and_join(tasks, |_| async move {
            let mut sum = 0u64;
            for _ in 0..times {
                sleep(pause).await;
                sum = sum.wrapping_add(fastrand::u64(..));
            }
            black_box(sum);
            times
        }))?;
        round.metric("wall", wall, "s", sum, tasks * times);
        Ok(())
    }))
}
