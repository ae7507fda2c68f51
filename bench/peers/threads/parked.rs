//! `parked`: threads that only wait.

use super::crowd::Crowd;
use super::start::{join_all, spawn_all};
use anyhow::Result;
use peer_protocol::{Answer, Params, Workload, nanos_per};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let step = params.get("step")?;
    Ok(Box::new(move |round| {
        let crowd = Crowd::of(0);
        let mut threads = Vec::new();
        let mut spawning = Duration::ZERO;
        let mut waiting = 0;
        let mut answer = Answer::More(step);
        while let Answer::More(count) = answer {
            crowd.expect(count);
            let gate = Arc::clone(&crowd);
            let start = Instant::now();
            threads.extend(spawn_all(count, move |_| {
                gate.wait();
                1
            })?);
            waiting = crowd.watch();
            spawning += start.elapsed();
            (answer, _) = round.at("parked", waiting)?;
        }
        let count = threads.len() as u64;
        let start = Instant::now();
        crowd.wake(&threads);
        let woken = join_all(threads).sum::<Result<u64>>()?;
        let waking = start.elapsed();

        let nanos = nanos_per(spawning, count);
        round.metric("spawn", nanos, "ns/thread", waiting, count);
        round.metric("wake", nanos_per(waking, count), "ns/thread", woken, count);
        Ok(())
    }))
}
