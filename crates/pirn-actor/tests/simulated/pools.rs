//! Pools: no more at once than there are workers, in order by key, and each ask ends.

use crate::common::{Count, below, fail, nap};
use pirn_actor::pool::Pool;
use pirn_actor::{AskError, Builder, Exit, Function, Restarts};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    None,
    Keyed,
    Weighted,
}

struct Job {
    sender: u64,
    number: u64,
    key: u64,
    weight: u64,
    is_bomb: bool,
}

const MOST_WEIGHT: u64 = 4;

fn a_pool_keeps_its_rules() {
    let rule = [Rule::None, Rule::Keyed, Rule::Weighted][below(3) as usize];
    let (least, more) = (1 + below(2) as usize, below(3) as usize);
    let may_fail = below(2) == 0;
    let ends_early = below(2) == 0;
    let builder = Builder::new().capacity(2 + below(4) as usize);
    let builder = match may_fail {
        true => builder.restarts(Restarts::at_most(usize::MAX)),
        false => builder,
    };
    let pool: Pool = builder.pool(least..=least + more);
    let pool = match rule {
        Rule::None => pool,
        Rule::Keyed => pool.keyed(|job: &Job| job.key),
        Rule::Weighted => pool.weighted(MOST_WEIGHT as usize, |job: &Job| job.weight as usize),
    };
    let (workers, at_work) = (Count::default(), Count::default());
    let of_key: Arc<[Count; 3]> = Arc::default();
    let weight = Arc::new(AtomicU64::new(0));
    let done = Arc::new(Mutex::new(Vec::new()));
    let (log, there) = (Arc::clone(&done), workers.clone());
    let pool = pool.spawn(move || {
        // A worker that retires may still drop its state.
        let worker = there.add().0;
        let (at_work, of_key) = (at_work.clone(), Arc::clone(&of_key));
        let (weight, log) = (Arc::clone(&weight), Arc::clone(&log));
        Function::new(move |job: Job| {
            let _worker = &worker;
            assert!(at_work.add().1 <= least + more);
            let (_of_key, same) = of_key[job.key as usize].add();
            assert!(rule != Rule::Keyed || same == 1, "two with one key");
            let sum = weight.fetch_add(job.weight, SeqCst) + job.weight;
            assert!(rule != Rule::Weighted || sum <= MOST_WEIGHT, "too heavy");
            log.lock().unwrap().push((job.key, job.sender, job.number));
            nap(5);
            weight.fetch_sub(job.weight, SeqCst);
            if job.is_bomb { fail() } else { job.number }
        })
    });
    let pool = pool.unwrap();
    let senders: Vec<_> = (0..3)
        .map(|sender| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut accepted = 0;
                let mut replies = Vec::new();
                for number in 0..6 {
                    nap(4);
                    let job = Job {
                        sender,
                        number,
                        key: below(3),
                        weight: 1 + below(3),
                        is_bomb: may_fail && below(4) == 0,
                    };
                    let is_bomb = job.is_bomb;
                    match pool.ask_later(job) {
                        Ok(reply) => {
                            accepted += 1;
                            replies.push((number, is_bomb, reply));
                        }
                        Err(_) => assert!(ends_early),
                    }
                }
                let mut answered = 0;
                for (number, is_bomb, reply) in replies {
                    match reply.recv() {
                        Ok(answer) => assert!(answer == number && !is_bomb),
                        Err(AskError::Failed(_)) => assert!(is_bomb),
                        Err(error) => panic!("{error:?}: a pool that is closed does its work"),
                    }
                    answered += 1;
                }
                assert_eq!(accepted, answered);
                accepted
            })
        })
        .collect();
    if ends_early {
        nap(30);
        pool.close();
    }
    let accepted: usize = senders.into_iter().map(|it| it.join().unwrap()).sum();
    pool.close();
    assert_eq!(pool.join(), Exit::Closed);
    assert_eq!(workers.get(), 0);
    let done = done.lock().unwrap();
    assert_eq!(done.len(), accepted);
    if rule == Rule::Keyed {
        for (key, sender) in (0..3).flat_map(|key| (0..3).map(move |sender| (key, sender))) {
            let of_both = done.iter().filter(|it| (it.0, it.1) == (key, sender));
            assert!(of_both.map(|it| it.2).is_sorted(), "in order by key");
        }
    }
}

#[pirn_sim::test(seeds(0..100))]
fn rules_hold() {
    a_pool_keeps_its_rules();
}

#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn rules_hold_while_threads_pause() {
    a_pool_keeps_its_rules();
}

/// Without restarts a worker that fails ends the pool, once, and each ask has an end.
#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn a_worker_that_fails_ends_the_pool() {
    let workers = Count::default();
    let there = workers.clone();
    let pool = Pool::scaling(1..=3).spawn(move || {
        let worker = there.add().0;
        Function::new(move |n: u64| {
            let _worker = &worker;
            nap(5);
            if n == 3 { fail() } else { n }
        })
    });
    let pool = pool.unwrap();
    let senders: Vec<_> = (0..2)
        .map(|_| {
            let pool = pool.clone();
            thread::spawn(move || {
                for n in 0..6 {
                    nap(2);
                    match pool.ask(n) {
                        Ok(answer) => assert!(answer == n && n != 3),
                        Err(AskError::Failed(_)) => assert_eq!(n, 3),
                        Err(AskError::Gone) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|it| it.join().unwrap());
    assert!(matches!(pool.join(), Exit::Failed(_)));
    assert_eq!(workers.get(), 0);
}
