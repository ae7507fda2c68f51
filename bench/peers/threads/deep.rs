//! `deep`: threads that wait at the bottom of a deep recursion, and a ticker that tells whether
//! that stops anybody else.

use super::crowd::Crowd;
use super::start::{join, join_all};
use crate::sync::mpsc;
use crate::thread::{self, Builder, JoinHandle};
use anyhow::{Context, Result};
use peer_protocol::{Params, Round, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let (count, depth) = (params.get("threads")?, params.get("depth")?);
    let due = sum_of_plain_calls(count, depth)?;
    Ok(Box::new(move |round| {
        let ticker = Ticker::start()?;
        let still = sink_and_wake(round, count, depth, due)?;
        let pause = longest_lateness(&ticker.stop()?, still);
        round.metric("pause", pause.as_secs_f64() * 1e3, "ms", due, due);
        Ok(())
    }))
}

/// The round without the ticker; gives since when until when the peer stood still.
fn sink_and_wake(round: &mut Round, count: u64, depth: u64, due: u64) -> Result<[Instant; 2]> {
    let crowd = Crowd::of(count);
    let mut threads = Vec::with_capacity(count as usize);
    let start = Instant::now();
    for number in 0..count {
        threads.push(spawn(number, depth, Arc::clone(&crowd))?);
    }
    let waiting = crowd.watch();
    let sinking = start.elapsed();

    let still_since = Instant::now();
    round.at("deep", waiting)?;
    let start = Instant::now();
    crowd.wake(&threads);
    let mut sum = 0_u64;
    for result in join_all(threads) {
        sum = sum.wrapping_add(result?);
    }
    let waking = start.elapsed();

    let micros = |elapsed| nanos_per(elapsed, count) / 1e3;
    round.metric("sink", micros(sinking), "µs/thread", waiting, count);
    round.metric("wake", micros(waking), "µs/thread", sum, due);
    Ok([still_since, start])
}

fn spawn(number: u64, depth: u64, crowd: Arc<Crowd>) -> Result<JoinHandle<u64>> {
    let mut builder = Builder::new();
    if stack_for(depth) > crate::DEFAULT_STACK {
        builder = builder.stack_size(stack_for(depth));
    }
    let spawned = builder.spawn(move || descend(depth, number, &|| crowd.wait()));
    spawned.with_context(|| format!("cannot start thread {number}"))
}

/// Bytes of stack, a round number, that hold this many frames and what is called at the bottom of
/// them.
fn stack_for(depth: u64) -> usize {
    const FRAME: usize = if cfg!(debug_assertions) { 512 } else { 64 };
    const REST: usize = 16 << 10;
    (depth as usize * FRAME + REST).next_power_of_two()
}

/// Calls itself this many times before it waits, and needs all of its variables afterwards.
#[inline(never)]
fn descend(depth: u64, x: u64, wait: &impl Fn()) -> u64 {
    if depth == 0 {
        wait();
        return x;
    }
    let a = x.wrapping_mul(6364136223846793005).wrapping_add(depth);
    let b = a ^ (a >> 29);
    let c = b.wrapping_mul(3).wrapping_add(depth);
    let d = c ^ (c << 7);
    let r = descend(depth - 1, d, wait);
    let r = (r ^ a).wrapping_mul(31).wrapping_add(b);
    (r ^ c).wrapping_mul(31).wrapping_add(d)
}

/// What the threads' results must add up to.
fn sum_of_plain_calls(count: u64, depth: u64) -> Result<u64> {
    let sum = move || (0..count).fold(0, |sum: u64, x| sum.wrapping_add(descend(depth, x, &|| {})));
    let builder = std::thread::Builder::new().stack_size(stack_for(depth).max(2 << 20));
    let thread = builder.spawn(sum).context("cannot start a thread")?;
    Ok(thread.join().expect("it only computes"))
}

/// A thread that is to wake every millisecond.
struct Ticker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Instant>>,
}

const TICK: Duration = Duration::from_millis(1);

impl Ticker {
    /// Starts it, and waits until it ticks.
    fn start() -> Result<Ticker> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (ticking, ticks) = mpsc::channel();
        let thread = super::start::spawn(0, move || {
            let mut wakings = vec![Instant::now()];
            // The other end may have gone.
            let _ = ticking.send(());
            while !stopped.load(Ordering::SeqCst) {
                thread::sleep(TICK);
                wakings.push(Instant::now());
            }
            wakings
        })?;
        ticks.recv()?;
        Ok(Ticker { stop, thread })
    }

    /// Gives when it has woken, from its start until after this call.
    fn stop(self) -> Result<Vec<Instant>> {
        self.stop.store(true, Ordering::SeqCst);
        join(self.thread)
    }
}

/// By how much the ticker was late at most, not counting the time that the peer stood still.
fn longest_lateness(wakings: &[Instant], still: [Instant; 2]) -> Duration {
    let lateness = |gap: &[Instant]| {
        let stood = gap[1]
            .min(still[1])
            .saturating_duration_since(gap[0].max(still[0]));
        (gap[1] - gap[0]).saturating_sub(stood + TICK)
    };
    wakings.windows(2).map(lateness).max().unwrap_or_default()
}
