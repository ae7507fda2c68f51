//! `actor-messages`: numbers to processes that add them up.

use crate::counter::{Counter, Message, counter};
use crate::{end, inside};
use anyhow::{Result, anyhow};
use peer_protocol::actors::{Messages, SENDERS, Took};
use peer_protocol::{Params, Workload};
use pirn::thread;
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
    let counter = counter(0);
    let start = Instant::now();
    for number in 0..messages {
        counter.send(Message::Add(number))?;
    }
    let sum = counter.ask(Message::Total)?;
    let elapsed = start.elapsed();
    end(&[counter])?;
    Ok((elapsed, sum))
}

/// From all senders, each to one of the processes.
fn from_all(sizes: Messages, processes: u64) -> Result<Took> {
    let counters: Vec<Counter> = (0..processes).map(|_| counter(0)).collect();
    let start = Instant::now();
    let sender = |sender| {
        let to = counters[(sender % processes) as usize].clone();
        thread::spawn(move || {
            let mut share = sizes.share(sender);
            share.try_for_each(|number| to.send(Message::Add(number)))
        })
    };
    let senders: Vec<_> = (0..SENDERS).map(sender).collect();
    for sender in senders {
        let sent = sender.join();
        sent.map_err(|_| anyhow!("a sender has panicked"))??;
    }
    let mut sum = 0;
    for counter in &counters {
        sum += counter.ask(Message::Total)?;
    }
    let elapsed = start.elapsed();
    end(&counters)?;
    Ok((elapsed, sum))
}
