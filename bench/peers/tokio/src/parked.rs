//! `parked`: many tasks that wait, to be looked at from outside.

use crate::place::Place;
use crate::tasks::joined_sum;
use anyhow::Result;
use peer_protocol::{Answer, Params, Workload, nanos_per};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::{JoinError, JoinHandle};

pub fn parked(runtime: Runtime, params: &Params) -> Result<Workload> {
    let step = params.get("step")?;
    Ok(Box::new(move |round| {
        let mut parked = Parked::default();
        let mut answer = Answer::More(step);
        while let Answer::More(count) = answer {
            runtime.block_on(parked.grow(count));
            (answer, _) = round.at("parked", parked.tasks.len() as u64)?;
        }
        let (count, spawning) = (parked.tasks.len() as u64, parked.spawning);
        let (waking, woken) = runtime.block_on(parked.wake())?;
        let value = nanos_per(spawning, count);
        round.metric("spawn", value, "ns/thread", count, count);
        round.metric("wake", nanos_per(waking, count), "ns/thread", woken, count);
        Ok(())
    }))
}

#[derive(Default)]
struct Parked {
    tasks: Vec<JoinHandle<u64>>,
    /// One for each time that it grew.
    places: Vec<Arc<Place>>,
    spawning: Duration,
}

impl Parked {
    async fn grow(&mut self, count: u64) {
        let place = Place::for_tasks(count);
        let start = Instant::now();
        for _ in 0..count {
            let place = place.clone();
            self.tasks.push(tokio::spawn(async move {
                place.stay().await;
                1
            }));
        }
        place.all_here().await;
        self.spawning += start.elapsed();
        self.places.push(place);
    }

    async fn wake(self) -> Result<(Duration, u64), JoinError> {
        let start = Instant::now();
        for place in &self.places {
            place.wake_all();
        }
        let woken = joined_sum(self.tasks).await?;
        Ok((start.elapsed(), woken))
    }
}
