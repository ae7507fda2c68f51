//! Executors: mapping over iterators with bounded concurrency.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};

use crate::common::{interrupt_me_soon, watched};
use crate::fixture::{LONG, each_kind, sleep_until_interrupted};
use pirn::executor::TaskError;
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
        assert_eq!(executor.map(0..LIMIT * 4, LIMIT, f).count(), LIMIT * 4);
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
        let check = |i: usize, result: Result<i32, TaskError>| match result {
            Ok(value) => assert_eq!((value as usize, i == 2), (i, false)),
            Err(TaskError::Panicked(panicked)) => {
                assert_eq!((i, panicked.message()), (2, Some("snap 2")));
            }
            Err(other) => panic!("{other:?}"),
        };
        let results: Vec<_> = executor.map(0..5, 2, f).enumerate().collect();
        assert_eq!(results.len(), 5);
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
        drop(here);
        executor.close(); // Hangs if one is not interrupted.
        assert_eq!(
            heard.iter().filter(|what| *what == "interrupted").count(),
            2
        );
    });
}

#[watched]
fn an_interrupt_ends_the_iteration() {
    each_kind(|executor| {
        let f = |_| thread::sleep_interruptible(LONG);
        interrupt_me_soon();
        let mut results = executor.map(0.., 3, f);
        assert!(matches!(results.next(), Some(Err(TaskError::Interrupted))));
        assert!(results.next().is_none() && results.next().is_none());
        assert!(thread::take_interrupt());
        drop(results);
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
            matches!(refused, Some(Err(TaskError::Shutdown))),
            "{refused:?}"
        );
        assert!(results.next().is_none());
    });
}

#[watched]
fn no_concurrency_at_all_is_a_mistake() {
    each_kind(|executor| {
        let map = || drop(executor.map(0..3, 0, |i| i));
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
        assert_eq!(executor.map(0.., 3, |i: u64| i).size_hint().1, None);
    });
}
