//! `actor-messages`: numbers to actors that add them up.

use crate::Gone;
use crate::counter::{Add, start_all, total};
use actix::SystemRunner;
use anyhow::Result;
use peer_protocol::actors::{Messages, SENDERS, Took};
use peer_protocol::{Params, Workload};
use std::time::Instant;

pub fn new(system: SystemRunner, params: &Params) -> Result<Workload> {
    let sizes = Messages::of(params)?;
    Ok(Box::new(move |round| {
        let one = system.block_on(one_to_one(sizes.one))?;
        let apart = system.block_on(from_all(sizes, SENDERS))?;
        let together = system.block_on(from_all(sizes, 1))?;
        sizes.report(round, one, apart, together);
        Ok(())
    }))
}

async fn one_to_one(messages: u64) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let counters = start_all(1, &alive);
    let start = Instant::now();
    for number in 0..messages {
        counters[0].do_send(Add(number));
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    drop((alive, counters));
    gone.wait().await;
    Ok((elapsed, sum))
}

/// From all senders, each to one of the actors.
async fn from_all(sizes: Messages, actors: u64) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let counters = start_all(actors, &alive);
    let start = Instant::now();
    let sender = |sender| {
        let to = counters[(sender % actors) as usize].clone();
        actix::spawn(async move {
            sizes
                .share(sender)
                .for_each(|number| to.do_send(Add(number)));
        })
    };
    let senders: Vec<_> = (0..SENDERS).map(sender).collect();
    for sender in senders {
        sender.await?;
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    drop((alive, counters));
    gone.wait().await;
    Ok((elapsed, sum))
}
