//! `actor-create` and `actor-idle`: actors that come, wait and go.

use crate::counter::{Counter, total};
use crate::{end, inside};
use anyhow::Result;
use kameo::actor::Spawn;
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
    let start = Instant::now();
    for number in 0..count {
        counters.push(Counter::spawn(Counter(number)));
    }
    let elapsed = start.elapsed();
    let sum = total(&counters).await?;
    end(&counters).await?;
    Ok((elapsed, sum))
}

async fn create_and_end(count: u64) -> Result<Took> {
    let mut ended = 0;
    let start = Instant::now();
    for number in 0..count {
        let counter = Counter::spawn(Counter(number));
        counter.stop_gracefully().await?;
        counter.wait_for_shutdown().await;
        ended += 1;
    }
    Ok((start.elapsed(), ended))
}

pub fn idle(runtime: Runtime, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let counters = inside(&runtime, async move {
            let counters: Vec<_> = (0..count).map(|n| Counter::spawn(Counter(n))).collect();
            total(&counters).await?;
            Ok(counters)
        })?;
        round.at("idle", count)?;
        let took = inside(&runtime, async move {
            let start = Instant::now();
            let sum = total(&counters).await?;
            let elapsed = start.elapsed();
            end(&counters).await?;
            Ok((elapsed, sum))
        })?;
        report_idle(round, count, took);
        Ok(())
    }))
}
