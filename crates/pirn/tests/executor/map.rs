//! Executors: mapping over iterators with bounded concurrency.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};

use crate::common::watched;
use crate::fixture::{LONG, each_kind, interrupt_me_soon, sleep_until_interrupted};
use pirn::executor::{MapError, SubmitError};
use pirn::thread;

#[watched]
fn map_keeps_the_order() {
    each_kind(|executor| {
        for limit in [1, 3, 100, usize::MAX] {
            let results = executor.map(0..50, limit, |i| {
                if i % 7 == 0 {
                    thread::yield_now();
                }
                2 * i
            });
            let values: Vec<i32> = results.map(Result::unwrap).collect();
            assert_eq!(values, (0..50).map(|i| 2 * i).collect::<Vec<_>>());
        }
    });
}

#[watched]
fn map_unordered_gives_each_once_with_its_index() {
    each_kind(|executor| {
        for limit in [1, 3, 100, usize::MAX] {
            let items = (0..50).map(|i| i + 1000);
            let results = executor.map_unordered(items, limit, |i| 2 * i);
            let mut values: Vec<_> = results.map(|(i, result)| (i, result.unwrap())).collect();
            values.sort();
            assert_eq!(
                values,
                (0..50).map(|i| (i, 2 * (i + 1000))).collect::<Vec<_>>()
            );
        }
    });
}

#[watched]
fn one_slow_item_does_not_hold_up_map_unordered() {
    each_kind(|executor| {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Mutex::new(ended);
        let mut results = executor.map_unordered(0..20, 2, move |i| {
            if i == 0 {
                ended.lock().unwrap().recv().unwrap();
            }
            i
        });
        let mut seen: Vec<usize> = results.by_ref().take(19).map(|(i, _)| i).collect();
        seen.sort();
        assert_eq!(seen, (1..20).collect::<Vec<_>>());
        end.send(()).unwrap();
        assert_eq!(results.next().unwrap().1.unwrap(), 0);
        assert!(results.next().is_none() && results.next().is_none());
    });
}

#[watched]
fn limit_many_run_at_a_time_and_no_more() {
    const LIMIT: usize = 5;
    each_kind(|executor| {
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let f = {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            // Hangs unless the full number of tasks run at once.
            let all = Barrier::new(LIMIT);
            move |_| {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                all.wait();
                running.fetch_sub(1, SeqCst);
            }
        };
        let f = Arc::new(f);
        let g = Arc::clone(&f);
        assert_eq!(
            executor.map(0..LIMIT * 4, LIMIT, move |i| f(i)).count(),
            LIMIT * 4
        );
        let results = executor.map_unordered(0..LIMIT * 4, LIMIT, move |i| g(i));
        assert_eq!(results.count(), LIMIT * 4);
        assert_eq!(most.load(SeqCst), LIMIT);
    });
}

#[watched]
fn items_are_taken_lazily() {
    each_kind(|executor| {
        let taken = AtomicUsize::new(0);
        // Infinitely many.
        let items = || std::iter::repeat_with(|| taken.fetch_add(1, SeqCst));
        let mut results = executor.map(items(), 3, |i| i);
        assert_eq!(taken.load(SeqCst), 0);
        for i in 0..10 {
            assert_eq!(results.next().unwrap().unwrap(), i);
            assert_eq!(taken.load(SeqCst), i + 3);
        }
        drop(results);
        taken.store(0, SeqCst);
        let mut results = executor.map_unordered(items(), 3, |i| i);
        assert_eq!(taken.load(SeqCst), 0);
        for i in 0..10 {
            results.next().unwrap().1.unwrap();
            assert_eq!(taken.load(SeqCst), i + 3);
        }
        drop(results);
        executor.close();
        assert_eq!(taken.load(SeqCst), 12);
    });
}

