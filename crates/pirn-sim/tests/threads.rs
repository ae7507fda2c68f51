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
    assert!(
        failure.report.panics[0].place.contains("threads.rs"),
        "{failure}"
    );
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

#[test]
fn a_failure_names_the_lines_and_its_schedule_replays() {
    let both = || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let thread = thread::Builder::new()
            .name("other".to_owned())
            .spawn(move || {
                let _first = other.1.lock().unwrap();
                thread::yield_now();
                let _second = other.0.lock().unwrap();
            });
        {
            let _first = locks.0.lock().unwrap();
            thread::yield_now();
            let _second = locks.1.lock().unwrap();
        }
        thread.unwrap().join().unwrap();
    };
    let failure = Sim::new().seeds(0..1000).try_check(both).unwrap_err();
    let text = failure.to_string();
    assert!(text.contains("thread 1 \"other\" threads.rs:"), "{text}");
    assert!(text.contains("PIRN_SIM_SCHEDULE='"), "{text}");
    println!("{text}");
}

#[test]
fn a_panic_that_no_thread_joins_fails_the_run_unless_that_is_allowed() {
    let detached = || {
        drop(thread::spawn(|| panic!("lost")));
        thread::sleep(Duration::from_secs(1));
    };
    let report = Sim::new().run(1, detached);
    assert!(matches!(&report.outcome, Outcome::Panicked(it) if it.contains("lost")));
    let allowed = Sim::new().panics_allowed().run(1, detached);
    assert_eq!(allowed.outcome, Outcome::Passed);
    let joined = || assert!(thread::spawn(|| panic!("seen")).join().is_err());
    assert_eq!(Sim::new().run(1, joined).outcome, Outcome::Passed);
    let scoped = || {
        let result = std::panic::catch_unwind(|| {
            thread::scope(|scope| {
                scope.spawn(|| panic!("of the scope"));
            });
        });
        assert!(result.is_err());
    };
    assert_eq!(
        Sim::new().panics_allowed().run(1, scoped).outcome,
        Outcome::Passed
    );
}

