//! `actor-create` and `actor-idle`: actors that come, wait and go.

use super::counter::{Counter, Total};
use super::end;
use crate::workloads::start::inside;
use anyhow::Result;
use peer_protocol::actors::{Took, report_created, report_idle};
use peer_protocol::{Params, Workload};
use pirn_actor::{self as actor, Exit, Ref};
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
        counters.push(actor::spawn(Counter(number)));
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
        let counter = actor::spawn(Counter(number));
        counter.close();
        ended += u64::from(counter.join() == Exit::Closed);
    }
    Ok((start.elapsed(), ended))
}

/// Asks the actors one after the other.
fn total(counters: &[Ref<Counter>]) -> Result<u64> {
    let mut sum = 0;
    for counter in counters {
        sum += counter.ask(Total)?;
    }
    Ok(sum)
}

pub fn idle(params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let counters = inside(move || {
            let counters: Vec<_> = (0..count).map(|n| actor::spawn(Counter(n))).collect();
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
