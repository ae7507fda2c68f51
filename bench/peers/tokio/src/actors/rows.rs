//! `actor-chain` and `actor-skynet`: tasks with a channel that know each other, in a row and in a
//! tree.

use super::{ROOM, ended, inside};
use anyhow::{Context, Result};
use peer_protocol::actors::{self, Took};
use peer_protocol::{Params, Workload};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

pub fn chain(runtime: Runtime, params: &Params) -> Result<Workload> {
    actors::chain(params, move |row| inside(&runtime, pass_along(row)))
}

pub fn skynet(runtime: Runtime, params: &Params) -> Result<Workload> {
    actors::skynet(params, move |leaves| inside(&runtime, add_up(leaves)))
}

/// Adds one to a number, and passes it on.
async fn link(mut inbox: mpsc::Receiver<u64>, next: mpsc::Sender<u64>) {
    while let Some(number) = inbox.recv().await {
        // Who has gone has failed, and the number never comes out.
        let _ = next.send(number + 1).await;
    }
}

async fn pass_along(count: u64) -> Result<Took> {
    let (outcome, mut comes_out) = mpsc::channel(ROOM);
    let mut row = Vec::with_capacity(count as usize);
    let mut next = outcome;
    let start = Instant::now();
    for _ in 0..count {
        let (sender, inbox) = mpsc::channel(ROOM);
        row.push(tokio::spawn(link(inbox, next)));
        next = sender;
    }
    next.send(0).await?;
    let number = comes_out.recv().await.context("the chain is broken")?;
    let elapsed = start.elapsed();
    drop(next);
    ended(row).await?;
    Ok((elapsed, number))
}

/// Asks for the sum of a range of numbers.
struct Range {
    first: u64,
    size: u64,
    sum: oneshot::Sender<u64>,
}

/// Adds up one range: has other nodes do it, if there is more than one number.
fn start_node() -> mpsc::Sender<Range> {
    let (sender, mut inbox) = mpsc::channel::<Range>(ROOM);
    tokio::spawn(async move {
        let Range { first, size, sum } = inbox.recv().await?;
        let all = if size == 1 {
            first
        } else {
            add_up_parts(first, size / 10).await.ok()?
        };
        sum.send(all).ok()
    });
    sender
}

async fn add_up_parts(first: u64, size: u64) -> Result<u64> {
    let mut answers = Vec::with_capacity(10);
    for child in 0..10 {
        let (sum, answer) = oneshot::channel();
        let first = first + child * size;
        start_node().send(Range { first, size, sum }).await?;
        answers.push(answer);
    }
    let mut sum = 0;
    for answer in answers {
        sum += answer.await?;
    }
    Ok(sum)
}

async fn add_up(leaves: u64) -> Result<Took> {
    let start = Instant::now();
    let (sum, answer) = oneshot::channel();
    let (first, size) = (0, leaves);
    start_node().send(Range { first, size, sum }).await?;
    let sum = answer.await?;
    Ok((start.elapsed(), sum))
}