#[test]
fn claims_are_counted_over_all_runs() {
    let summary = Sim::new().seeds(0..50).try_check(|| {
        let first = Arc::new(Mutex::new(0));
        let threads: Vec<_> = (1..3)
            .map(|n| {
                let first = Arc::clone(&first);
                thread::spawn(move || {
                    let mut first = first.lock().unwrap();
                    if *first == 0 {
                        *first = n;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
        pirn_sim::always("one is first", *first.lock().unwrap() > 0);
        pirn_sim::sometimes("the second is first", *first.lock().unwrap() == 2);
        pirn_sim::sometimes("a third is first", *first.lock().unwrap() == 3);
    });
    let summary = summary.unwrap();
    assert_eq!(summary.runs, 50);
    let held: Vec<_> = summary
        .claims
        .iter()
        .map(|it| (&*it.name, it.held))
        .collect();
    assert_eq!(held[0], ("a third is first", 0));
    assert_eq!(held[1], ("one is first", 50));
    assert!((1..50).contains(&held[2].1), "{held:?}");
    assert!(summary.schedules > 1, "{summary}");
}

#[test]
fn an_if_around_a_wait_is_found_by_spurious_wakes_and_a_while_passes() {
    let wait = |again: bool| {
        move || {
            let pair = Arc::new((Mutex::new(false), Condvar::new()));
            let other = Arc::clone(&pair);
            let thread = thread::spawn(move || {
                thread::sleep(Duration::from_secs(1));
                *other.0.lock().unwrap() = true;
                other.1.notify_one();
            });
            let mut ready = pair.0.lock().unwrap();
            if again {
                while !*ready {
                    ready = pair.1.wait(ready).unwrap();
                }
            } else if !*ready {
                ready = pair.1.wait(ready).unwrap();
            }
            assert!(*ready);
            drop(ready);
            thread.join().unwrap();
        }
    };
    let sim = Sim::new().seeds(0..200).spurious_wakes(20);
    let failure = sim.try_check(wait(false)).unwrap_err();
    assert!(matches!(failure.report.outcome, Outcome::Panicked(_)));
    let faults = &failure.again.faults;
    assert!(
        faults.iter().any(|it| it.1.contains("SpuriousWake")),
        "{faults:?}"
    );
    sim.check(wait(true));
    Sim::new().seeds(0..200).check(wait(false));
}

#[test]
fn a_spawn_that_fails_is_an_error() {
    let spawn = || {
        let made = (0..4).map(|_| thread::Builder::new().spawn(|| ()));
        let made: Vec<_> = made.collect();
        let failed = made.iter().filter(|it| it.is_err()).count();
        pirn_sim::sometimes("one fails", failed > 0);
        pirn_sim::sometimes("none fails", failed == 0);
        made.into_iter().flatten().for_each(|it| it.join().unwrap());
    };
    Sim::new().seeds(0..100).failing_spawns(5).check(spawn);
}

/// A pool that is made once per process: the second run does not have the steps that make it.
fn counts_runs() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    RUNS.fetch_add(1, SeqCst)
}

#[test]
fn a_test_whose_runs_differ_in_one_process_has_a_process_for_each() {
    let summary = Sim::new().seeds(0..5).try_check(|| {
        (0..counts_runs()).for_each(|_| thread::sleep(Duration::from_secs(1)));
    });
    let summary = summary.unwrap();
    assert_eq!((summary.runs, summary.time.as_secs()), (5, 0));
    let failure = Sim::new().seeds(0..50).try_check(|| {
        (0..counts_runs()).for_each(|_| thread::sleep(Duration::from_secs(1)));
        assert!(!pirn_sim::chance(0.2), "by chance");
    });
    let failure = failure.unwrap_err();
    assert!(
        failure.passed > 0 && failure.to_string().contains("by chance"),
        "{failure}"
    );
}

#[test]
fn a_failure_is_confirmed_in_a_fresh_process() {
    let failure = Sim::new().seeds(0..50).try_check(|| {
        let other = thread::spawn(|| pirn_sim::chance(0.2));
        assert!(!other.join().unwrap(), "by chance");
    });
    let failure = failure.unwrap_err();
    assert!(
        failure
            .confirmed
            .starts_with("in a fresh process: the same "),
        "{failure}"
    );
}

#[test]
fn threads_that_a_run_leaves_asleep_change_no_other_run() {
    let hash = || {
        let report = Sim::new().run(7, || (0..30).for_each(|_| drop(shown())));
        assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
        report.hash
    };
    let leave = |step: u64| {
        let report = Sim::new().run(7, move || {
            for number in 0..50 {
                let time = Duration::from_nanos(50_000 + number * step);
                thread::spawn(move || thread::sleep(time));
            }
        });
        assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
        assert!(report.time < Duration::from_micros(500), "{report:?}");
    };
    hash();
    let first = hash();
    for step in 300..310 {
        leave(step);
        assert_eq!(hash(), first);
    }
}

#[test]
fn a_fresh_process_starts_none_for_earlier_simulations_of_the_test() {
    let fails = || assert!(!pirn_sim::chance(0.5));
    let first = Sim::new().try_check(fails).unwrap_err().confirmed;
    if std::env::var_os("PIRN_SIM_RUN").is_some() {
        assert!(first.ends_with("for a later simulation of the test"));
    }
    let second = Sim::new().try_check(fails).unwrap_err().confirmed;
    assert!(
        second.starts_with("in a fresh process: the same "),
        "{second}"
    );
}

/// A thread that pauses when the test returns goes on, and lets go of what it has locked: a lock of
/// a static, which the next run finds as this one leaves it.
#[test]
fn a_pause_does_not_outlive_its_run() {
    static LOCK: Mutex<u32> = Mutex::new(0);
    let simulation = Sim::new().pauses(3, Duration::from_secs(1));
    simulation.seeds(0..50).check(|| {
        thread::spawn(|| {
            let mut held = LOCK.lock().unwrap();
            thread::yield_now();
            *held += 1;
        });
        thread::yield_now();
    });
}
