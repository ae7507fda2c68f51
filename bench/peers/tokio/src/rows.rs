//! `skynet` and `chain`: tasks that hand numbers to each other, in a tree and in a row.

use crate::tasks::sum_below;
use anyhow::{Context, Result};
use peer_protocol::{Params, Workload};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub fn skynet(runtime: Runtime, params: &Params) -> Result<Workload> {
    let threads = params.get("threads")?;
    Ok(Box::new(move |round| {
        let (wall, sum) = runtime.block_on(async {
            let start = Instant::now();
            let sum = spawn_tree(0, threads).await?;
            anyhow::Ok((start.elapsed(), sum))
        })?;
        round.metric("wall", wall.as_secs_f64(), "s", sum, sum_below(threads));
        Ok(())
    }))
}

/// Spawns the task for `size` numbers from `first` on.
fn spawn_tree(first: u64, size: u64) -> JoinHandle<u64> {
    tokio::spawn(async move {
        if size == 1 {
            return first;
        }
        let part = size / 10;
        let children: [_; 10] =
            std::array::from_fn(|child| spawn_tree(first + child as u64 * part, part));
        let mut sum = 0;
        for child in children {
            sum += child.await.expect("a child does not fail");
        }
        sum
    })
}

pub fn chain(runtime: Runtime, params: &Params) -> Result<Workload> {
    let threads = params.get("threads")?;
    Ok(Box::new(move |round| {
        let (wall, number) = runtime.block_on(pass_along(threads))?;
        round.metric("wall", wall.as_secs_f64(), "s", number, threads);
        Ok(())
    }))
}

async fn pass_along(count: u64) -> Result<(Duration, u64)> {
    let (left_end, outcome) = oneshot::channel();
    let mut left = left_end;
    let mut handles = Vec::new();
    let start = Instant::now();
    for _ in 0..count {
        let (right, mine) = oneshot::channel::<u64>();
        let to_left = std::mem::replace(&mut left, right);
        handles.push(tokio::spawn(async move {
            let number = mine.await.expect("the right neighbour sends");
            // Who does not wait for it any more has failed, and says so itself.
            let _ = to_left.send(number + 1);
        }));
    }
    let _ = left.send(0);
    let number = outcome.await.context("the chain is broken")?;
    for handle in handles {
        handle.await?;
    }
    Ok((start.elapsed(), number))
}
