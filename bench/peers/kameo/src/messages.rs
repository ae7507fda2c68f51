//! `actor-messages`: numbers to actors that add them up.

use crate::counter::{Add, start_all, total};
use crate::{end, inside};
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
    let counters = start_all(1);
    let counter = &counters[0];
    let start = Instant::now();
    for number in 0..messages {
        counter.tell(Add(number)).await?;
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    end(&counters).await?;
    Ok((elapsed, sum))
}

/// From all senders, each to one of the actors.
async fn from_all(sizes: Messages, actors: u64) -> Result<Took> {
    let counters = start_all(actors);
    let start = Instant::now();
    let sender = |sender| {
        let to = counters[(sender % actors) as usize].clone();
        tokio::spawn(async move {
            for number in sizes.share(sender) {
                to.tell(Add(number)).await?;
            }
            anyhow::Ok(())
        })
    };
    let senders: Vec<_> = (0..SENDERS).map(sender).collect();
    for sender in senders {
        sender.await??;
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    end(&counters).await?;
    Ok((elapsed, sum))
}
