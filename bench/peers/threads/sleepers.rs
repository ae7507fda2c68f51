//! `sleepers`: threads that sleep and print a line.

use super::start::{join_all, spawn_all};
use crate::thread;
use anyhow::Result;
use peer_protocol::{Params, Workload};
use std::io::{self, Write};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let count = params.get("threads")?;
    let time = Duration::from_millis(params.get("ms")?);
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let threads = spawn_all(count, move |number| {
            thread::sleep(time);
            println!("{number}");
            number
        })?;
        let sum = join_all(threads).sum::<Result<u64>>()?;
        let wall = start.elapsed();
        io::stdout().flush()?;
        let due = count * count.saturating_sub(1) / 2;
        round.metric("wall", wall.as_secs_f64(), "s", sum, due);
        Ok(())
    }))
}
