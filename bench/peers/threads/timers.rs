//! `timers`: threads that wait with a time limit, which never comes.

use super::crowd::{Crowd, park_until};
use super::start::{inside, join, join_all, spawn, spawn_all};
use crate::thread::{self, Thread};
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(600);

pub fn new(params: &Params) -> Result<Workload> {
    let (count, trips) = (params.get("threads")?, params.get("waits")?);
    Ok(Box::new(move |round| {
        let crowd = Crowd::of(count);
        let waiting = Arc::clone(&crowd);
        let start = Instant::now();
        let threads = spawn_all(count, move |number| {
            waiting.wait_at_most(LIMIT + Duration::from_millis(number % 1000))
        })?;
        let armed = crowd.watch();
        let arming = start.elapsed();

        let (rearming, turns) = inside(move || to_and_fro(trips))?;

        let start = Instant::now();
        crowd.wake(&threads);
        let woken = join_all(threads).map(|woken| Ok(u64::from(woken?)));
        let woken = woken.sum::<Result<u64>>()?;
        let cancelling = start.elapsed();

        round.metric("arm", nanos_per(arming, count), "ns/timer", armed, count);
        let nanos = nanos_per(rearming, 2 * trips);
        round.metric("rearm", nanos, "ns/timed wait", turns, 2 * trips);
        let nanos = nanos_per(cancelling, count);
        round.metric("cancel", nanos, "ns/timer", woken, count);
        Ok(())
    }))
}

/// The time it takes two threads to pass a turn to and fro, and the number of turns taken in time.
fn to_and_fro(trips: u64) -> Result<(Duration, u64)> {
    // How many turns have been passed: it is the first thread's while that is even.
    let passed = Arc::new(AtomicU64::new(0));
    let (first, shared) = (thread::current(), Arc::clone(&passed));
    let second = spawn(1, move || {
        let turns = (0..trips).filter(|trip| {
            let in_time = wait_for(&shared, 2 * trip + 1);
            pass(&shared, &first);
            in_time
        });
        let turns = turns.count() as u64;
        crate::end_after_park();
        turns
    })?;
    let start = Instant::now();
    let turns = (1..=trips).filter(|trip| {
        pass(&passed, second.thread());
        wait_for(&passed, 2 * trip)
    });
    let turns = turns.count() as u64;
    let elapsed = start.elapsed();
    Ok((elapsed, turns + join(second)?))
}

fn wait_for(passed: &AtomicU64, turn: u64) -> bool {
    park_until(LIMIT, || passed.load(Ordering::SeqCst) == turn)
}

fn pass(passed: &AtomicU64, other: &Thread) {
    passed.fetch_add(1, Ordering::SeqCst);
    other.unpark();
}
