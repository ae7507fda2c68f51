//! The ends of executors: shutdown, termination, closing; and interrupts meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::{interrupt_me_soon, until_it_waits, watched};
use crate::fixture::{LONG, each_kind, sleeper, stubborn};
use pirn::executor::{TaskError, ThreadPerTask};
use pirn::thread::{self, Interrupted};

#[watched]
fn a_shut_down_executor_takes_no_tasks() {
    each_kind(|executor| {
        let (task, end) = stubborn(&executor);
        assert!(!executor.is_shutdown());
        executor.shutdown();
        executor.shutdown(); // A second call does nothing.
        assert!(executor.is_shutdown() && !executor.is_terminated());
        let (ran, runs) = mpsc::channel();
        for _ in 0..100 {
            let ran = ran.clone();
            let refused = executor.submit(move || ran.send(()));
            assert!(matches!(refused, Err(TaskError::Shutdown)), "{refused:?}");
        }
        drop(ran);
        assert!(runs.recv().is_err(), "a refused closure ran or lives");
        // Its tasks go on, uninterrupted.
        assert!(!task.thread().is_interrupted());
        end.send(4).unwrap();
        assert_eq!(task.join().unwrap(), 4);
        assert!(executor.await_termination(LONG).unwrap());
        assert!(executor.is_terminated());
    });
}

#[watched]
fn an_executor_without_tasks_terminates_at_once() {
    each_kind(|executor| {
        assert!(!executor.await_termination(Duration::ZERO).unwrap());
        executor.shutdown();
        assert!(executor.is_terminated());
        assert!(executor.await_termination(Duration::ZERO).unwrap());
    });
    each_kind(ThreadPerTask::close);
    each_kind(|executor| {
        executor.shutdown_now();
        assert!(executor.is_terminated());
    });
}

#[watched]
fn shutdown_now_interrupts_all_tasks() {
    each_kind(|executor| {
        let sleepers: Vec<_> = (0..20).map(|_| sleeper(&executor).unwrap()).collect();
        let (stubborn, end) = stubborn(&executor);
        executor.shutdown_now();
        for (task, heard) in sleepers {
            assert_eq!(heard.recv(), Ok("interrupted"));
            assert!(!task.is_cancelled());
            task.join().unwrap(); // Not cancelled: it has its result.
        }
        assert!(stubborn.thread().is_interrupted());
        assert!(matches!(executor.submit(|| ()), Err(TaskError::Shutdown)));
        assert!(!executor.is_terminated());
        end.send(1).unwrap();
        assert_eq!(stubborn.join().unwrap(), 1);
        assert!(executor.await_termination(LONG).unwrap());
    });
}

#[watched]
fn a_task_that_has_hardly_begun_hears_of_shutdown_now() {
    each_kind(|executor| {
        let sleep = || thread::sleep_interruptible(LONG);
        let tasks: Vec<_> = (0..50).map(|_| executor.submit(sleep).unwrap()).collect();
        executor.shutdown_now();
        for task in tasks {
            assert_eq!(task.join().unwrap(), Err(Interrupted));
        }
    });
}

#[watched]
fn shutdown_now_can_be_repeated() {
    each_kind(|executor| {
        let (here, heard) = mpsc::channel();
        let task = executor.submit(move || {
            for _ in 0..3 {
                assert_eq!(thread::sleep_interruptible(LONG), Err(Interrupted));
                assert!(thread::take_interrupt());
                here.send(()).unwrap();
            }
        });
        for _ in 0..3 {
            executor.shutdown_now();
            heard.recv().unwrap();
        }
        task.unwrap().join().unwrap();
    });
}

#[watched]
fn many_threads_await_termination() {
    each_kind(|executor| {
        let (_task, end) = stubborn(&executor);
        let executor = &executor;
        std::thread::scope(|platform| {
            thread::scope(|scope| {
                let virtual_: Vec<_> = (0..10)
                    .map(|_| scope.spawn(|| executor.await_termination(LONG).unwrap()))
                    .collect();
                platform.spawn(|| assert!(executor.await_termination(LONG).unwrap()));
                platform.spawn(|| assert!(executor.await_termination(Duration::MAX).unwrap()));
                for waiter in &virtual_ {
                    until_it_waits(waiter.thread());
                }
                executor.shutdown();
                end.send(0).unwrap();
                assert!(virtual_.into_iter().all(|waiter| waiter.join().unwrap()));
            });
        });
    });
}

