//! `deep`: tasks that wait at the bottom of a deep recursion, and a ticker beside them.

use crate::place::Place;
use crate::tasks::joined_sum;
use anyhow::Result;
use peer_protocol::{Params, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::sleep;

/// The size of a worker's stack: what std gives a thread by default.
const DEFAULT_STACK: usize = 2 << 20;
/// What a worker's stack holds for each frame while it polls a task from top to bottom, return
/// address included: a release build by rustc 1.95 for x86-64.
const FRAME: usize = 160;
/// What the runtime takes of the stack, amply.
const OTHER: usize = 64 << 10;

/// Between two polls a task's frames are in their boxes. While a worker polls it, all are on the
/// worker's stack too, which is therefore the least multiple of the default that holds them.
pub fn runtime(params: &Params) -> Result<Runtime> {
    let stack = params.count("depth")? * FRAME + OTHER;
    let mut builder = Builder::new_multi_thread();
    builder.enable_all();
    builder.thread_stack_size(stack.next_multiple_of(DEFAULT_STACK));
    Ok(builder.build()?)
}

pub fn deep(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (threads, depth) = (params.get("threads")?, params.get("depth")?);
    // In a task, as main's stack may be too small.
    let due = runtime.block_on(runtime.spawn(async move {
        let returned = (0..threads).map(|number| descend_alone(depth, number));
        returned.fold(0, u64::wrapping_add)
    }))?;
    Ok(Box::new(move |round| {
        let ticker = Ticker::start(&runtime);
        let bottom = Place::for_tasks(threads);
        let (sinking, handles) = runtime.block_on(sink(threads, depth, &bottom));

        let stands_from = Instant::now();
        let (_, stood) = round.at("deep", threads)?;
        let standing = (stands_from, stands_from + stood);

        let (waking, sum) = runtime.block_on(wake(handles, &bottom))?;
        let wakings = runtime.block_on(ticker.stop())?;
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / threads as f64;
        round.metric("sink", micros(sinking), "µs/thread", threads, threads);
        round.metric("wake", micros(waking), "µs/thread", sum, due);
        let pause = longest_pause(&wakings, standing).as_secs_f64() * 1e3;
        round.metric("pause", pause, "ms", threads, threads);
        Ok(())
    }))
}

/// The steps of a frame: what it computes on the way down, the last of which it hands on.
fn steps_down(depth: u64, x: u64) -> [u64; 4] {
    let a = x.wrapping_mul(6364136223846793005).wrapping_add(depth);
    let b = a ^ (a >> 29);
    let c = b.wrapping_mul(3).wrapping_add(depth);
    [a, b, c, c ^ (c << 7)]
}

fn step_up(r: u64, [a, b, c, d]: [u64; 4]) -> u64 {
    let mixed = (r ^ a).wrapping_mul(31).wrapping_add(b) ^ c;
    mixed.wrapping_mul(31).wrapping_add(d)
}

/// A call of an async function that calls itself needs a box a frame: a future holds the futures it
/// awaits, and one that held itself would have no size.
async fn descend(depth: u64, x: u64, bottom: &Place) -> u64 {
    if depth == 0 {
        bottom.stay().await;
        return x;
    }
    let down = steps_down(depth, x);
    let r = Box::pin(descend(depth - 1, down[3], bottom)).await;
    step_up(r, down)
}

/// As `descend`, without waiting.
fn descend_alone(depth: u64, x: u64) -> u64 {
    if depth == 0 {
        return x;
    }
    let down = steps_down(depth, x);
    step_up(descend_alone(depth - 1, down[3]), down)
}

async fn sink(threads: u64, depth: u64, bottom: &Arc<Place>) -> (Duration, Vec<JoinHandle<u64>>) {
    let spawn = |number| {
        let bottom = bottom.clone();
        tokio::spawn(async move { descend(depth, number, &bottom).await })
    };
    let start = Instant::now();
    let handles = (0..threads).map(spawn).collect();
    bottom.all_here().await;
    (start.elapsed(), handles)
}

async fn wake(handles: Vec<JoinHandle<u64>>, bottom: &Place) -> Result<(Duration, u64), JoinError> {
    let start = Instant::now();
    bottom.wake_all();
    let sum = joined_sum(handles).await?;
    Ok((start.elapsed(), sum))
}

const PERIOD: Duration = Duration::from_millis(1);

/// A task that sleeps again and again, and keeps the times when it woke.
struct Ticker {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Vec<Instant>>,
}

impl Ticker {
    fn start(runtime: &Runtime) -> Ticker {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = runtime.spawn(async move {
            let mut wakings = vec![Instant::now()];
            while !stopped.load(SeqCst) {
                sleep(PERIOD).await;
                wakings.push(Instant::now());
            }
            wakings
        });
        Ticker { stop, task }
    }

    async fn stop(self) -> Result<Vec<Instant>, JoinError> {
        self.stop.store(true, SeqCst);
        self.task.await
    }
}

/// By how much the longest time from one waking to the next is longer than it was to be; the time
/// during which the peer stood still does not count.
fn longest_pause(wakings: &[Instant], (from, until): (Instant, Instant)) -> Duration {
    let lateness = wakings.windows(2).map(|pair| {
        let stood = until
            .min(pair[1])
            .saturating_duration_since(from.max(pair[0]));
        (pair[1] - pair[0]).saturating_sub(PERIOD + stood)
    });
    lateness.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every language computes this number; another one would mean that it does other work.
    #[test]
    fn the_recursion_is_the_agreed_one() {
        let sum = (0..3).map(|x| descend_alone(4, x));
        assert_eq!(sum.fold(0, u64::wrapping_add), 4925849940284199681);
    }

    #[test]
    fn standing_still_is_no_pause() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let wakings = [at(0), at(3), at(10), at(12)];
        let pause = |from, until| longest_pause(&wakings, (at(from), at(until)));
        assert_eq!(pause(20, 30), Duration::from_millis(6));
        assert_eq!(pause(4, 9), Duration::from_millis(2));
        assert_eq!(pause(2, 12), Duration::from_millis(1));
        assert_eq!(pause(0, 12), Duration::ZERO);
    }
}
