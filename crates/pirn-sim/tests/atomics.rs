//! Bugs that only points at atomic operations show: `cargo pirn sim test` has them.

use pirn_sim::{Outcome, Sim};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

/// Returns whether this code is instrumented.
fn has_points() -> bool {
    let report = Sim::new().run(0, || {
        let value = AtomicU32::new(0);
        for _ in 0..10 {
            value.fetch_add(1, SeqCst);
        }
    });
    let instrumented = report.points >= 10;
    if !instrumented {
        println!("left out: not by `cargo pirn sim test`, so without points at atomics");
    }
    instrumented
}

/// Computes each value once, if `right`.
struct Cache {
    values: Mutex<HashMap<u32, u32>>,
    computed: AtomicU32,
    right: bool,
}

impl Cache {
    fn get(&self, key: u32) -> u32 {
        let compute = || {
            self.computed.fetch_add(1, SeqCst);
            key * 2
        };
        if self.right {
            return *self
                .values
                .lock()
                .unwrap()
                .entry(key)
                .or_insert_with(compute);
        }
        if let Some(value) = self.values.lock().unwrap().get(&key) {
            return *value;
        }
        let value = compute();
        self.values.lock().unwrap().insert(key, value);
        value
    }
}

fn a_cache_computes_once(right: bool) {
    let cache = Arc::new(Cache {
        values: Mutex::default(),
        computed: AtomicU32::new(0),
        right,
    });
    let ask = || {
        let cache = Arc::clone(&cache);
        thread::spawn(move || cache.get(7))
    };
    let threads: Vec<_> = (0..3).map(|_| ask()).collect();
    threads
        .into_iter()
        .for_each(|it| assert_eq!(it.join().unwrap(), 14));
    assert_eq!(cache.computed.load(SeqCst), 1);
}

#[test]
fn a_cache_that_computes_twice_is_found() {
    if !has_points() {
        return;
    }
    let failure = Sim::new()
        .seeds(0..1000)
        .try_check(|| a_cache_computes_once(false));
    let failure = failure.unwrap_err();
    assert!(matches!(failure.report.outcome, Outcome::Panicked(_)));
    assert!(failure.needed.as_ref().unwrap().len() <= 3, "{failure}");
    Sim::new()
        .seeds(0..10_000)
        .check(|| a_cache_computes_once(true));
}

#[test]
fn an_update_that_is_lost_is_found() {
    if !has_points() {
        return;
    }
    let add = |right: bool| {
        move || {
            let sum = Arc::new(AtomicU32::new(0));
            let threads = [(); 2].map(|()| {
                let sum = Arc::clone(&sum);
                thread::spawn(move || match right {
                    true => drop(sum.fetch_add(1, SeqCst)),
                    false => sum.store(sum.load(SeqCst) + 1, SeqCst),
                })
            });
            threads.into_iter().for_each(|it| it.join().unwrap());
            assert_eq!(sum.load(SeqCst), 2);
        }
    };
    let failure = Sim::new().seeds(0..1000).try_check(add(false)).unwrap_err();
    assert!(failure.needed.as_ref().unwrap().len() <= 3, "{failure}");
    Sim::new().seeds(0..10_000).check(add(true));
}
