//! `actor-create` and `actor-idle`: actors that come, wait and go.

use crate::counter::{start, total};
use crate::{Alive, Gone};
use actix::SystemRunner;
use anyhow::Result;
use peer_protocol::actors::{Took, report_created, report_idle};
use peer_protocol::{Params, Workload};
use std::time::Instant;

pub fn create(system: SystemRunner, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let created = system.block_on(create_all(count))?;
        let ended = system.block_on(create_and_end(count));
        report_created(round, count, created, ended);
        Ok(())
    }))
}

async fn create_all(count: u64) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let mut counters = Vec::with_capacity(count as usize);
    let begin = Instant::now();
    for number in 0..count {
        counters.push(start(number, &alive));
    }
    let elapsed = begin.elapsed();
    let sum = total(&counters).await?;
    drop((alive, counters));
    gone.wait().await;
    Ok((elapsed, sum))
}

async fn create_and_end(count: u64) -> Took {
    let mut ended = 0;
    let begin = Instant::now();
    for number in 0..count {
        let (alive, gone) = Gone::when_released();
        let counter = start(number, &alive);
        drop((alive, counter));
        gone.wait().await;
        ended += 1;
    }
    (begin.elapsed(), ended)
}

pub fn idle(system: SystemRunner, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let (alive, gone) = Gone::when_released();
        let counters = system.block_on(used(count, alive))?;
        round.at("idle", count)?;
        let took = system.block_on(async move {
            let begin = Instant::now();
            let sum = total(&counters).await?;
            let elapsed = begin.elapsed();
            drop(counters);
            gone.wait().await;
            anyhow::Ok((elapsed, sum))
        })?;
        report_idle(round, count, took);
        Ok(())
    }))
}

/// Starts as many, each with its number, and asks each for it.
async fn used(count: u64, alive: Alive) -> Result<Vec<actix::Addr<crate::counter::Counter>>> {
    let counters: Vec<_> = (0..count).map(|number| start(number, &alive)).collect();
    total(&counters).await?;
    Ok(counters)
}
