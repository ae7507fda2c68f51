//! Two virtual threads take turns with nothing but `park` and `unpark`.

use crate::place::Place;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Result, ensure};
use pirn::thread::{self, Thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub struct PingpongPark;

impl Workload for PingpongPark {
    fn name(&self) -> &'static str {
        "pingpong_park"
    }

    fn about(&self) -> &'static str {
        "two virtual threads, there and back with park and unpark"
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let count = size.pick(300_000, 1000);
        let elapsed = Place::Virtual.run(move || ping(count))?;
        Ok(vec![
            Sample::nanos("there and back", elapsed, count, "round trip").goals(&[120.0]),
        ])
    }
}

/// Counts the turns. It is the first thread's turn while even, the second's while odd.
type Turn = Arc<AtomicUsize>;

fn ping(count: usize) -> Result<Duration> {
    let turn = Turn::default();
    let (pong_turn, me) = (turn.clone(), thread::current());
    let pong = thread::spawn(move || take_turns(&pong_turn, 1, count, &me));

    let start = Instant::now();
    take_turns(&turn, 0, count, pong.thread());
    wait_for(&turn, 2 * count);
    let elapsed = start.elapsed();

    pong.join().expect("the other thread only takes turns");
    let turns = turn.load(Ordering::SeqCst);
    ensure!(
        turns == 2 * count,
        "{turns} turns were taken, not {}",
        2 * count
    );
    Ok(elapsed)
}

/// Takes every second turn, beginning with `first`.
fn take_turns(turn: &Turn, first: usize, count: usize, other: &Thread) {
    for mine in (first..).step_by(2).take(count) {
        wait_for(turn, mine);
        // Release: pairs with the Acquire in `wait_for`, as a real hand-over of data would need.
        turn.store(mine + 1, Ordering::Release);
        other.unpark();
    }
}

fn wait_for(turn: &Turn, mine: usize) {
    // Acquire: pairs with the Release in `take_turns`.
    while turn.load(Ordering::Acquire) != mine {
        thread::park();
    }
}
