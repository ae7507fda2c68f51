//! `spawn`: how long it takes to start tasks, and to join them.

use crate::place::Place;
use crate::tasks::sum_below;
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinError;

pub fn spawn(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (burst, inside) = (params.get("burst")?, params.get("inside")?);
    let main = params.get("main")?;
    Ok(Box::new(move |round| {
        let (time, sum) = runtime.block_on(runtime.spawn(spawn_burst(burst)))?;
        let value = nanos_per(time, burst);
        round.metric("burst", value, "ns/thread", sum, sum_below(burst));

        let (time, sum) = runtime.block_on(runtime.spawn(spawn_and_join(inside)))??;
        let value = nanos_per(time, inside);
        round.metric("join inside", value, "ns/thread", sum, sum_below(inside));

        let (time, sum) = runtime.block_on(spawn_and_join(main))?;
        let value = nanos_per(time, main);
        round.metric("join main", value, "ns/thread", sum, sum_below(main));
        Ok(())
    }))
}

async fn spawn_burst(count: u64) -> (Duration, u64) {
    let (sum, place) = (Arc::new(AtomicU64::new(0)), Place::for_tasks(count));
    let start = Instant::now();
    for number in 0..count {
        let (sum, place) = (sum.clone(), place.clone());
        tokio::spawn(async move {
            sum.fetch_add(number, SeqCst);
            place.arrive();
        });
    }
    place.all_here().await;
    (start.elapsed(), sum.load(SeqCst))
}

async fn spawn_and_join(count: u64) -> Result<(Duration, u64), JoinError> {
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..count {
        sum += tokio::spawn(async move { number }).await?;
    }
    Ok((start.elapsed(), sum))
}
