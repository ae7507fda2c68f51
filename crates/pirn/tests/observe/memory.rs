//! The memory that `pirn::metrics` accounts for is the memory that there is.

use crate::common::memory::resident;
use crate::common::{child, skip, watched};
use pirn::metrics::Metrics;
use pirn::thread;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

const THREADS: usize = 100_000;

/// Returns the memory once this many threads wait.
fn memory_with(waiting: usize) -> Metrics {
    loop {
        let metrics = pirn::metrics::snapshot();
        if [metrics["threads.waiting"], metrics.sum("threads")] == [waiting as u64; 2] {
            return metrics;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Spawns threads that park, a third of them with a time limit, a third for a lock of their own.
fn park(count: usize) {
    for i in 0..count {
        let body = move || match i % 3 {
            0 => thread::park(),
            1 => thread::sleep(Duration::from_secs(3600)),
            _ => {
                let (lock, never) = (Mutex::new(()), Condvar::new());
                drop(never.wait(lock.lock().unwrap()));
            }
        };
        drop(thread::Builder::new().spawn(body).unwrap());
    }
}

#[watched]
fn the_sum_is_the_growth_of_100_000_parked_threads() {
    if cfg!(pirn_checked_alloc) {
        return skip("the checking allocator keeps what is freed");
    }
    child::isolated(&[], || {
        // What a process needs once: code, tables, the carriers' stacks.
        park(300);
        let (before, resident_before) = (memory_with(300), resident());
        park(THREADS);
        let (after, resident_after) = (memory_with(300 + THREADS), resident());
        let accounted = after.resident_memory() - before.resident_memory();
        let grown = (resident_after - resident_before) as u64;
        let difference = accounted.abs_diff(grown);
        assert!(
            difference <= grown / 20,
            "{accounted} bytes accounted for, {grown} there\n{before:?}\n{after:?}"
        );
        // Each part is what it should be at least: a page, a record, an entry in a heap or table.
        // Optimised code has exactly a page, and the sum is estimated to within a few pages.
        let each = |name: &str| (after[name] - before[name]) / THREADS as u64;
        assert!((4000..16 << 10).contains(&each("memory.stacks")));
        assert!((800..4096).contains(&each("memory.tls")));
        assert!((128..1024).contains(&each("memory.records")));
        assert!((8..64).contains(&each("memory.timers")));
        assert!((8..64).contains(&each("memory.parking_lot")));
        assert!(each("memory.page_tables") >= 512);
        assert!(after["memory.stacks_reserved"] >= (THREADS as u64) << 18);
    });
}

#[watched]
fn memory_of_ended_threads_is_cached_and_then_given_back() {
    child::isolated(&[("PIRN_PARALLELISM", "2")], || {
        const COUNT: usize = 5000;
        let handles = Vec::from_iter((0..COUNT).map(|_| thread::spawn(thread::park)));
        let parked = memory_with(COUNT);
        // A page each, estimated in the same way.
        let each = parked["memory.stacks"] / COUNT as u64;
        assert!(each >= 4000, "{parked:?}");
        handles.iter().for_each(|handle| handle.thread().unpark());
        handles.into_iter().for_each(|handle| drop(handle.join()));
        let ended = memory_with(0);
        assert_eq!((ended["memory.stacks"], ended["memory.tls"]), (0, 0));
        // Carriers give it back after they have been idle for a second.
        while pirn::metrics::snapshot()["memory.stacks_cached"] > parked["memory.stacks"] / 4 {
            std::thread::sleep(Duration::from_millis(50));
        }
        let metrics = pirn::metrics::snapshot();
        let slots = |state| metrics[&*format!("stack_slots.{state}")];
        assert_eq!(slots("used"), 0);
        assert!(slots("free") + slots("closed") > slots("cached"));
    });
}
