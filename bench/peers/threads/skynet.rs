//! `skynet`: each thread has ten children, down to those with one number.

use super::start::{inside, join_all, spawn};
use anyhow::Result;
use peer_protocol::{Params, Workload};
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let count = params.get("threads")?;
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let sum = inside(move || skynet(0, count))?;
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", sum, count * (count - 1) / 2);
        Ok(())
    }))
}

/// The sum of this many numbers from `first` on.
fn skynet(first: u64, count: u64) -> Result<u64> {
    if count == 1 {
        return Ok(first);
    }
    let part = count / 10;
    let mut children = Vec::with_capacity(10);
    for first in (first..first + count).step_by(part as usize) {
        children.push(spawn(first, move || skynet(first, part))?);
    }
    join_all(children).map(Result::flatten).sum()
}
