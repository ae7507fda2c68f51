//! `actor-messages`: numbers to tasks that add them up.

use super::counter::{Counter, total};
use super::{ended, inside};
use anyhow::Result;
use peer_protocol::actors::{Messages, SENDERS, Took};
use peer_protocol::{Params, Workload};
use std::time::Instant;
use tokio::runtime::Runtime;

pub fn messages(runtime: Runtime, params: &Params) -> Result<Workload> {
    let sizes = Messages::of(params)?;
    Ok(Box::new(move |round| {
        let one = inside(&runtime, one_to_one(sizes.one))?;
        let apart = inside(&runtime, from_all(sizes, SENDERS))?;
        let together = inside(&runtime, from_all(sizes, 1))?;
        sizes.report(round, one, apart, together);
        Ok(())
    }))
}

async fn one_to_one(messages: u64) -> Result<Took> {
    let (counter, task) = Counter::start(0);
    let start = Instant::now();
    for number in 0..messages {
        counter.add(number).await?;
    }
    let sum = counter.total().await?;
    let elapsed = start.elapsed();
    drop(counter);
    task.await?;
    Ok((elapsed, sum))
}

/// From all senders, each to one of the counters.
async fn from_all(sizes: Messages, count: u64) -> Result<Took> {
    let (counters, tasks) = Counter::start_all(count);
    let start = Instant::now();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let to = counters[(sender % count) as usize].clone();
            tokio::spawn(async move {
                for number in sizes.share(sender) {
                    to.add(number).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for sender in senders {
        sender.await??;
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    drop(counters);
    ended(tasks).await?;
    Ok((elapsed, sum))
}
