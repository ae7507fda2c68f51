//! Two virtual threads on one carrier, yielding to each other.

use crate::place::Place;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Result, ensure};
use pirn::thread;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub struct YieldTwo;

impl Workload for YieldTwo {
    fn name(&self) -> &'static str {
        "yield_two"
    }

    fn about(&self) -> &'static str {
        "two virtual threads on one carrier yield to each other"
    }

    /// On two carriers neither would have anyone to yield to.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[("PIRN_PARALLELISM", "1")]
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let each = size.pick(1_000_000, 1000);
        let (elapsed, switches) = Place::Virtual.run(move || Ok(yield_to_each_other(each)))?;
        let yields = 2 * each;
        if size == Size::Full {
            let enough = switches >= yields / 10 * 9;
            ensure!(
                enough,
                "only {switches} of {yields} yields switched to the other thread"
            );
        }
        Ok(vec![
            Sample::nanos("yield", elapsed, yields, "yield").goals(&[30.0]),
            Sample::nanos("switch seen", elapsed, switches.max(1), "switch"),
        ])
    }
}

/// The time taken, and how many of the yields let the other one run.
fn yield_to_each_other(each: usize) -> (Duration, usize) {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let start = Instant::now();
    let threads = [1, 2].map(|me| thread::spawn(move || yields(me, each, &LAST)));
    let switches = threads.map(|thread| thread.join().expect("the thread only yields"));
    (start.elapsed(), switches.iter().sum())
}

/// Yields, and counts how often somebody else has run meanwhile.
fn yields(me: usize, count: usize, last: &AtomicUsize) -> usize {
    let mut switches = 0;
    for _ in 0..count {
        // Relaxed: a count, which orders nothing; the two run on one carrier.
        last.store(me, Ordering::Relaxed);
        thread::yield_now();
        switches += usize::from(last.load(Ordering::Relaxed) != me);
    }
    switches
}
