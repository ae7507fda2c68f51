//! Ordinary threads under a simulation.

use pirn_sim::{Outcome, Sim, Strategy};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

#[test]
fn a_day_of_sleep_passes_at_once() {
    let report = Sim::new().run(1, || {
        let begin = Instant::now();
        let sleep = || thread::sleep(Duration::from_secs(86_400));
        let threads: Vec<_> = (0..1000).map(|_| thread::spawn(sleep)).collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert!(begin.elapsed() >= Duration::from_secs(86_400));
    });
    assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
    assert!(report.time >= Duration::from_secs(86_400));
}

/// What a run shows of itself.
fn shown() -> String {
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let sender = sender.clone();
            thread::spawn(move || {
                for step in 0..3 {
                    thread::yield_now();
                    sender.send((n, step)).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let order: Vec<_> = receiver.iter().collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
    let map: HashMap<u32, u32> = (0..20).map(|it| (it, it)).collect();
    let keys: Vec<_> = map.keys().copied().collect();
    format!("{order:?} {keys:?} {:?}", SystemTime::now())
}

#[test]
fn a_seed_does_the_same_again_and_others_do_something_else() {
    let see = |seed| {
        let seen = Arc::new(Mutex::new(String::new()));
        let place = Arc::clone(&seen);
        let report = Sim::new().run(seed, move || *place.lock().unwrap() = shown());
        assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
        (seen.lock().unwrap().clone(), report.hash)
    };
    let first = see(7);
    assert!((0..20).all(|_| see(7) == first));
    let others: std::collections::HashSet<_> = (0..20).map(see).collect();
    assert!(others.len() > 15, "{} of 20 differ", others.len());
}

#[test]
fn two_locks_in_two_orders_are_a_deadlock_which_two_switches_make() {
    let both = || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let thread = thread::spawn(move || {
            let _first = other.1.lock().unwrap();
            thread::yield_now();
            let _second = other.0.lock().unwrap();
        });
        {
            let _first = locks.0.lock().unwrap();
            thread::yield_now();
            let _second = locks.1.lock().unwrap();
        }
        thread.join().unwrap();
    };
    let failure = Sim::new().seeds(0..1000).try_check(both).unwrap_err();
    assert_eq!(failure.report.outcome, Outcome::Deadlock);
    let needed = failure.needed.as_ref().unwrap();
    assert!(needed.len() <= 2, "{failure}");
    let again = Sim::new()
        .strategy(Strategy::Replay(needed.clone()))
        .run(failure.report.seed, both);
    assert_eq!(again.outcome, Outcome::Deadlock);
}

#[test]
fn a_lost_update_is_found_and_one_that_is_atomic_passes() {
    let count = |apart: bool| {
        move || {
            let sum = Arc::new(AtomicU32::new(0));
            let add = |sum: Arc<AtomicU32>| {
                move || match apart {
                    true => {
                        let old = sum.load(SeqCst);
                        thread::yield_now();
                        sum.store(old + 1, SeqCst);
                    }
                    false => {
                        sum.fetch_add(1, SeqCst);
                        thread::yield_now();
                    }
                }
            };
            let threads = [
                thread::spawn(add(sum.clone())),
                thread::spawn(add(sum.clone())),
            ];
            threads.into_iter().for_each(|it| it.join().unwrap());
            assert_eq!(sum.load(SeqCst), 2);
        }
    };
    let failure = Sim::new()
        .seeds(0..1000)
        .try_check(count(true))
        .unwrap_err();
    assert!(matches!(failure.report.outcome, Outcome::Panicked(_)));
    assert!(failure.report.panics[0].contains("threads.rs"), "{failure}");
    Sim::new().seeds(0..1000).check(count(false));
}

#[test]
fn a_signal_that_no_thread_waits_for_yet_is_a_deadlock() {
    let wait = || {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&pair);
        let thread = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let ready = *pair.0.lock().unwrap();
        if !ready {
            thread::yield_now(); // The bug: the lock is not held until the wait.
            let guard = pair.0.lock().unwrap();
            drop(pair.1.wait(guard).unwrap());
        }
        thread.join().unwrap();
    };
    let failure = Sim::new().seeds(0..1000).try_check(wait).unwrap_err();
    assert_eq!(failure.report.outcome, Outcome::Deadlock);
}

#[test]
fn a_thread_that_spins_until_a_time_ends_and_one_that_spins_for_ever_fails() {
    let until = || {
        let end = Instant::now() + Duration::from_millis(1);
        while Instant::now() < end {
            thread::yield_now();
        }
    };
    assert_eq!(Sim::new().run(3, until).outcome, Outcome::Passed);
    let report = Sim::new().most_points(10_000).run(3, || {
        let mutex = Mutex::new(());
        loop {
            thread::sleep(Duration::from_nanos(1));
            drop(mutex.lock().unwrap());
        }
    });
    assert_eq!(report.outcome, Outcome::TooLong);
    // The process goes on.
    assert_eq!(Sim::new().run(3, until).outcome, Outcome::Passed);
}
