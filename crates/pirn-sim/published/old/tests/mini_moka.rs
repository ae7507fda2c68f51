//! A panic where a node is in no queue: mini-moka #11, mended in 0.10.2.

use mini_moka::sync::{Cache, ConcurrentCacheExt};
use pirn_sim::Sim;
use std::thread;

#[test]
fn entries_come_and_go() {
    published::is_found("mini-moka 0.10.1, #11", Sim::new(), || {
        let cache = Cache::new(2);
        let threads: Vec<_> = (0..3_u32)
            .map(|n| {
                let cache = cache.clone();
                thread::spawn(move || {
                    for round in 0..4 {
                        let key = (n + round) % 3;
                        cache.insert(key, round);
                        cache.get(&key);
                        if round == n {
                            cache.invalidate(&key);
                        }
                        cache.sync();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}
