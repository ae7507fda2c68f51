//! `scope`: tasks in a `JoinSet`, which joins all of them, or aborts those that are left.

use crate::place::Place;
use anyhow::{Context, Result, ensure};
use peer_protocol::{LONG, Params, Scopes, Workload};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

pub fn scope(runtime: Runtime, params: &Params) -> Result<Workload> {
    let scopes = Scopes::of(params)?;
    Ok(Box::new(move |round| {
        let two = runtime.block_on(runtime.spawn(join_all(scopes.two, 2)))??;
        scopes.report_two(round, two);
        let many = runtime.block_on(runtime.spawn(join_all(scopes.many, scopes.forks)))??;
        scopes.report_many(round, many);
        let first = runtime.block_on(runtime.spawn(first_of(scopes.first, scopes.tasks)))??;
        scopes.report_first(round, first);
        Ok(())
    }))
}

/// Scopes of this many tasks, all of which are joined; the sum of what they returned.
async fn join_all(scopes: u64, forks: u64) -> Result<(Duration, u64), JoinError> {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        let mut set = JoinSet::new();
        for number in scope * forks..(scope + 1) * forks {
            set.spawn(async move { number });
        }
        while let Some(number) = set.join_next().await {
            sum += number?;
        }
    }
    Ok((start.elapsed(), sum))
}

/// Scopes of this many tasks, all but one of which are aborted; how many ended as they must.
async fn first_of(scopes: u64, tasks: u64) -> Result<(Duration, u64)> {
    let mut ended = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        let waiting = Place::for_tasks(tasks - 1);
        let mut set = JoinSet::new();
        for _ in 1..tasks {
            let waiting = waiting.clone();
            set.spawn(async move {
                waiting.arrive();
                sleep(LONG).await;
                u64::MAX
            });
        }
        waiting.all_here().await;
        set.spawn(async move { scope });
        let first = set.join_next().await.context("the set is empty")??;
        ensure!(first == scope, "the first result is {first}, not {scope}");
        ended += 1;
        set.abort_all();
        while let Some(rest) = set.join_next().await {
            ended += u64::from(rest.is_err_and(|error| error.is_cancelled()));
        }
    }
    Ok((start.elapsed(), ended))
}
