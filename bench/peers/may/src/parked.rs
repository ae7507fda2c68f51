//! `parked`: many coroutines that wait, to be looked at from outside.

use crate::coroutines::{Arrivals, park_until, wake_all};
use anyhow::Result;
use may::coroutine::JoinHandle;
use may::go;
use peer_protocol::{Answer, Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub fn parked(params: &Params) -> Result<Workload> {
    let step = params.get("step")?;
    Ok(Box::new(move |round| {
        let released = Arc::new(AtomicBool::new(false));
        let mut handles = Vec::new();
        let mut spawning = Duration::ZERO;
        let mut answer = Answer::More(step);
        while let Answer::More(count) = answer {
            spawning += park_more(&mut handles, count as usize, &released);
            (answer, _) = round.at("parked", handles.len() as u64)?;
        }
        let count = handles.len() as u64;
        let (waking, woken) = wake_all(handles, &released);
        round.metric(
            "spawn",
            nanos_per(spawning, count),
            "ns/thread",
            count,
            count,
        );
        round.metric("wake", nanos_per(waking, count), "ns/thread", woken, count);
        Ok(())
    }))
}

/// Gives the time from the first spawn until all of them wait.
fn park_more(
    handles: &mut Vec<JoinHandle<u64>>,
    step: usize,
    released: &Arc<AtomicBool>,
) -> Duration {
    let arrivals = Arc::new(Arrivals::expect(step));
    let start = Instant::now();
    for _ in 0..step {
        let (arrivals, released) = (arrivals.clone(), released.clone());
        handles.push(go!(move || {
            arrivals.arrive();
            park_until(&released);
            1
        }));
    }
    arrivals.wait();
    start.elapsed()
}
