//! `actor-create` and `actor-idle`: actors that come, wait and go.

use crate::counter::Counter;
use crate::{Started, inside};
use anyhow::Result;
use peer_protocol::actors::{Took, report_created, report_idle};
use peer_protocol::{Params, Workload};
use ractor::Actor;
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

/// Starts as many, each with its number.
async fn numbered(count: u64) -> Result<Started<Counter>> {
    let mut counters = Started::with_capacity(count);
    for number in 0..count {
        counters.start(Counter, number).await?;
    }
    Ok(counters)
}

async fn create_all(count: u64) -> Result<Took> {
    let start = Instant::now();
    let counters = numbered(count).await?;
    let elapsed = start.elapsed();
    let sum = counters.total().await?;
    counters.end().await?;
    Ok((elapsed, sum))
}

async fn create_and_end(count: u64) -> Result<Took> {
    let mut ended = 0;
    let start = Instant::now();
    for number in 0..count {
        let (counter, end) = Actor::spawn(None, Counter, number).await?;
        counter.drain()?;
        end.await?;
        ended += 1;
    }
    Ok((start.elapsed(), ended))
}

pub fn idle(runtime: Runtime, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let counters = inside(&runtime, async move {
            let counters = numbered(count).await?;
            counters.total().await?;
            Ok(counters)
        })?;
        round.at("idle", count)?;
        let took = inside(&runtime, async move {
            let start = Instant::now();
            let sum = counters.total().await?;
            let elapsed = start.elapsed();
            counters.end().await?;
            Ok((elapsed, sum))
        })?;
        report_idle(round, count, took);
        Ok(())
    }))
}
