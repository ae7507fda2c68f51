//! `actor-messages`: numbers to actors that add them up.

use super::counter::{Add, Counter, Total};
use super::end;
use crate::workloads::start::{inside, join_all, spawn};
use anyhow::Result;
use peer_protocol::actors::{Messages, SENDERS, Took};
use peer_protocol::{Params, Workload};
use pirn_actor::{self as actor, Ref};
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let sizes = Messages::of(params)?;
    Ok(Box::new(move |round| {
        let one = inside(move || one_to_one(sizes.one))?;
        let apart = inside(move || from_all(sizes, SENDERS))?;
        let together = inside(move || from_all(sizes, 1))?;
        sizes.report(round, one, apart, together);
        Ok(())
    }))
}

fn one_to_one(messages: u64) -> Result<Took> {
    let counter = actor::spawn(Counter(0));
    let start = Instant::now();
    for number in 0..messages {
        counter.send(Add(number))?;
    }
    let sum = counter.ask(Total)?;
    let elapsed = start.elapsed();
    end(&[counter])?;
    Ok((elapsed, sum))
}

/// From all senders, each to one of the actors.
fn from_all(sizes: Messages, actors: u64) -> Result<Took> {
    let counters: Vec<Ref<Counter>> = (0..actors).map(|_| actor::spawn(Counter(0))).collect();
    let start = Instant::now();
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let to = counters[(sender % actors) as usize].clone();
        senders.push(spawn(sender, move || {
            let mut share = sizes.share(sender);
            share.try_for_each(|number| to.send(Add(number)))
        })?);
    }
    join_all(senders).try_for_each(|sent| anyhow::Ok(sent??))?;
    let mut sum = 0;
    for counter in &counters {
        sum += counter.ask(Total)?;
    }
    let elapsed = start.elapsed();
    end(&counters)?;
    Ok((elapsed, sum))
}