#[watched]
fn an_interrupt_ends_await_termination() {
    each_kind(|executor| {
        let (_task, end) = stubborn(&executor);
        executor.shutdown();
        interrupt_me_soon();
        assert_eq!(executor.await_termination(LONG), Err(Interrupted));
        assert!(thread::take_interrupt(), "the flag is lost");
        let soon = Duration::from_millis(2);
        assert_eq!(executor.await_termination(soon), Ok(false));
        end.send(0).unwrap();
        assert_eq!(executor.await_termination(LONG), Ok(true));
        thread::current().interrupt();
        // There is nothing to wait for.
        assert_eq!(executor.await_termination(LONG), Ok(true));
        assert!(thread::take_interrupt());
    });
}

/// Submits a task that takes its time, uninterrupted, and then sets the flag.
fn slow(executor: &ThreadPerTask) -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    let _ = executor.submit(move || {
        let undisturbed = thread::sleep_interruptible(Duration::from_millis(5));
        end.store(undisturbed.is_ok(), SeqCst);
    });
    ended
}

#[watched]
fn close_and_drop_wait_for_all_tasks() {
    each_kind(|executor| {
        let ends: Vec<_> = (0..10).map(|_| slow(&executor)).collect();
        executor.close();
        assert!(ends.iter().all(|ended| ended.load(SeqCst)));
    });
    each_kind(|executor| {
        let ended = slow(&executor);
        executor.shutdown();
        drop(executor);
        assert!(ended.load(SeqCst));
    });
    each_kind(|executor| {
        let ended = slow(&executor);
        let unwound = catch_unwind(AssertUnwindSafe(move || {
            let _executor = executor;
            panic!("snap");
        }));
        assert!(unwound.is_err() && ended.load(SeqCst));
    });
}

#[watched]
fn an_interrupted_close_interrupts_the_tasks_and_waits_on() {
    // The interrupt comes before the wait, or in it.
    let interrupts: [fn(); 2] = [|| thread::current().interrupt(), interrupt_me_soon];
    for interrupt in interrupts {
        static INTERRUPT: std::sync::Mutex<fn()> = std::sync::Mutex::new(|| ());
        *INTERRUPT.lock().unwrap() = interrupt;
        each_kind(|executor| {
            let (task, heard) = sleeper(&executor).unwrap();
            // Goes on for a while after its interrupt.
            let (here, begun) = mpsc::channel();
            let cleaner = executor.submit(move || {
                here.send(()).unwrap();
                assert_eq!(thread::sleep_interruptible(LONG), Err(Interrupted));
                assert!(thread::take_interrupt());
                thread::sleep_interruptible(Duration::from_millis(5)).unwrap();
                7
            });
            let cleaner = cleaner.unwrap();
            begun.recv().unwrap();
            (INTERRUPT.lock().unwrap())();
            executor.close();
            assert!(thread::take_interrupt(), "the flag is lost");
            assert_eq!(heard.recv(), Ok("interrupted"));
            assert!(task.is_finished() && cleaner.is_finished());
            assert_eq!(cleaner.join().unwrap(), 7);
        });
    }
}

#[watched]
fn a_close_with_nothing_to_wait_for_interrupts_nobody() {
    each_kind(|executor| {
        let task = executor.submit(|| 1).unwrap();
        executor.shutdown();
        assert!(executor.await_termination(LONG).unwrap());
        thread::current().interrupt();
        executor.close();
        assert!(thread::take_interrupt());
        assert_eq!(task.join().unwrap(), 1);
    });
}

#[watched]
fn the_last_task_may_let_go_of_its_executor() {
    each_kind(|executor| {
        let executor = Arc::new(executor);
        let mine = Arc::clone(&executor);
        let (go, gone) = mpsc::channel::<()>();
        let task = executor.submit(move || {
            gone.recv().unwrap();
            let executor = Arc::into_inner(mine).expect("the last");
            executor.close(); // Would wait for this very task.
            9
        });
        drop(executor);
        go.send(()).unwrap();
        assert_eq!(task.unwrap().join().unwrap(), 9);
    });
}

#[watched]
fn a_task_shuts_its_executor_down() {
    each_kind(|executor| {
        let executor = Arc::new(executor);
        let (_sleeper, heard) = sleeper(&executor).unwrap();
        let mine = Arc::clone(&executor);
        let task = executor.submit(move || {
            mine.shutdown_now();
            (thread::take_interrupt(), mine.is_terminated())
        });
        assert_eq!(task.unwrap().join().unwrap(), (true, false));
        assert_eq!(heard.recv(), Ok("interrupted"));
        assert!(executor.await_termination(LONG).unwrap());
    });
}
