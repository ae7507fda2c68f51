//! Starting and joining threads, with errors in place of panics.

use crate::thread::{Builder, JoinHandle};
use anyhow::{Context, Result, anyhow};

/// Starts the thread of this number.
pub fn spawn<T: Send + 'static>(
    number: u64,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let spawned = Builder::new().spawn(body);
    spawned.with_context(|| format!("cannot start thread {number}"))
}

/// Starts this many threads, each of which runs `body` with its number.
pub fn spawn_all<T: Send + 'static>(
    count: u64,
    body: impl FnOnce(u64) -> T + Clone + Send + 'static,
) -> Result<Vec<JoinHandle<T>>> {
    let mut threads = Vec::with_capacity(count as usize);
    for number in 0..count {
        let body = body.clone();
        threads.push(spawn(number, move || body(number))?);
    }
    Ok(threads)
}

/// Waits for a thread's result.
pub fn join<T>(thread: JoinHandle<T>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread has panicked"))
}

/// Waits for the threads' results one after the other.
pub fn join_all<T>(threads: Vec<JoinHandle<T>>) -> impl Iterator<Item = Result<T>> {
    threads.into_iter().map(join)
}

/// Gives what `body` returns when a thread runs it.
pub fn inside<T: Send + 'static>(body: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    join(spawn(0, body)?)?
}
