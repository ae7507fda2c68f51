//! `deep`: coroutines that wait at the bottom of a deep recursion, and a ticker beside them.

use crate::coroutines::{Arrivals, inside, joined, park_until, wake_all};
use anyhow::Result;
use may::coroutine::{JoinHandle, sleep};
use may::go;
use may::sync::Mutex;
use peer_protocol::{Params, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A frame of `descend`, return address included, as compiled by rustc 1.95 for x86-64.
const FRAME: usize = 64;
/// What waiting at the bottom and the coroutine itself take of the stack, amply.
const OTHER: usize = 16 << 10;

pub fn deep(params: &Params) -> Result<Workload> {
    let (threads, depth) = (params.count("threads")?, params.get("depth")?);
    grow_stacks(depth as usize * FRAME + OTHER);
    let due = inside(move || {
        let bottoms = (0..threads as u64).map(|number| descend(depth, number, &|| {}));
        bottoms.fold(0, u64::wrapping_add)
    });
    Ok(Box::new(move |round| {
        let still = Arc::new(Mutex::new(Standstill::default()));
        let ticker = Ticker::start(&still);
        let (sinking, handles, released) = sink(threads, depth);

        still.lock().unwrap().from = Some(Instant::now());
        round.at("deep", threads as u64)?;
        still.lock().unwrap().until = Some(Instant::now());

        let (waking, sum) = wake_all(handles, &released);
        let pause = ticker.stop();
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / threads as f64;
        let count = threads as u64;
        round.metric("sink", micros(sinking), "µs/thread", count, count);
        round.metric("wake", micros(waking), "µs/thread", sum, due);
        round.metric("pause", pause.as_secs_f64() * 1e3, "ms", count, count);
        Ok(())
    }))
}

/// The default, 32 KiB, where that many bytes fit in it, else the least multiple of it that holds
/// them. What may is told before it starts its first coroutine is the size for all.
fn grow_stacks(bytes: usize) {
    let default_words = may::config().get_stack_size();
    let words = bytes.div_ceil(size_of::<usize>());
    may::config().set_stack_size(words.next_multiple_of(default_words));
}

#[inline(never)]
fn descend(depth: u64, x: u64, at_bottom: &impl Fn()) -> u64 {
    if depth == 0 {
        at_bottom();
        return x;
    }
    let a = x.wrapping_mul(6364136223846793005).wrapping_add(depth);
    let b = a ^ (a >> 29);
    let c = b.wrapping_mul(3).wrapping_add(depth);
    let d = c ^ (c << 7);
    let r = descend(depth - 1, d, at_bottom);
    let e = (r ^ a).wrapping_mul(31).wrapping_add(b) ^ c;
    e.wrapping_mul(31).wrapping_add(d)
}

type Sunk = (Duration, Vec<JoinHandle<u64>>, Arc<AtomicBool>);

/// Gives the time until all wait at the bottom, their handles, and what is set before they wake.
fn sink(threads: usize, depth: u64) -> Sunk {
    let released = Arc::new(AtomicBool::new(false));
    let arrivals = Arc::new(Arrivals::expect(threads));
    let spawn = |number| {
        let (arrivals, released) = (arrivals.clone(), released.clone());
        let wait = move || {
            arrivals.arrive();
            park_until(&released);
        };
        go!(move || descend(depth, number, &wait))
    };
    let start = Instant::now();
    let handles = (0..threads as u64).map(spawn).collect();
    arrivals.wait();
    (start.elapsed(), handles, released)
}

/// When the peer stood still to be looked at.
#[derive(Default)]
struct Standstill {
    from: Option<Instant>,
    until: Option<Instant>,
}

impl Standstill {
    /// For how long it stood still between two instants.
    fn between(&self, start: Instant, end: Instant) -> Duration {
        let from = self.from.map_or(end, |from| from.max(start));
        let until = self.until.map_or(end, |until| until.min(end));
        until.saturating_duration_since(from)
    }
}

/// A coroutine that sleeps again and again, and finds out how late it wakes.
struct Ticker {
    stop: Arc<AtomicBool>,
    coroutine: JoinHandle<Duration>,
}

impl Ticker {
    fn start(still: &Arc<Mutex<Standstill>>) -> Ticker {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, still) = (stop.clone(), still.clone());
        let coroutine = go!(move || tick(&stopped, &still));
        Ticker { stop, coroutine }
    }

    /// Gives the ticker's longest lateness.
    fn stop(self) -> Duration {
        self.stop.store(true, SeqCst);
        joined(self.coroutine)
    }
}

fn tick(stop: &AtomicBool, still: &Mutex<Standstill>) -> Duration {
    const PERIOD: Duration = Duration::from_millis(1);
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    while !stop.load(SeqCst) {
        sleep(PERIOD);
        let now = Instant::now();
        let stood = still.lock().unwrap().between(last, now);
        longest = longest.max((now - last).saturating_sub(PERIOD + stood));
        last = now;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_of_a_standstill_that_overlaps_counts() {
        let zero = Instant::now();
        let at = |second| zero + Duration::from_secs(second);
        let seconds = |from: Option<u64>, until: Option<u64>, start, end| {
            let (from, until) = (from.map(at), until.map(at));
            let still = Standstill { from, until };
            still.between(at(start), at(end)).as_secs()
        };
        assert_eq!(seconds(None, None, 1, 5), 0);
        assert_eq!(seconds(Some(3), None, 1, 5), 2);
        assert_eq!(seconds(Some(3), None, 4, 5), 1);
        assert_eq!(seconds(Some(2), Some(4), 1, 5), 2);
        assert_eq!(seconds(Some(2), Some(4), 3, 5), 1);
        assert_eq!(seconds(Some(2), Some(3), 4, 5), 0);
    }
}
