//! `actor-create` and `actor-idle`: processes that come, wait and go.

use crate::counter::{Counter, Message, counter};
use crate::{end, inside};
use anyhow::Result;
use peer_protocol::actors::{Took, report_created, report_idle};
use peer_protocol::{Params, Workload};
use pirn_actor::Exit;
use std::time::Instant;

pub fn create(params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let created = inside(move || create_all(count))?;
        let ended = inside(move || create_and_end(count))?;
        report_created(round, count, created, ended);
        Ok(())
    }))
}

fn create_all(count: u64) -> Result<Took> {
    let mut counters = Vec::with_capacity(count as usize);
    let start = Instant::now();
    for number in 0..count {
        counters.push(counter(number));
    }
    let elapsed = start.elapsed();
    let sum = total(&counters)?;
    end(&counters)?;
    Ok((elapsed, sum))
}

fn create_and_end(count: u64) -> Result<Took> {
    let mut ended = 0;
    let start = Instant::now();
    for number in 0..count {
        let counter = counter(number);
        counter.close();
        ended += u64::from(counter.join() == Exit::Closed);
    }
    Ok((start.elapsed(), ended))
}

/// Asks the processes one after the other.
fn total(counters: &[Counter]) -> Result<u64> {
    let mut sum = 0;
    for counter in counters {
        sum += counter.ask(Message::Total)?;
    }
    Ok(sum)
}

pub fn idle(params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let counters = inside(move || {
            let counters: Vec<_> = (0..count).map(counter).collect();
            total(&counters)?;
            Ok(counters)
        })?;
        round.at("idle", count)?;
        let took = inside(move || {
            let start = Instant::now();
            let sum = total(&counters)?;
            let elapsed = start.elapsed();
            end(&counters)?;
            Ok((elapsed, sum))
        })?;
        report_idle(round, count, took);
        Ok(())
    }))
}
