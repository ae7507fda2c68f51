//! Executors: submitting, joining and cancelling tasks. (Their ends are in `close.rs`, several
//! tasks at once in `invoke.rs` and `map.rs`, races in `races.rs`.)

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::common::{child, interrupt_me_soon, on_virtual, watched};
use crate::fixture::{LONG, each_kind, sleeper, stubborn};
use pirn::executor::{Task, TaskError, ThreadPerTask};
use pirn::thread;

const fn can_be_shared<T: Send + Sync>() {}
const _: () = can_be_shared::<ThreadPerTask>();
const _: () = can_be_shared::<Task<std::cell::Cell<u8>>>();
const _: () = can_be_shared::<TaskError>();

#[watched]
fn a_payload_may_panic_when_it_is_dropped() {
    struct Bomb(u32);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }
    fn burst() {
        panic_any(Bomb(2))
    }
    each_kind(|executor| {
        let task = executor.submit(burst).unwrap();
        drop(task.join().unwrap_err());
        drop(executor.submit(burst).unwrap()); // Its executor drops the error.
        executor.close();
        let forked = pirn::scope::open(|s| {
            s.fork(|| {
                burst();
                Ok::<_, ()>(())
            });
            s.join()?;
            Ok(())
        });
        drop(forked.unwrap_err());
        thread::current().interrupt();
        let told = thread::on_interrupt(burst);
        assert!(thread::take_interrupt());
        drop(told);
    });
}

#[watched]
fn a_panic_is_an_error() {
    each_kind(|executor| {
        let panicked = |result| match result {
            Err(TaskError::Panicked(panicked)) => panicked,
            other => panic!("no panic but {other:?}"),
        };
        let count = 7;
        let task: Task<()> = executor.submit(move || panic!("snap {count}")).unwrap();
        let error = task.join();
        let text = error.as_ref().unwrap_err().to_string();
        assert_eq!(text, "the task panicked: snap 7");
        let panic = panicked(error);
        assert_eq!(panic.to_string(), "panicked: snap 7");
        assert_eq!(panic.message(), Some("snap 7"));
        assert_eq!(
            panic.into_payload().downcast_ref(),
            Some(&String::from("snap 7"))
        );

        let task: Task<()> = executor.submit(|| panic_any(42_u8)).unwrap();
        let panic = panicked(task.join());
        assert_eq!(panic.message(), None);
        let resumed = std::panic::catch_unwind(|| panic.resume());
        assert_eq!(resumed.unwrap_err().downcast_ref(), Some(&42_u8));
        // The executor still works.
        assert_eq!(executor.submit(|| 1).unwrap().join().unwrap(), 1);
    });
}

#[watched]
fn threads_are_as_asked_for() {
    let executor = ThreadPerTask::with(thread::Builder::new().name_counter("weft-", 1));
    for name in ["weft-1", "weft-2"] {
        let task = executor.submit(|| thread::current().name().map(str::to_owned));
        let task = task.unwrap();
        assert_eq!(task.thread().name(), Some(name));
        assert_eq!(task.join().unwrap().as_deref(), Some(name));
    }
}

