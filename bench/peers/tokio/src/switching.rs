//! `yield` and `pingpong`: two tasks that run in turn.

use crate::place::Place;
use crate::turns::Turns;
use anyhow::{Context, Result};
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::{JoinError, yield_now};

pub fn yielding(runtime: Runtime, params: &Params) -> Result<Workload> {
    let yields = params.get("yields")?;
    Ok(Box::new(move |round| {
        let (time, counts) = runtime.block_on(yield_in_two(yields))?;
        let (calls, switches) = (counts.calls, counts.switches);
        round.metric(
            "yield",
            nanos_per(time, calls),
            "ns/yield",
            calls,
            2 * yields,
        );
        if switches == 0 {
            round.skip("switch", "no call let the other run");
        } else {
            let value = nanos_per(time, switches);
            round.metric("switch", value, "ns/switch", switches, switches);
        }
        Ok(())
    }))
}

#[derive(Default)]
struct Counts {
    calls: u64,
    /// The calls after which the other had run.
    switches: u64,
}

async fn yield_in_two(yields: u64) -> Result<(Duration, Counts), JoinError> {
    let (gate, ran_last) = (Place::for_tasks(2), Arc::new(AtomicU64::new(0)));
    let yielders = [1, 2].map(|me| {
        let (gate, ran_last) = (gate.clone(), ran_last.clone());
        tokio::spawn(async move {
            gate.stay().await;
            yield_often(yields, me, &ran_last).await
        })
    });
    gate.all_here().await;
    let start = Instant::now();
    gate.wake_all();
    let mut both = Counts::default();
    for yielder in yielders {
        let counts = yielder.await?;
        both.calls += counts.calls;
        both.switches += counts.switches;
    }
    Ok((start.elapsed(), both))
}

async fn yield_often(yields: u64, me: u64, ran_last: &AtomicU64) -> Counts {
    // Relaxed, here and below: the word is a mark that nothing else hangs on; it pairs with
    // nothing.
    ran_last.store(me, Ordering::Relaxed);
    let mut counts = Counts::default();
    for _ in 0..yields {
        yield_now().await;
        counts.calls += 1;
        if ran_last.load(Ordering::Relaxed) != me {
            ran_last.store(me, Ordering::Relaxed);
            counts.switches += 1;
        }
    }
    counts
}

pub fn pingpong(runtime: Runtime, params: &Params) -> Result<Workload> {
    let trips = params.get("trips")?;
    Ok(Box::new(move |round| {
        let (time, number) = runtime.block_on(runtime.spawn(over_channels(trips)))??;
        let value = nanos_per(time, trips);
        round.metric("channel", value, "ns/round trip", number, 2 * trips);

        let (time, number) = runtime.block_on(runtime.spawn(over_notify(trips)))??;
        let value = nanos_per(time, trips);
        round.metric("park", value, "ns/round trip", number, 2 * trips);
        Ok(())
    }))
}

/// One of the two tasks; it spawns the other.
async fn over_channels(trips: u64) -> Result<(Duration, u64)> {
    let (there, mut arriving) = mpsc::channel::<u64>(1);
    let (back, mut returning) = mpsc::channel::<u64>(1);
    let other = tokio::spawn(async move {
        while let Some(number) = arriving.recv().await {
            if back.send(number + 1).await.is_err() {
                break;
            }
        }
    });
    let mut number = 0;
    let start = Instant::now();
    for _ in 0..trips {
        there.send(number + 1).await?;
        number = returning.recv().await.context("the other task is gone")?;
    }
    let time = start.elapsed();
    drop(there);
    other.await?;
    Ok((time, number))
}

/// As `over_channels`. tokio has no park; `Notify` is what its own channels would be built with.
async fn over_notify(trips: u64) -> Result<(Duration, u64), JoinError> {
    let turns = Arc::new(Turns::default());
    let start = Instant::now();
    let other = tokio::spawn({
        let turns = turns.clone();
        async move { play(1, trips, &turns).await }
    });
    play(0, trips, &turns).await;
    other.await?;
    Ok((start.elapsed(), turns.number()))
}

async fn play(player: usize, trips: u64, turns: &Turns) {
    for _ in 0..trips {
        let number = turns.wait(player).await;
        turns.pass(player, number);
    }
}
