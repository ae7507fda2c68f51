//! `yield`: two threads on one core yield to each other.

use super::crowd::Crowd;
use super::start::{join_all, spawn_all};
use crate::thread;
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let count = params.get("yields")?;
    Ok(Box::new(move |round| {
        let crowd = Crowd::of(2);
        let last = Arc::new(AtomicU64::new(u64::MAX));
        let gate = Arc::clone(&crowd);
        let threads = spawn_all(2, move |me| {
            gate.wait();
            yields(me, count, &last)
        })?;
        crowd.watch();
        let start = Instant::now();
        crowd.wake(&threads);
        let (mut calls, mut switches) = (0, 0);
        for tally in join_all(threads) {
            let tally = tally?;
            calls += tally.calls;
            switches += tally.switches;
        }
        let elapsed = start.elapsed();

        let nanos = nanos_per(elapsed, 2 * count);
        round.metric("yield", nanos, "ns/yield", calls, 2 * count);
        if switches == 0 {
            round.skip("switch", "neither thread has let the other one run");
        } else {
            let nanos = nanos_per(elapsed, switches);
            round.metric("switch", nanos, "ns/switch", switches, switches);
        }
        Ok(())
    }))
}

struct Tally {
    calls: u64,
    /// The calls after which the other one had run.
    switches: u64,
}

fn yields(me: u64, count: u64, last: &AtomicU64) -> Tally {
    let mut tally = Tally {
        calls: 0,
        switches: 0,
    };
    for _ in 0..count {
        // Relaxed: who ran last is counted, and orders nothing; both run on one core.
        last.store(me, Ordering::Relaxed);
        thread::yield_now();
        tally.calls += 1;
        // Relaxed: who ran last is counted, and orders nothing; both run on one core.
        tally.switches += u64::from(last.load(Ordering::Relaxed) != me);
    }
    tally
}
