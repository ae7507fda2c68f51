//! `ThreadPerTask` and `Semaphore`.

use crate::common::{Count, HOUR, below, millis, nap};
use pirn::executor::{TaskError, ThreadPerTask};
use pirn::thread::{self, Semaphore, sleep_interruptible};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Instant;

/// Tasks are submitted, cancelled and joined by several threads while the executor is shut down.
#[pirn_sim::test(seeds(0..600), pauses(100, millis(10)))]
fn each_task_ends_and_none_outlives_its_executor() {
    let executor = Arc::new(ThreadPerTask::new());
    let there = Count::default();
    let at_once = below(2) == 0;
    let submitters: Vec<_> = (0..3)
        .map(|_| {
            let (executor, there) = (Arc::clone(&executor), there.clone());
            thread::spawn(move || {
                for number in 0..5 {
                    nap(8);
                    let way = below(5);
                    let inside = there.clone();
                    let task = executor.submit(move || {
                        let _there = inside.add().0;
                        let slept = match way {
                            0 => sleep_interruptible(HOUR).is_ok(),
                            _ => nap(5),
                        };
                        match way {
                            1 => resume_unwind(Box::new("a bug")),
                            _ => (number, slept),
                        }
                    });
                    let task = match task {
                        Ok(task) => task,
                        Err(TaskError::Shutdown) => {
                            assert!(executor.is_shutdown());
                            continue;
                        }
                        Err(error) => panic!("{error}"),
                    };
                    let cancels = way == 0 && !at_once || way == 2;
                    let was_cancelled = cancels && {
                        nap(5);
                        task.cancel()
                    };
                    match task.join() {
                        Ok((answer, slept)) => {
                            assert!(answer == number && !was_cancelled);
                            assert!(slept || at_once || cancels);
                        }
                        Err(TaskError::Panicked(_)) => assert!(way == 1 && !was_cancelled),
                        Err(TaskError::Cancelled) => assert!(was_cancelled),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    nap(50);
    match at_once {
        true => executor.shutdown_now(),
        false => executor.shutdown(),
    }
    assert!(executor.is_shutdown());
    assert_eq!(executor.await_termination(HOUR), Ok(true));
    assert!(executor.is_terminated());
    assert_eq!(there.get(), 0, "a task outlives its executor");
    submitters.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(there.get(), 0);
}

#[pirn_sim::test(seeds(0..500), pauses(100, millis(10)))]
fn a_map_keeps_order_and_limit() {
    let executor = ThreadPerTask::new();
    let (there, limit) = (Count::default(), 1 + below(4) as usize);
    let inside = there.clone();
    let mut results = executor.map(0..10_u64, limit, move |number| {
        let (_there, running) = inside.add();
        assert!(running <= limit, "{running} of {limit}");
        nap(10);
        match number {
            7 => resume_unwind(Box::new("a bug")),
            number => number,
        }
    });
    let wanted = below(11);
    for number in 0..wanted {
        match results.next().unwrap() {
            Ok(result) => assert!(result == number && number != 7),
            Err(TaskError::Panicked(_)) => assert_eq!(number, 7),
            Err(error) => panic!("{error}"),
        }
    }
    drop(results);
    executor.close();
    assert_eq!(there.get(), 0);
}

#[pirn_sim::test(seeds(0..500), pauses(100, millis(10)))]
fn permits_are_as_many_as_there_are() {
    let permits = 1 + below(3) as usize;
    let semaphore = Arc::new(Semaphore::new(permits));
    let there = Count::default();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (semaphore, there) = (Arc::clone(&semaphore), there.clone());
            thread::spawn(move || {
                for _ in 0..4 {
                    nap(5);
                    let permit = match below(3) {
                        0 => semaphore.acquire_timeout(millis(1 + below(10))),
                        1 => semaphore.acquire_interruptible().ok(),
                        _ => Some(semaphore.acquire()),
                    };
                    if let Some(_permit) = permit {
                        let (_there, holders) = there.add();
                        assert!(holders <= permits);
                        nap(5);
                    }
                }
            })
        })
        .collect();
    // Interrupts, which end some of the waits.
    for _ in 0..4 {
        nap(10);
        threads[below(4) as usize].thread().interrupt();
    }
    threads.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(semaphore.available_permits(), permits, "a permit is lost");
}

/// First come, first served, also if some give up.
#[pirn_sim::test(seeds(0..500))]
fn a_waiter_that_gives_up_keeps_no_other_from_its_turn() {
    let semaphore = Arc::new(Semaphore::new(1));
    let first = semaphore.acquire();
    let waiters: Vec<_> = (0..4_u64)
        .map(|number| {
            let semaphore = Arc::clone(&semaphore);
            let gives_up = below(2) == 0;
            thread::spawn(move || {
                thread::sleep(millis(number));
                let permit = match gives_up {
                    true => semaphore.acquire_timeout(millis(20)),
                    false => Some(semaphore.acquire()),
                };
                let got = permit.is_some().then(Instant::now);
                thread::sleep(millis(5));
                drop(permit);
                (got, gives_up)
            })
        })
        .collect();
    thread::sleep(millis(10 + below(30)));
    drop(first);
    let ended: Vec<_> = waiters.into_iter().map(|it| it.join().unwrap()).collect();
    assert!(
        ended
            .iter()
            .all(|(got, gives_up)| got.is_some() || *gives_up)
    );
    assert!(ended.iter().filter_map(|it| it.0).is_sorted());
    assert_eq!(semaphore.available_permits(), 1);
}
