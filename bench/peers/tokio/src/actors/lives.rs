//! `actor-create` and `actor-idle`: tasks with a channel that come, wait and go.

use super::counter::{Counter, total};
use super::{ended, inside};
use anyhow::Result;
use peer_protocol::actors::{Took, report_created, report_idle};
use peer_protocol::{Params, Workload};
use std::time::Instant;
use tokio::runtime::Runtime;

pub fn create(runtime: Runtime, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let created = inside(&runtime, create_all(count))?;
        let ended = inside(&runtime, create_and_end(count))?;
        report_created(round, count, created, ended);
        Ok(())
    }))
}

async fn create_all(count: u64) -> Result<Took> {
    let mut counters = Vec::with_capacity(count as usize);
    let mut tasks = Vec::with_capacity(count as usize);
    let start = Instant::now();
    for number in 0..count {
        let (counter, task) = Counter::start(number);
        counters.push(counter);
        tasks.push(task);
    }
    let elapsed = start.elapsed();
    let sum = total(&counters).await?;
    drop(counters);
    ended(tasks).await?;
    Ok((elapsed, sum))
}

async fn create_and_end(count: u64) -> Result<Took> {
    let mut ended = 0;
    let start = Instant::now();
    for number in 0..count {
        let (counter, task) = Counter::start(number);
        drop(counter);
        task.await?;
        ended += 1;
    }
    Ok((start.elapsed(), ended))
}

pub fn idle(runtime: Runtime, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let (counters, tasks) = inside(&runtime, async move {
            let (counters, tasks): (Vec<_>, Vec<_>) = (0..count).map(Counter::start).unzip();
            total(&counters).await?;
            Ok((counters, tasks))
        })?;
        round.at("idle", count)?;
        let took = inside(&runtime, async move {
            let start = Instant::now();
            let sum = total(&counters).await?;
            let elapsed = start.elapsed();
            drop(counters);
            ended(tasks).await?;
            Ok((elapsed, sum))
        })?;
        report_idle(round, count, took);
        Ok(())
    }))
}
