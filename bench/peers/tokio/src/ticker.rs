//! `ticker`: is a task that wakes every millisecond late while others compute?

use crate::computing::Computations;
use anyhow::Result;
use peer_protocol::{Params, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};

const PERIOD: Duration = Duration::from_millis(1);
const WARM_UP: u32 = 10;

pub fn ticker(runtime: Runtime, params: &Params) -> Result<Workload> {
    let computations = Computations::new(params)?;
    Ok(Box::new(move |round| {
        let (done, lateness) = runtime.block_on(tick_beside(&computations))?;
        for (metric, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
            let rank = (lateness.len() * percent).div_ceil(100);
            let value = lateness[rank - 1].as_secs_f64() * 1e3;
            round.metric(metric, value, "ms", done, computations.due);
        }
        Ok(())
    }))
}

/// Gives what the computations gave, and how late the ticks were, in ascending order.
async fn tick_beside(computations: &Computations) -> Result<(u64, Vec<Duration>), JoinError> {
    let signals = Arc::new(Signals::default());
    let ticker = tokio::spawn(tick(signals.clone()));
    signals.warm.notified().await;

    let spawned = Instant::now();
    let done = computations.run().await?;
    signals.stop.store(true, SeqCst);

    let ticks = ticker.await?.into_iter();
    let under_load = ticks.filter(|tick| tick.due >= spawned);
    let mut lateness: Vec<_> = under_load.map(|tick| tick.lateness).collect();
    lateness.sort_unstable();
    Ok((done, lateness))
}

/// What the ticker and main tell each other.
#[derive(Default)]
struct Signals {
    /// It has ticked often enough for the load to come.
    warm: Notify,
    /// The next tick is the last.
    stop: AtomicBool,
}

struct Tick {
    due: Instant,
    lateness: Duration,
}

/// Ticks until told to stop. `tokio::time::interval` would do almost the same; here a late waking
/// counts all the ticks it missed with one look at the clock.
async fn tick(signals: Arc<Signals>) -> Vec<Tick> {
    let start = Instant::now();
    let ticks_by = |time: Instant| ((time - start).as_nanos() / PERIOD.as_nanos()) as u32;
    let mut ticks = Vec::new();
    let mut counted = 0;
    loop {
        let last = signals.stop.load(SeqCst);
        sleep_until(start + PERIOD * (ticks_by(Instant::now()) + 1)).await;

        let now = Instant::now();
        let passed = ticks_by(now);
        ticks.extend((counted + 1..=passed).map(|tick| {
            let due = start + PERIOD * tick;
            let lateness = now - due;
            Tick { due, lateness }
        }));
        if last {
            return ticks;
        }
        if counted < WARM_UP && passed >= WARM_UP {
            signals.warm.notify_one();
        }
        counted = passed;
    }
}
