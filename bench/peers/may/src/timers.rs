//! `timers`: coroutines that wait with a time limit and are woken before.

use crate::coroutines::{Arrivals, end_after_park, inside, joined, wake_all};
use anyhow::Result;
use may::coroutine::{self, JoinHandle};
use may::go;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(600);

pub fn timers(params: &Params) -> Result<Workload> {
    let (threads, waits) = (params.get("threads")?, params.get("waits")?);
    Ok(Box::new(move |round| {
        let released = Arc::new(AtomicBool::new(false));
        let (arming, handles) = arm(threads, &released);
        let (passing, turns) = inside(move || pass(waits));
        let (cancelling, woken) = wake_all(handles, &released);

        let mut report = |metric, elapsed, count, unit, done| {
            round.metric(metric, nanos_per(elapsed, count), unit, done, count);
        };
        report("arm", arming, threads, "ns/timer", threads);
        report("rearm", passing, 2 * waits, "ns/timed wait", turns);
        report("cancel", cancelling, threads, "ns/timer", woken);
        Ok(())
    }))
}

/// Gives the time until all wait.
fn arm(threads: u64, released: &Arc<AtomicBool>) -> (Duration, Vec<JoinHandle<u64>>) {
    let arrivals = Arc::new(Arrivals::expect(threads as usize));
    let spawn = |number| {
        let (arrivals, released) = (arrivals.clone(), released.clone());
        let limit = LIMIT + Duration::from_millis(number % 1000);
        go!(move || {
            arrivals.arrive();
            coroutine::park_timeout(limit);
            // Had it timed out instead, it would find this not yet set.
            let woken = released.load(SeqCst);
            end_after_park();
            u64::from(woken)
        })
    };
    let start = Instant::now();
    let handles = (0..threads).map(spawn).collect();
    arrivals.wait();
    (start.elapsed(), handles)
}

/// Two coroutines take turns: this one's is when the number of turns is even.
fn pass(round_trips: u64) -> (Duration, u64) {
    let turns = Arc::new(AtomicU64::new(0));
    let (here, shared) = (coroutine::current(), turns.clone());
    let other = go!(move || {
        for trip in 0..round_trips {
            while shared.load(SeqCst) == 2 * trip {
                coroutine::park_timeout(LIMIT);
            }
            shared.fetch_add(1, SeqCst);
            here.unpark();
        }
        end_after_park();
    });
    let start = Instant::now();
    for trip in 0..round_trips {
        turns.fetch_add(1, SeqCst);
        other.coroutine().unpark();
        while turns.load(SeqCst) == 2 * trip + 1 {
            coroutine::park_timeout(LIMIT);
        }
    }
    let elapsed = start.elapsed();
    joined(other);
    (elapsed, turns.load(SeqCst))
}
