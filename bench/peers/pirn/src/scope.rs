//! `scope`: `pirn::scope::open`.

use crate::workloads::crowd::Crowd;
use crate::workloads::start::inside;
use anyhow::{Result, ensure};
use peer_protocol::{LONG, Params, Scopes, Workload};
use pirn::scope::{any_successful, open_with};
use pirn::thread::{Interrupted, sleep_interruptible};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let scopes = Scopes::of(params)?;
    Ok(Box::new(move |round| {
        scopes.report_two(round, inside(move || two(scopes.two))?);
        scopes.report_many(round, inside(move || many(scopes.many, scopes.forks))?);
        scopes.report_first(round, inside(move || first(scopes.first, scopes.tasks))?);
        Ok(())
    }))
}

/// Scopes of two subtasks; the sum of what they returned.
fn two(scopes: u64) -> Result<(Duration, u64)> {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        sum += pirn::scope::open(|s| {
            let even = s.fork(move || Ok::<_, Infallible>(2 * scope));
            let odd = s.fork(move || Ok(2 * scope + 1));
            let all = s.join()?;
            Ok(even.get(&all) + odd.get(&all))
        })?;
    }
    Ok((start.elapsed(), sum))
}

/// Scopes of this many subtasks; the sum of what they returned.
fn many(scopes: u64, forks: u64) -> Result<(Duration, u64)> {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        sum += pirn::scope::open(|s| {
            let numbers = scope * forks..(scope + 1) * forks;
            let fork = |number| s.fork(move || Ok::<_, Infallible>(number));
            let forked: Vec<_> = numbers.map(fork).collect();
            let all = s.join()?;
            Ok(forked.into_iter().map(|fork| fork.get(&all)).sum::<u64>())
        })?;
    }
    Ok((start.elapsed(), sum))
}

/// Scopes of this many subtasks, of which the first result is taken; how many ended as they must.
fn first(scopes: u64, tasks: u64) -> Result<(Duration, u64)> {
    let ended = AtomicU64::new(0);
    let start = Instant::now();
    for scope in 0..scopes {
        let crowd = Crowd::of(tasks - 1);
        let first = open_with(any_successful(), |s| {
            for _ in 1..tasks {
                s.fork(|| wait_long(&crowd, &ended));
            }
            crowd.watch();
            s.fork(|| Ok(scope));
            Ok(s.join()?.into_output())
        })?;
        ensure!(first == scope, "the first result is {first}, not {scope}");
        ended.fetch_add(1, Ordering::SeqCst);
    }
    Ok((start.elapsed(), ended.load(Ordering::SeqCst)))
}

fn wait_long(crowd: &Crowd, ended: &AtomicU64) -> Result<u64, Interrupted> {
    crowd.arrive();
    match sleep_interruptible(LONG) {
        Ok(()) => Ok(u64::MAX),
        Err(interrupted) => {
            ended.fetch_add(1, Ordering::SeqCst);
            Err(interrupted)
        }
    }
}
