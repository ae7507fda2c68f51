//! The number of subtasks that run at once, and their threads.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, State};
use pirn::{Runnable, Scheduler, thread};

/// Counts the threads that are inside at once.
#[derive(Default)]
struct Gauge {
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    fn pass(&self) {
        let inside = self.inside.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(inside, SeqCst);
        for _ in 0..3 {
            thread::yield_now();
        }
        self.inside.fetch_sub(1, SeqCst);
    }
}

#[watched]
fn the_limit_is_never_exceeded() {
    everywhere(|| {
        for limit in [1, 2, 7] {
            let gauge = Gauge::default();
            let gauge = &gauge;
            let values = Builder::new()
                .limit(limit)
                .open_with(scope::all_successful(), |s| {
                    for i in 0..50 {
                        s.fork(move || {
                            gauge.pass();
                            Ok::<_, Oops>(i)
                        });
                    }
                    Ok(s.join()?.into_output())
                });
            assert_eq!(values.unwrap(), (0..50).collect::<Vec<_>>());
            assert!(gauge.most.load(SeqCst) <= limit);
        }
    });
}

#[watched]
fn the_limit_is_reached() {
    everywhere(|| {
        // Three subtasks that wait for each other.
        let start = std::sync::Barrier::new(3);
        let start = &start;
        let result = Builder::new()
            .limit(3)
            .open_with(scope::await_all::<Oops>(), |s| {
                for _ in 0..9 {
                    s.fork(move || {
                        start.wait();
                        Ok(())
                    });
                }
                s.join()?;
                Ok(())
            });
        result.unwrap();
    });
}

#[watched]
fn a_limit_of_one_is_one_after_the_other() {
    everywhere(|| {
        let order = Mutex::new(Vec::new());
        let order = &order;
        let result = Builder::new().limit(1).open::<Oops, _, _>(|s| {
            for i in 0..20 {
                s.fork(move || {
                    order.lock().unwrap().push((i, "begins"));
                    thread::yield_now();
                    order.lock().unwrap().push((i, "ends"));
                    Ok(())
                });
            }
            s.join()?;
            Ok(())
        });
        result.unwrap();
        let expected = (0..20).flat_map(|i| [(i, "begins"), (i, "ends")]);
        assert!(order.lock().unwrap().iter().copied().eq(expected));
    });
}

#[watched]
fn a_fork_waits_until_there_is_room() {
    everywhere(|| {
        let (go, gone) = mpsc::channel::<()>();
        let me = thread::current();
        let forked = AtomicBool::new(false);
        let result = Builder::new().limit(1).open::<Oops, _, _>(|s| {
            let forked = &forked;
            s.fork(move || {
                until_it_waits(&me);
                assert!(!forked.load(SeqCst), "no room yet");
                gone.recv().unwrap_err();
                Ok(())
            });
            // Another thread lets the first go on.
            std::thread::spawn(move || drop(go));
            let second = s.fork(|| Ok(7));
            forked.store(true, SeqCst);
            let all = s.join()?;
            Ok(second.get(&all))
        });
        assert_eq!(result.unwrap(), 7);
    });
}

#[watched]
fn a_cancellation_ends_the_wait_for_room() {
    everywhere(|| {
        let ran = AtomicBool::new(false);
        let begun = AtomicUsize::new(0);
        let result = Builder::new().limit(2).open(|s| {
            let (go, gone) = mpsc::channel::<()>();
            s.fork(|| {
                begun.fetch_add(1, SeqCst);
                forever::<()>()
            });
            let me = thread::current();
            s.fork(move || {
                until_it_waits(&me);
                gone.recv().unwrap_err();
                Err::<(), _>("failed")
            });
            until(|| begun.load(SeqCst) == 1);
            std::thread::spawn(move || drop(go));
            let waited = s.fork(|| {
                ran.store(true, SeqCst);
                Ok(())
            });
            // There was room only after the second had failed.
            assert!(s.is_cancelled());
            assert_eq!(waited.state(), State::Unavailable);
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Failed("failed"))));
        assert!(!ran.load(SeqCst));
    });
}

#[watched]
fn a_limit_of_none_is_refused() {
    let message = panic_of(|| Builder::new().limit(0));
    assert!(message.contains("limit of 0"), "{message}");
}

#[watched]
fn subtasks_run_on_threads_as_configured() {
    let threads = thread::Builder::new()
        .name_counter("order-", 1)
        .stack_size(1 << 20);
    let name = || Ok::<_, Oops>(thread::current().name().map(str::to_owned));
    let names = Builder::new()
        .threads(threads)
        .open_with(scope::all_successful(), |s| {
            for _ in 0..3 {
                s.fork(name);
            }
            Ok(s.join()?.into_output())
        });
    let expected = ["order-1", "order-2", "order-3"].map(|name| Some(name.to_string()));
    assert_eq!(names.unwrap(), expected);
}

/// Runs threads on a platform thread of its own, and counts how often.
struct Own(Mutex<mpsc::Sender<Runnable>>, AtomicUsize);

impl Scheduler for Own {
    fn schedule(&self, thread: Runnable) {
        self.1.fetch_add(1, SeqCst);
        self.0.lock().unwrap().send(thread).unwrap();
    }
}

#[watched]
fn subtasks_run_by_a_scheduler_of_the_users() {
    let (sender, receiver) = mpsc::channel::<Runnable>();
    let carrier = std::thread::spawn(move || receiver.into_iter().for_each(Runnable::run));
    let scheduler = Arc::new(Own(Mutex::new(sender), AtomicUsize::new(0)));
    let threads = thread::Builder::new().scheduler(scheduler.clone());
    let builder = Builder::new().threads(threads);
    let sum = builder.clone().open::<Oops, _, _>(|s| {
        let (one, two) = (s.fork(|| Ok(1)), s.fork(|| Ok(2)));
        let all = s.join()?;
        Ok(one.get(&all) + two.get(&all))
    });
    assert_eq!(sum.unwrap(), 3);
    let result = builder.open(|s| {
        s.fork(forever::<()>);
        s.fork(|| Err::<(), _>("failed"));
        s.join()?;
        Ok(())
    });
    assert!(matches!(result, Err(JoinError::Failed("failed"))));
    assert!(scheduler.1.load(SeqCst) >= 3);
    drop(scheduler);
    carrier.join().unwrap();
}

/// Forks on threads that cannot be started.
fn refused(builder: Builder) {
    let drops = Drops::default();
    let result = builder.open::<Oops, _, _>(|s| {
        let token = drops.token();
        let first = s.fork(move || {
            drop(token);
            Ok(())
        });
        drops.assert_all(1);
        assert_eq!(first.state(), State::Unavailable);
        assert!(s.is_cancelled());
        let second = s.fork(|| Ok(()));
        let unjoined = s.join().unwrap_err();
        assert_eq!(second.state(), State::Unavailable);
        Err::<(), _>(unjoined.into())
    });
    match result {
        Err(JoinError::Fork(error)) => {
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains("NUL"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[watched]
fn a_thread_that_cannot_be_started_fails_the_join() {
    let bad = "a\0b";
    refused(Builder::new().threads(thread::Builder::new().name(bad.into())));
}

#[watched]
fn a_builder_opens_many_scopes() {
    everywhere(|| {
        let builder = Builder::new().name("again").limit(2);
        for i in 0..3 {
            let value = builder.clone().open::<Oops, _, _>(|s| {
                assert!(format!("{s:?}").contains("again"));
                let subtask = s.fork(|| Ok(i));
                let all = s.join()?;
                Ok(subtask.get(&all))
            });
            assert_eq!(value.unwrap(), i);
        }
    });
}
