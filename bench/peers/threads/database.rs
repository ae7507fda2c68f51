//! `database`: many threads, few connections to a database, which a semaphore gives out.

use super::start::{join_all, spawn_all};
use crate::sync::{Condvar, Mutex};
use crate::thread;
use anyhow::{Result, ensure};
use peer_protocol::{Params, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let (tasks, permits) = (params.get("tasks")?, params.get("permits")?);
    let time = Duration::from_millis(params.get("ms")?);
    Ok(Box::new(move |round| {
        let database = Arc::new(Database {
            semaphore: Semaphore::new(permits),
            permits,
            connections: AtomicU64::new(0),
        });
        let start = Instant::now();
        let threads = spawn_all(tasks, move |_| database.query(time))?;
        let queries = join_all(threads)
            .map(Result::flatten)
            .sum::<Result<u64>>()?;
        let wall = start.elapsed().as_secs_f64();
        round.metric("wall", wall, "s", queries, tasks);
        Ok(())
    }))
}

struct Database {
    semaphore: Semaphore,
    permits: u64,
    /// In use now.
    connections: AtomicU64,
}

impl Database {
    /// Makes a query that takes so long; gives the number of queries made.
    fn query(&self, time: Duration) -> Result<u64> {
        self.semaphore.acquire();
        let connections = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
        thread::sleep(time);
        self.connections.fetch_sub(1, Ordering::SeqCst);
        self.semaphore.release();
        let permits = self.permits;
        ensure!(
            connections <= permits,
            "{connections} hold one of the {permits} permits"
        );
        Ok(1)
    }
}

/// A counting semaphore, which `std` does not have.
struct Semaphore {
    free: Mutex<u64>,
    freed: Condvar,
}

impl Semaphore {
    fn new(permits: u64) -> Semaphore {
        Semaphore {
            free: Mutex::new(permits),
            freed: Condvar::new(),
        }
    }

    fn acquire(&self) {
        let free = self.free.lock().unwrap();
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap();
        *free -= 1;
    }

    fn release(&self) {
        *self.free.lock().unwrap() += 1;
        self.freed.notify_one();
    }
}
