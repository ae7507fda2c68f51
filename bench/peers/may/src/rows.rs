//! `skynet` and `chain`: coroutines that wait for one another.

use crate::coroutines::{inside, joined, sum_below};
use anyhow::{Result, ensure};
use may::go;
use may::sync::mpsc;
use peer_protocol::{Params, Workload};
use std::time::Instant;

pub fn skynet(params: &Params) -> Result<Workload> {
    let threads = params.get("threads")?;
    let power_of_ten = (0..20).any(|exponent| 10_u64.pow(exponent) == threads);
    ensure!(power_of_ten, "{threads} is not a power of ten");
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let sum = inside(move || sum_of_range(0, threads));
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", sum, sum_below(threads));
        Ok(())
    }))
}

fn sum_of_range(first: u64, count: u64) -> u64 {
    if count == 1 {
        return first;
    }
    let tenth = count / 10;
    let spawn = |child| go!(move || sum_of_range(first + child * tenth, tenth));
    let children: Vec<_> = (0..10).map(spawn).collect();
    children.into_iter().map(joined).sum()
}

pub fn chain(params: &Params) -> Result<Workload> {
    let threads = params.get("threads")?;
    Ok(Box::new(move |round| {
        let start = Instant::now();
        let (first, leftmost) = mpsc::channel();
        let mut left = first;
        let mut handles = Vec::new();
        for _ in 0..threads {
            let (sender, right) = mpsc::channel::<u64>();
            let passed_to = std::mem::replace(&mut left, sender);
            handles.push(go!(move || {
                let number = right.recv().expect("the right neighbour sends");
                passed_to.send(number + 1).expect("the left one waits");
            }));
        }
        left.send(0)?;
        let number = leftmost.recv()?;
        handles.into_iter().for_each(joined);
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", number, threads);
        Ok(())
    }))
}
