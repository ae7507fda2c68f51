//! `yield` and `pingpong`: two coroutines take turns.

use crate::coroutines::{end_after_park, inside, joined};
use anyhow::Result;
use may::sync::{Barrier, mpsc};
use may::{coroutine, go};
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub fn yielding(params: &Params) -> Result<Workload> {
    let yields = params.get("yields")?;
    Ok(Box::new(move |round| {
        let both = Arc::new((Barrier::new(2), AtomicU64::new(0)));
        let runs = [1, 2].map(|me| {
            let both = both.clone();
            go!(move || yield_often(&both.0, &both.1, me, yields))
        });
        let [one, other] = runs.map(joined);
        // The later one to come to the barrier let both go.
        let elapsed = one.end.max(other.end) - one.start.max(other.start);
        let (calls, switches) = (one.calls + other.calls, one.switches + other.switches);
        round.metric(
            "yield",
            nanos_per(elapsed, calls),
            "ns/yield",
            calls,
            2 * yields,
        );
        match switches {
            0 => round.skip("switch", "no call let the other run"),
            _ => round.metric(
                "switch",
                nanos_per(elapsed, switches),
                "ns/switch",
                switches,
                switches,
            ),
        }
        Ok(())
    }))
}

struct Yields {
    start: Instant,
    end: Instant,
    calls: u64,
    /// Calls after which the other had run.
    switches: u64,
}

fn yield_often(both: &Barrier, last: &AtomicU64, me: u64, yields: u64) -> Yields {
    let start = Instant::now();
    both.wait();
    let (mut calls, mut switches) = (0, 0);
    last.store(me, SeqCst);
    for _ in 0..yields {
        coroutine::yield_now();
        calls += 1;
        if last.load(SeqCst) != me {
            last.store(me, SeqCst);
            switches += 1;
        }
    }
    Yields {
        start,
        end: Instant::now(),
        calls,
        switches,
    }
}

pub fn pingpong(params: &Params) -> Result<Workload> {
    let trips = params.get("trips")?;
    Ok(Box::new(move |round| {
        let mut report = |metric, (elapsed, number)| {
            let value = nanos_per(elapsed, trips);
            round.metric(metric, value, "ns/round trip", number, 2 * trips);
        };
        report("channel", inside(move || over_channels(trips)));
        report("park", inside(move || over_park(trips)));
        Ok(())
    }))
}

fn over_channels(trips: u64) -> (Duration, u64) {
    let (there, from_here) = mpsc::channel();
    let (back, from_there) = mpsc::channel();
    let other = go!(move || {
        for number in from_here {
            back.send(number + 1).expect("the receiver waits");
        }
    });
    let start = Instant::now();
    let mut number = 0;
    for _ in 0..trips {
        there.send(number + 1).expect("the receiver waits");
        number = from_there.recv().expect("the sender is there");
    }
    let elapsed = start.elapsed();
    drop(there);
    joined(other);
    (elapsed, number)
}

/// The number says whose turn it is: this one's when it is even, the other's when it is odd.
fn over_park(trips: u64) -> (Duration, u64) {
    let number = Arc::new(AtomicU64::new(0));
    let (here, shared) = (coroutine::current(), number.clone());
    let other = go!(move || {
        for trip in 0..trips {
            while shared.load(SeqCst) == 2 * trip {
                coroutine::park();
            }
            shared.fetch_add(1, SeqCst);
            here.unpark();
        }
        end_after_park();
    });
    let start = Instant::now();
    for trip in 0..trips {
        number.fetch_add(1, SeqCst);
        other.coroutine().unpark();
        while number.load(SeqCst) == 2 * trip + 1 {
            coroutine::park();
        }
    }
    let elapsed = start.elapsed();
    joined(other);
    (elapsed, number.load(SeqCst))
}
