//! `scope`: coroutines in a scope, which waits for them; and cancelled ones.

use crate::workloads::crowd::Crowd;
use crate::workloads::start::inside;
use anyhow::{Result, anyhow};
use may::coroutine::{self, JoinHandle};
use may::go;
use may::sync::mpsc;
use peer_protocol::{LONG, Params, Scopes, Workload};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub fn scope(params: &Params) -> Result<Workload> {
    let scopes = Scopes::of(params)?;
    Ok(Box::new(move |round| {
        scopes.report_two(round, inside(move || two(scopes.two))?);
        scopes.report_many(round, inside(move || many(scopes.many, scopes.forks))?);
        scopes.report_first(round, inside(move || first_of(scopes.first, scopes.tasks))?);
        Ok(())
    }))
}

/// Scopes of two coroutines; the sum of what they returned.
fn two(scopes: u64) -> Result<(Duration, u64)> {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        sum += coroutine::scope(|s| {
            let even = go!(s, move || 2 * scope);
            let odd = go!(s, move || 2 * scope + 1);
            even.join() + odd.join()
        });
    }
    Ok((start.elapsed(), sum))
}

/// Scopes of this many coroutines; the sum of what they returned.
fn many(scopes: u64, forks: u64) -> Result<(Duration, u64)> {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        sum += coroutine::scope(|s| {
            let numbers = scope * forks..(scope + 1) * forks;
            let forked: Vec<_> = numbers.map(|number| go!(s, move || number)).collect();
            forked.into_iter().map(|fork| fork.join()).sum::<u64>()
        });
    }
    Ok((start.elapsed(), sum))
}

/// This many coroutines at a time, all but one of which are cancelled; how many ended as they must.
///
/// Without a scope: may's ends in a panic when one of its coroutines has been cancelled.
fn first_of(scopes: u64, tasks: u64) -> Result<(Duration, u64)> {
    let mut ended = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        let (sender, first) = mpsc::channel();
        let crowd = Crowd::of(tasks - 1);
        let waiting: Vec<_> = (1..tasks).map(|_| wait_long(&crowd)).collect();
        crowd.watch();
        let winner = go!(move || sender.send(scope).is_ok());
        ended += u64::from(first.recv() == Ok(scope));
        for task in &waiting {
            // SAFETY: a cancelled coroutine unwinds where it waits, and these own nothing that
            // minds.
            unsafe { task.coroutine().cancel() };
        }
        ended += waiting
            .into_iter()
            .filter_map(|task| task.join().err())
            .count() as u64;
        winner
            .join()
            .map_err(|_| anyhow!("a coroutine has panicked"))?;
    }
    Ok((start.elapsed(), ended))
}

fn wait_long(crowd: &Arc<Crowd>) -> JoinHandle<()> {
    let crowd = Arc::clone(crowd);
    go!(move || {
        crowd.arrive();
        coroutine::sleep(LONG);
    })
}
