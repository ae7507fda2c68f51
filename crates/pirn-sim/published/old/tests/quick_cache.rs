//! A thread that waits for a value panics if another inserts it meanwhile: quick_cache #40.

use pirn_sim::Sim;
use quick_cache::sync::{Cache, GuardResult};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[test]
fn a_value_that_another_thread_inserts_is_there_for_all() {
    published::is_found("quick_cache 0.6.1, #40", Sim::new(), || {
        let cache = Arc::new(Cache::<u32, u32>::new(100));
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let cache = Arc::clone(&cache);
                let compute = move || {
                    thread::sleep(Duration::from_millis(1));
                    n
                };
                thread::spawn(move || match n {
                    0 => cache.insert(0, compute()),
                    _ => match cache.get_value_or_guard(&0, None) {
                        GuardResult::Value(_) => {}
                        GuardResult::Guard(guard) => drop(guard.insert(compute())),
                        GuardResult::Timeout => unreachable!("there is no timeout"),
                    },
                })
            })
            .collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert!(cache.get(&0).is_some());
    });
}
