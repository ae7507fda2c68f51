//! `mutex`: tasks that count under one lock.
//!
//! The lock is the one of std, as tokio's own documentation advises where a lock is held only
//! shortly and across no `await`; tokio's is for what is locked while it waits.

use crate::place::Place;
use crate::tasks::joined_sum;
use anyhow::{Result, ensure};
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinError;

pub fn mutex(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (threads, ops) = (params.get("threads")?, params.get("ops")?);
    ensure!(
        threads > 0 && ops.is_multiple_of(threads),
        "{threads} threads cannot share {ops} operations"
    );
    Ok(Box::new(move |round| {
        let (time, number) = runtime.block_on(count_up(threads, ops / threads))?;
        round.metric("lock", nanos_per(time, ops), "ns/lock", number, ops);
        Ok(())
    }))
}

async fn count_up(threads: u64, times: u64) -> Result<(Duration, u64), JoinError> {
    let (gate, number) = (Place::for_tasks(threads), Arc::new(Mutex::new(0)));
    let spawn = |_| {
        let (gate, number) = (gate.clone(), number.clone());
        tokio::spawn(async move {
            gate.stay().await;
            for _ in 0..times {
                *number.lock().unwrap() += 1;
            }
            times
        })
    };
    let handles = (0..threads).map(spawn).collect();
    gate.all_here().await;
    let start = Instant::now();
    gate.wake_all();
    joined_sum(handles).await?;
    let time = start.elapsed();
    let number = *number.lock().unwrap();
    Ok((time, number))
}
