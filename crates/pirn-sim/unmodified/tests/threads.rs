//! Crates for threads.

use crossbeam_channel::{bounded, select, tick};
use dashmap::DashMap;
use parking_lot::{Condvar, Mutex, RwLock};
use rayon::prelude::*;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn crossbeam_selects_between_a_channel_and_a_ticker() {
    pirn_sim_unmodified::check("crossbeam", 200, || {
        let (sender, receiver) = bounded(2);
        let ticker = tick(SECOND);
        let senders: Vec<_> = (0..3)
            .map(|number| {
                let sender = sender.clone();
                thread::spawn(move || {
                    for round in 0..5 {
                        thread::sleep(SECOND * number);
                        sender.send(round).unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        let (mut sum, mut ticks) = (0, 0);
        loop {
            select! {
                recv(receiver) -> number => match number {
                    Ok(number) => sum += number,
                    Err(_) => break,
                },
                recv(ticker) -> _ => ticks += 1,
            }
        }
        senders.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(sum, 30);
        assert!((8..=10).contains(&ticks), "{ticks}");
    });
}

#[test]
fn parking_lot_waits_with_and_without_a_time_limit() {
    pirn_sim_unmodified::check("parking_lot", 200, || {
        let shared = Arc::new((Mutex::new(0), Condvar::new(), RwLock::new(0)));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (count, changed, sum) = &*shared;
                    let mut count = count.lock();
                    while *count != number {
                        changed.wait(&mut count);
                    }
                    *sum.write() += number;
                    *count += 1;
                    changed.notify_all();
                })
            })
            .collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(*shared.2.read(), 6);
        let mut count = shared.0.lock();
        assert!(shared.1.wait_for(&mut count, 3600 * SECOND).timed_out());
        assert!(shared.0.try_lock_for(SECOND).is_none());
    });
}

#[test]
fn dashmap_counts_what_threads_add() {
    pirn_sim_unmodified::check("dashmap", 200, || {
        let map = Arc::new(DashMap::with_shard_amount(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    for key in 0..10 {
                        *map.entry(key % 3).or_insert(0) += 1;
                        thread::yield_now();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(map.iter().map(|it| *it).sum::<u32>(), 40);
    });
}

#[test]
fn rayon_computes_on_threads_of_its_own() {
    pirn_sim_unmodified::check("rayon", 100, || {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(3)
            .build()
            .unwrap();
        let sum: u64 = pool.install(|| (0..1000_u64).into_par_iter().map(|it| it * it).sum());
        assert_eq!(sum, 332_833_500);
        let (one, two) = pool.join(|| 1, || 2);
        assert_eq!(one + two, 3);
    });
}
