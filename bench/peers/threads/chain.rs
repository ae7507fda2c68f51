//! `chain`: threads in a row, through which a number is passed.

use super::start::{join_all, spawn};
use crate::sync::mpsc::sync_channel;
use anyhow::Result;
use peer_protocol::{Params, Workload};
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let count = params.get("threads")?;
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let (mut left, leftmost) = sync_channel(1);
        let mut threads = Vec::with_capacity(count as usize);
        for number in 0..count {
            let (right, here) = sync_channel(1);
            threads.push(spawn(number, move || -> Result<()> {
                Ok(left.send(here.recv()? + 1)?)
            })?);
            left = right;
        }
        left.send(0)?;
        let number = leftmost.recv()?;
        join_all(threads).try_for_each(Result::flatten)?;
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", number, count);
        Ok(())
    }))
}
