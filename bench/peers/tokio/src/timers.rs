//! `timers`: waits with a time limit that is never reached.

use crate::place::Place;
use crate::tasks::joined_sum;
use crate::turns::Turns;
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(600);

pub fn timers(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (threads, waits) = (params.get("threads")?, params.get("waits")?);
    Ok(Box::new(move |round| {
        let place = Place::for_tasks(threads);
        let (arming, handles) = runtime.block_on(arm(threads, &place));
        let (passing, turns) = runtime.block_on(runtime.spawn(pass_a_turn(waits)))??;
        let (cancelling, woken) = runtime.block_on(cancel(handles, &place))?;

        let value = nanos_per(arming, threads);
        round.metric("arm", value, "ns/timer", threads, threads);
        let value = nanos_per(passing, 2 * waits);
        round.metric("rearm", value, "ns/timed wait", turns, 2 * waits);
        let value = nanos_per(cancelling, threads);
        round.metric("cancel", value, "ns/timer", woken, threads);
        Ok(())
    }))
}

/// The tasks return 1 if they were woken, 0 if their time was up.
async fn arm(threads: u64, place: &Arc<Place>) -> (Duration, Vec<JoinHandle<u64>>) {
    let spawn = |number: u64| {
        let place = place.clone();
        let limit = LIMIT + Duration::from_millis(number % 1000);
        tokio::spawn(async move { u64::from(timeout(limit, place.stay()).await.is_ok()) })
    };
    let start = Instant::now();
    let handles = (0..threads).map(spawn).collect();
    place.all_here().await;
    (start.elapsed(), handles)
}

/// One of the two tasks; it spawns the other. Gives the number of turns taken.
async fn pass_a_turn(waits: u64) -> Result<(Duration, u64), JoinError> {
    let turns = Arc::new(Turns::default());
    let start = Instant::now();
    let other = tokio::spawn({
        let turns = turns.clone();
        async move { take_turns(1, waits, &turns).await }
    });
    let taken = take_turns(0, waits, &turns).await + other.await?;
    Ok((start.elapsed(), taken))
}

async fn take_turns(player: usize, waits: u64, turns: &Turns) -> u64 {
    let mut taken = 0;
    for _ in 0..waits {
        let Ok(number) = timeout(LIMIT, turns.wait(player)).await else {
            break;
        };
        turns.pass(player, number);
        taken += 1;
    }
    taken
}

async fn cancel(
    handles: Vec<JoinHandle<u64>>,
    place: &Place,
) -> Result<(Duration, u64), JoinError> {
    let start = Instant::now();
    place.wake_all();
    let woken = joined_sum(handles).await?;
    Ok((start.elapsed(), woken))
}
