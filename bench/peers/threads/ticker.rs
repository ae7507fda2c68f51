//! `ticker`: a thread that is to run every millisecond beside threads that only compute.

use super::cpu_bound::{sum_of_plain_loop, sum_of_results};
use super::start::{join, spawn, spawn_all};
use crate::sync::mpsc;
use crate::thread;
use anyhow::Result;
use peer_protocol::{Params, Workload, compute};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let (tasks, iterations) = (params.get("tasks")?, params.get("iterations")?);
    let due = sum_of_plain_loop(tasks, iterations);
    Ok(Box::new(move |round| {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, ticking) = mpsc::channel();
        let start = Instant::now();
        let ticker = spawn(0, move || ticks(start, &stopped, &tell))?;
        ticking.recv()?;

        let before = start.elapsed();
        let threads = spawn_all(tasks, move |number| compute(iterations, number))?;
        let done = sum_of_results(threads)?;
        stop.store(true, Ordering::SeqCst);

        let mut ticks = join(ticker)?;
        ticks.retain(|tick| tick.due >= before);
        ticks.sort_unstable_by_key(|tick| tick.late);
        let late_ms = |part: f64| {
            let place = (ticks.len() as f64 * part).ceil() as usize;
            ticks[place.saturating_sub(1)].late.as_secs_f64() * 1e3
        };
        for (metric, part) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            round.metric(metric, late_ms(part), "ms", done, due);
        }
        Ok(())
    }))
}

struct Tick {
    /// Counted from the ticker's start.
    due: Duration,
    late: Duration,
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// Ticks every millisecond until one tick after it is told to stop; tells when it has made ten.
fn ticks(start: Instant, stop: &AtomicBool, tell: &mpsc::Sender<()>) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    let mut next = MILLISECOND;
    loop {
        let last_one = stop.load(Ordering::SeqCst);
        let made = ticks.len();
        while ticks.len() == made {
            thread::sleep(until_next_tick(start.elapsed()));
            let now = start.elapsed();
            while next <= now {
                let (due, late) = (next, now - next);
                ticks.push(Tick { due, late });
                next += MILLISECOND;
            }
        }
        if made < 10 && ticks.len() >= 10 {
            // The receiver is gone if the main program has failed meanwhile.
            let _ = tell.send(());
        }
        if last_one {
            return ticks;
        }
    }
}

/// From `now` to the next tick that is not yet past.
fn until_next_tick(now: Duration) -> Duration {
    MILLISECOND - Duration::from_nanos(u64::from(now.subsec_nanos()) % 1_000_000)
}
