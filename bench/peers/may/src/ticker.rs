//! `ticker`: is a coroutine that wakes every millisecond late while others compute?

use crate::computing::Computations;
use crate::coroutines::joined;
use anyhow::Result;
use may::coroutine::sleep;
use may::go;
use may::sync::SyncFlag;
use peer_protocol::{Params, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(1);
const WARM_UP: u32 = 10;

pub fn ticker(params: &Params) -> Result<Workload> {
    let computations = Computations::new(params)?;
    Ok(Box::new(move |round| {
        let shared = Arc::new(Shared::default());
        let ticker = {
            let shared = shared.clone();
            go!(move || tick(&shared))
        };
        shared.warm.wait();
        let spawned = Instant::now();
        let done = computations.in_coroutines(|| {});
        shared.stop.store(true, SeqCst);

        let ticks = joined(ticker).into_iter();
        let under_load = ticks.filter(|tick| tick.due >= spawned);
        let mut lateness: Vec<_> = under_load.map(|tick| tick.lateness).collect();
        lateness.sort_unstable();
        for (metric, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
            let rank = (lateness.len() * percent).div_ceil(100);
            let value = lateness[rank - 1].as_secs_f64() * 1e3;
            round.metric(metric, value, "ms", done, computations.due);
        }
        Ok(())
    }))
}

/// What the ticker and the main program tell each other.
#[derive(Default)]
struct Shared {
    /// It has ticked often enough for the load to come.
    warm: SyncFlag,
    /// The next tick is the last.
    stop: AtomicBool,
}

struct Tick {
    due: Instant,
    lateness: Duration,
}

fn tick(shared: &Shared) -> Vec<Tick> {
    let start = Instant::now();
    let ticks_by = |time: Instant| ((time - start).as_nanos() / PERIOD.as_nanos()) as u32;
    let mut ticks = Vec::new();
    let mut counted = 0;
    loop {
        let last = shared.stop.load(SeqCst);
        let now = Instant::now();
        sleep(start + PERIOD * (ticks_by(now) + 1) - now);

        let now = Instant::now();
        let passed = ticks_by(now);
        ticks.extend((counted + 1..=passed).map(|tick| {
            let due = start + PERIOD * tick;
            let lateness = now - due;
            Tick { due, lateness }
        }));
        if last && passed > counted {
            return ticks;
        }
        counted = passed;
        if counted >= WARM_UP {
            shared.warm.fire();
        }
    }
}
