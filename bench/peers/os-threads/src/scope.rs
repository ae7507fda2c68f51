//! `scope`: `std::thread::scope`.

use crate::workloads::start::inside;
use anyhow::{Context, Result, anyhow};
use peer_protocol::{Params, Scopes, Workload};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let scopes = Scopes::of(params)?;
    Ok(Box::new(move |round| {
        scopes.report_two(round, inside(move || two(scopes.two))?);
        scopes.report_many(round, inside(move || many(scopes.many, scopes.forks))?);
        round.skip("first", "an OS thread cannot be interrupted");
        Ok(())
    }))
}

/// Scopes of two threads; the sum of what they returned.
fn two(scopes: u64) -> Result<(Duration, u64)> {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        sum += thread::scope(|s| {
            let even = fork(s, 2 * scope)?;
            let odd = fork(s, 2 * scope + 1)?;
            anyhow::Ok(join(even)? + join(odd)?)
        })?;
    }
    Ok((start.elapsed(), sum))
}

/// Scopes of this many threads; the sum of what they returned.
fn many(scopes: u64, forks: u64) -> Result<(Duration, u64)> {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        sum += thread::scope(|s| {
            let numbers = scope * forks..(scope + 1) * forks;
            let forked: Vec<_> = numbers.map(|n| fork(s, n)).collect::<Result<_>>()?;
            forked.into_iter().map(join).sum::<Result<u64>>()
        })?;
    }
    Ok((start.elapsed(), sum))
}

/// A thread that returns its number.
fn fork<'scope>(
    scope: &'scope Scope<'scope, '_>,
    number: u64,
) -> Result<ScopedJoinHandle<'scope, u64>> {
    let forked = Builder::new().spawn_scoped(scope, move || number);
    forked.with_context(|| format!("cannot start thread {number}"))
}

fn join(thread: ScopedJoinHandle<u64>) -> Result<u64> {
    thread.join().map_err(|_| anyhow!("a thread has panicked"))
}
