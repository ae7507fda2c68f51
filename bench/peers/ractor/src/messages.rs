//! `actor-messages`: numbers to actors that add them up.

use crate::counter::{Message, start_all};
use crate::inside;
use anyhow::Result;
use peer_protocol::actors::{Messages, SENDERS, Took};
use peer_protocol::{Params, Workload};
use std::time::Instant;
use tokio::runtime::Runtime;

pub fn new(runtime: Runtime, params: &Params) -> Result<Workload> {
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
    let counters = start_all(1).await?;
    let counter = &counters.actors[0];
    let start = Instant::now();
    for number in 0..messages {
        counter.cast(Message::Add(number))?;
    }
    let sum = counters.total().await?;
    let elapsed = start.elapsed();
    counters.end().await?;
    Ok((elapsed, sum))
}

/// From all senders, each to one of the actors.
async fn from_all(sizes: Messages, actors: u64) -> Result<Took> {
    let counters = start_all(actors).await?;
    let start = Instant::now();
    let sender = |sender| {
        let to = counters.actors[(sender % actors) as usize].clone();
        tokio::spawn(async move {
            let mut share = sizes.share(sender);
            share.try_for_each(|number| to.cast(Message::Add(number)))
        })
    };
    let senders: Vec<_> = (0..SENDERS).map(sender).collect();
    for sender in senders {
        sender.await??;
    }
    let sum = counters.total().await?;
    let elapsed = start.elapsed();
    counters.end().await?;
    Ok((elapsed, sum))
}