#[watched]
fn a_panic_is_its_items_error() {
    each_kind(|executor| {
        let f = |i| match i {
            2 => panic!("snap {i}"),
            _ => i,
        };
        let check = |i: usize, result: Result<i32, MapError>| match result {
            Ok(value) => assert_eq!((value as usize, i == 2), (i, false)),
            Err(MapError::Panicked(panicked)) => {
                assert_eq!((i, panicked.message()), (2, Some("snap 2")));
            }
            Err(other) => panic!("{other:?}"),
        };
        let mut results: Vec<_> = executor.map(0..5, 2, f).enumerate().collect();
        results.extend(executor.map_unordered(0..5, 2, f));
        assert_eq!(results.len(), 10);
        results.into_iter().for_each(|(i, result)| check(i, result));
    });
}

#[watched]
fn dropping_early_interrupts_what_runs() {
    each_kind(|executor| {
        let (here, heard) = mpsc::channel();
        let f = || {
            let (here, all) = (here.clone(), Barrier::new(3));
            move |i| {
                all.wait(); // The first goes on only when the others are there.
                if i > 0 {
                    sleep_until_interrupted(&here);
                }
            }
        };
        let mut results = executor.map(0..3, 3, f());
        results.next().unwrap().unwrap();
        drop(results);
        let mut results = executor.map_unordered(0..3, 3, f());
        let (index, result) = results.next().unwrap();
        assert!(index == 0 && result.is_ok());
        drop(results);
        drop(here);
        executor.close(); // Hangs if one is not interrupted.
        assert_eq!(
            heard.iter().filter(|what| *what == "interrupted").count(),
            4
        );
    });
}

#[watched]
fn an_interrupt_ends_the_iteration() {
    each_kind(|executor| {
        let f = |_| thread::sleep_interruptible(LONG);
        interrupt_me_soon();
        let mut results = executor.map(0.., 3, f);
        assert!(matches!(results.next(), Some(Err(MapError::Interrupted))));
        assert!(results.next().is_none() && results.next().is_none());
        assert!(thread::take_interrupt());
        interrupt_me_soon();
        let mut results = executor.map_unordered(0.., 3, f);
        assert!(matches!(
            results.next(),
            Some((3, Err(MapError::Interrupted)))
        ));
        assert!(results.next().is_none() && results.next().is_none());
        assert!(thread::take_interrupt());
        executor.close(); // The sleepers have been interrupted as well.
    });
}

#[watched]
fn a_shutdown_ends_the_iteration_after_what_runs() {
    each_kind(|executor| {
        let items = (0..).inspect(|i| {
            if *i == 4 {
                executor.shutdown();
            }
        });
        let mut results = executor.map(items, 2, |i| i);
        for i in 0..4 {
            assert_eq!(results.next().unwrap().unwrap(), i);
        }
        let refused = results.next();
        assert!(
            matches!(refused, Some(Err(MapError::Submit(SubmitError::Shutdown)))),
            "{refused:?}"
        );
        assert!(results.next().is_none());
        let mut results = executor.map_unordered(0.., 2, |i| i);
        let refused = results.next();
        assert!(matches!(
            refused,
            Some((0, Err(MapError::Submit(SubmitError::Shutdown))))
        ));
        assert!(results.next().is_none());
    });
}

#[watched]
fn no_concurrency_at_all_is_a_mistake() {
    each_kind(|executor| {
        let map = || drop(executor.map(0..3, 0, |i| i));
        assert!(catch_unwind(AssertUnwindSafe(map)).is_err());
        let map = || drop(executor.map_unordered(0..3, 0, |i| i));
        assert!(catch_unwind(AssertUnwindSafe(map)).is_err());
    });
}

#[watched]
fn size_hints_hold() {
    each_kind(|executor| {
        let mut results = executor.map(0..10, 3, |i| i);
        for left in (0..=10).rev() {
            let (low, high) = results.size_hint();
            assert!(
                low <= left && high == Some(left),
                "{low}..{high:?} with {left} left"
            );
            assert_eq!(results.next().is_some(), left > 0);
        }
        assert_eq!(
            executor.map_unordered(0.., 3, |i: u64| i).size_hint().1,
            None
        );
    });
}