#[watched]
fn a_thread_that_cannot_be_made_is_an_error() {
    for executor in [
        ThreadPerTask::with(thread::Builder::new().stack_size(2 << 30)),
        ThreadPerTask::with(thread::Builder::new().name_counter("a\0b", 0)),
    ] {
        let (dropped, drops) = mpsc::channel::<()>();
        match executor.submit(move || dropped.send(())) {
            Err(TaskError::Spawn(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
            }
            other => panic!("{other:?}"),
        }
        assert!(drops.recv().is_err(), "the closure ran or lives");
        executor.close(); // Waits for nothing.
    }
}

#[watched]
fn joins_that_end_early_give_the_task_back() {
    each_kind(|executor| {
        let (task, end) = stubborn(&executor);
        let task = task.join_timeout(Duration::ZERO).unwrap_err();
        interrupt_me_soon();
        let task = task.join_interruptible().unwrap_err();
        assert!(thread::take_interrupt());
        end.send(3).unwrap();
        assert_eq!(task.join_timeout(LONG).unwrap().unwrap(), 3);
    });
}

#[watched]
fn cancel_interrupts_a_running_task() {
    each_kind(|executor| {
        let (task, heard) = sleeper(&executor).unwrap();
        assert!(!task.is_finished() && !task.is_cancelled());
        assert!(task.cancel());
        assert!(task.is_finished() && task.is_cancelled());
        assert!(!task.cancel(), "cancelled twice");
        assert_eq!(heard.recv(), Ok("interrupted"));
        assert!(matches!(task.join(), Err(TaskError::Cancelled)));
    });
}

#[watched]
fn a_cancelled_task_that_does_not_heed_it_is_not_waited_for() {
    each_kind(|executor| {
        let (task, end) = stubborn(&executor);
        let thread = task.thread().clone();
        assert!(task.cancel());
        assert!(thread.is_interrupted());
        assert!(matches!(task.join(), Err(TaskError::Cancelled)));
        // But the executor waits for it.
        executor.shutdown();
        assert!(
            !executor
                .await_termination(Duration::from_millis(1))
                .unwrap()
        );
        end.send(1).unwrap();
        assert!(executor.await_termination(LONG).unwrap());
    });
}

#[watched]
fn cancel_after_the_end_changes_nothing() {
    each_kind(|executor| {
        let task = executor.submit(|| 5).unwrap();
        while !task.is_finished() {
            thread::yield_now();
        }
        assert!(!task.cancel());
        assert!(!task.is_cancelled());
        assert_eq!(task.join().unwrap(), 5);
    });
}

#[watched]
fn a_task_cancelled_before_its_start_never_runs() {
    let one_carrier = [
        ("PIRN_PARALLELISM", "1"),
        ("PIRN_SPARE_CARRIERS", "0"),
        ("PIRN_PREEMPT", "0"),
    ];
    child::isolated(&one_carrier, || {
        on_virtual(|| {
            let executor = ThreadPerTask::new();
            let (ran, runs) = mpsc::channel();
            // This thread has the only carrier, and keeps it meanwhile.
            let task = executor.submit(move || ran.send(())).unwrap();
            assert!(task.cancel());
            assert!(matches!(task.join(), Err(TaskError::Cancelled)));
            assert!(runs.recv().is_err(), "it ran");
            executor.close();
        });
    });
}

#[watched]
fn dropping_a_task_does_not_cancel_it() {
    each_kind(|executor| {
        let (go, gone) = mpsc::channel::<()>();
        let (here, heard) = mpsc::channel();
        drop(executor.submit(move || {
            gone.recv().unwrap();
            here.send(thread::is_interrupted()).unwrap();
        }));
        go.send(()).unwrap();
        assert_eq!(heard.recv(), Ok(false));
    });
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[watched]
fn unwanted_results_are_dropped_once_before_the_end() {
    each_kind(|executor| {
        let drops = Arc::new(AtomicUsize::new(0));
        // A running task that will give a result when told.
        let start = || {
            let result = Counted(Arc::clone(&drops));
            let (here, begun) = mpsc::channel();
            let (go, gone) = mpsc::channel::<()>();
            let task = executor.submit(move || {
                here.send(()).unwrap();
                gone.recv().unwrap();
                result
            });
            begun.recv().unwrap();
            (task.unwrap(), go)
        };
        // The handle is dropped before the end, or after it, or the task is cancelled.
        let (task, go) = start();
        drop(task);
        go.send(()).unwrap();

        let (task, go) = start();
        go.send(()).unwrap();
        while !task.is_finished() {
            thread::yield_now();
        }
        drop(task);

        let (task, go) = start();
        task.cancel();
        go.send(()).unwrap();

        executor.close();
        assert_eq!(drops.load(SeqCst), 3);
    });
}

#[watched]
fn tasks_submit_tasks() {
    fn nest(executor: &Arc<ThreadPerTask>, depth: usize) -> usize {
        if depth == 0 {
            return 0;
        }
        let inner = Arc::clone(executor);
        let task = executor.submit(move || nest(&inner, depth - 1)).unwrap();
        1 + task.join().unwrap()
    }
    each_kind(|executor| assert_eq!(nest(&Arc::new(executor), 50), 50));
}

/// A waker that reports that a future can go on.
struct Woken(mpsc::Sender<()>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[watched]
fn a_task_can_be_awaited() {
    each_kind(|executor| {
        let (task, end) = stubborn(&executor);
        let (woken, wakes) = mpsc::channel();
        let waker = Waker::from(Arc::new(Woken(woken)));
        let mut context = Context::from_waker(&waker);
        let mut future = std::pin::pin!(async move { task.await });
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert!(wakes.try_recv().is_err());
        end.send(8).unwrap();
        wakes.recv().unwrap();
        match future.poll(&mut context) {
            Poll::Ready(result) => assert_eq!(result.unwrap(), 8),
            Poll::Pending => panic!("woken for nothing"),
        }
    });
}

#[watched]
fn debug_shows_state_and_count() {
    each_kind(|executor| {
        let (task, end) = stubborn(&executor);
        assert!(
            format!("{executor:?}").contains("state: open, running: 1"),
            "{executor:?}"
        );
        executor.shutdown();
        assert!(format!("{executor:?}").contains("state: shut down, running: 1"));
        drop(end);
        assert!(executor.await_termination(LONG).unwrap());
        assert!(format!("{executor:?}").contains("state: terminated, running: 0"));
        assert!(format!("{task:?}").starts_with("Task(VirtualThread[#"));
    });
}
