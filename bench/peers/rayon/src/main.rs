//! Benchmark peer: `rayon::scope`, on rayon's global pool as it comes.
//!
//! Its tasks are no threads: they run to their end on a worker of the pool, and may not wait. So
//! this peer has no other workload than `scope`.

use anyhow::Result;
use peer_protocol::{Params, Scopes, Workload};
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    peer_protocol::run("rayon", env!("MEASURED"), find)
}

fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
    (name == "scope").then(|| Scopes::of(params).map(workload))
}

fn workload(scopes: Scopes) -> Workload {
    Box::new(move |round| {
        scopes.report_two(round, inside(|| two(scopes.two)));
        scopes.report_many(round, inside(|| many(scopes.many, scopes.forks)));
        round.skip("first", "a task of rayon's cannot wait or be interrupted");
        Ok(())
    })
}

/// Does the work on a worker of the pool, and waits for it.
fn inside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}

/// Scopes of two tasks; the sum of what they came to.
fn two(scopes: u64) -> (Duration, u64) {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        let (mut even, mut odd) = (0, 0);
        rayon::scope(|s| {
            s.spawn(|_| even = 2 * scope);
            s.spawn(|_| odd = 2 * scope + 1);
        });
        sum += even + odd;
    }
    (start.elapsed(), sum)
}

/// Scopes of this many tasks; the sum of what they came to.
fn many(scopes: u64, forks: u64) -> (Duration, u64) {
    let mut sum = 0;
    let start = Instant::now();
    for scope in 0..scopes {
        let mut numbers = vec![0; forks as usize];
        rayon::scope(|s| {
            for (place, number) in numbers.iter_mut().zip(scope * forks..) {
                s.spawn(move |_| *place = number);
            }
        });
        sum += numbers.iter().sum::<u64>();
    }
    (start.elapsed(), sum)
}
