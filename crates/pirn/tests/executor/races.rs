//! Executors: races, with few and many carriers; and large crowds of tasks.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};

use crate::common::memory::threads_of;
use crate::common::{child, on_virtual, watched};
use crate::fixture::{LONG, each_kind};
use pirn::executor::{TaskError, ThreadPerTask};
use pirn::thread::{self, Interrupted};

/// Tests that run `body` with 1, 2 and 8 carriers.
macro_rules! with_carriers {
    ($($body:ident: $one:ident, $two:ident, $eight:ident;)*) => {$(
        #[watched]
        fn $one() {
            child::isolated(&[("PIRN_PARALLELISM", "1")], $body);
        }

        #[watched]
        fn $two() {
            child::isolated(&[("PIRN_PARALLELISM", "2")], $body);
        }

        #[watched]
        fn $eight() {
            child::isolated(&[("PIRN_PARALLELISM", "8")], $body);
        }
    )*};
}

with_carriers! {
    no_task_misses_shutdown_now: shutdown_now_1, shutdown_now_2, shutdown_now_8;
    nothing_runs_after_termination: termination_1, termination_2, termination_8;
    either_cancelled_or_ended: cancel_1, cancel_2, cancel_8;
    blocked_tasks_all_end: blocked_1, blocked_2, blocked_8;
}

const ROUNDS: usize = 30;

/// Every task that is not refused is interrupted, however late it came.
fn no_task_misses_shutdown_now() {
    for _ in 0..ROUNDS {
        each_kind(|executor| {
            let (executor, begin) = (Arc::new(executor), Arc::new(Barrier::new(4)));
            let submitters: Vec<_> = (0..3)
                .map(|_| {
                    let (executor, begin) = (Arc::clone(&executor), Arc::clone(&begin));
                    thread::spawn(move || {
                        begin.wait();
                        let mut tasks = Vec::new();
                        loop {
                            match executor.submit(|| thread::sleep_interruptible(LONG)) {
                                Ok(task) => tasks.push(task),
                                Err(TaskError::Shutdown) => return tasks,
                                Err(error) => panic!("{error}"),
                            }
                            thread::yield_now();
                        }
                    })
                })
                .collect();
            begin.wait();
            thread::yield_now();
            executor.shutdown_now();
            for submitter in submitters {
                for task in submitter.join().unwrap() {
                    assert_eq!(task.join().unwrap(), Err(Interrupted));
                }
            }
            assert!(executor.await_termination(LONG).unwrap());
        });
    }
}

fn nothing_runs_after_termination() {
    for _ in 0..ROUNDS {
        each_kind(|executor| {
            let (executor, begin) = (Arc::new(executor), Arc::new(Barrier::new(3)));
            let submitters: Vec<_> = (0..2)
                .map(|_| {
                    let (executor, begin) = (Arc::clone(&executor), Arc::clone(&begin));
                    thread::spawn(move || {
                        begin.wait();
                        for _ in 0..20 {
                            let inside = Arc::clone(&executor);
                            let task = executor.submit(move || inside.is_terminated());
                            let Ok(task) = task else {
                                // Once refused, always refused.
                                let again = executor.submit(|| ());
                                assert!(matches!(again, Err(TaskError::Shutdown)));
                                return;
                            };
                            assert!(!task.join().unwrap());
                        }
                    })
                })
                .collect();
            begin.wait();
            thread::yield_now();
            executor.shutdown();
            assert!(executor.await_termination(LONG).unwrap());
            assert!(executor.is_terminated());
            for submitter in submitters {
                submitter.join().unwrap();
            }
        });
    }
}

/// One wins: the end of the task, or one of the threads that cancel it. All see the same.
fn either_cancelled_or_ended() {
    for _ in 0..ROUNDS {
        each_kind(|executor| {
            for _ in 0..5 {
                let executor = &executor;
                let task = executor.submit(thread::yield_now).unwrap();
                let wins = AtomicUsize::new(0);
                thread::scope(|scope| {
                    for _ in 0..2 {
                        scope.spawn(|| {
                            wins.fetch_add(usize::from(task.cancel()), SeqCst);
                        });
                    }
                });
                let cancelled = task.is_cancelled();
                assert_eq!(wins.into_inner(), usize::from(cancelled));
                match task.join() {
                    Ok(()) => assert!(!cancelled),
                    Err(TaskError::Cancelled) => assert!(cancelled),
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
}

fn blocked_tasks_all_end() {
    on_virtual(|| {
        let executor = ThreadPerTask::new();
        let block = || thread::sleep_interruptible(LONG);
        let tasks: Vec<_> = (0..threads_of(100_000))
            .map(|_| executor.submit(block).unwrap())
            .collect();
        executor.shutdown_now();
        for task in tasks {
            assert_eq!(task.join().unwrap(), Err(Interrupted));
        }
        executor.close();
    });
}
