//! Locking and unlocking a `std::sync::Mutex` that nobody else wants.

use crate::place::compare;
use crate::workload::{Sample, Size, Workload, per};
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

pub struct MutexUncontended;

impl Workload for MutexUncontended {
    fn name(&self) -> &'static str {
        "mutex_uncontended"
    }

    fn about(&self) -> &'static str {
        "lock and unlock a std Mutex, on a virtual and on a platform thread"
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        compare("", "lock + unlock", size.pick(2_000_000, 1000), lock)
    }
}

fn lock(count: usize) -> Result<f64> {
    let mutex = Mutex::new(0);
    let start = Instant::now();
    for _ in 0..count {
        *black_box(&mutex).lock().unwrap() += 1;
    }
    let elapsed = start.elapsed();
    let locked = mutex.into_inner()?;
    ensure!(locked == count, "locked {locked} times, not {count}");
    Ok(per(elapsed, count))
}
