//! `spawn`: what it costs to start a coroutine, and to join it.

use crate::coroutines::{inside, joined, sum_below};
use anyhow::Result;
use may::{coroutine, go};
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub fn spawn(params: &Params) -> Result<Workload> {
    let (burst, many, few) = (
        params.get("burst")?,
        params.get("inside")?,
        params.get("main")?,
    );
    Ok(Box::new(move |round| {
        let mut report = |metric, count, (elapsed, sum)| {
            let value = nanos_per(elapsed, count);
            round.metric(metric, value, "ns/thread", sum, sum_below(count));
        };
        report("burst", burst, inside(move || spawn_burst(burst)));
        report("join inside", many, inside(move || join_each(many)));
        report("join main", few, join_each(few));
        Ok(())
    }))
}

/// The last coroutine to finish wakes the one that spawned them all.
fn spawn_burst(count: u64) -> (Duration, u64) {
    let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(count)));
    let spawner = coroutine::current();
    let start = Instant::now();
    for number in 0..count {
        let (shared, spawner) = (shared.clone(), spawner.clone());
        go!(move || {
            let (sum, unfinished) = &*shared;
            sum.fetch_add(number, SeqCst);
            if unfinished.fetch_sub(1, SeqCst) == 1 {
                spawner.unpark();
            }
        });
    }
    let (sum, unfinished) = &*shared;
    while unfinished.load(SeqCst) > 0 {
        coroutine::park();
    }
    (start.elapsed(), sum.load(SeqCst))
}

fn join_each(count: u64) -> (Duration, u64) {
    let start = Instant::now();
    let sum = (0..count).map(|number| joined(go!(move || number))).sum();
    (start.elapsed(), sum)
}
