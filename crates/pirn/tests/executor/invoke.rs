//! Executors: running several tasks and waiting for all of them, or for the first that succeeds.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::watched;
use crate::fixture::{LONG, each_kind, interrupt_me_soon, sleep_until_interrupted};
use pirn::executor::{InvokeAllError, InvokeAnyError, SubmitError, TaskError, ThreadPerTask};
use pirn::thread;

type Work<T> = Box<dyn FnOnce() -> T + Send>;

fn work<T>(f: impl FnOnce() -> T + Send + 'static) -> Work<T> {
    Box::new(f)
}

/// Returns two tasks that sleep until they are interrupted, and then `end`, and the receiver of
/// their messages. When the second has begun, so has the first.
fn two_sleepers<T: 'static>(end: fn() -> T) -> (Vec<Work<T>>, mpsc::Receiver<&'static str>) {
    let (here, heard) = mpsc::channel();
    let sleeper = |here: mpsc::Sender<_>| {
        work(move || {
            sleep_until_interrupted(&here);
            end()
        })
    };
    (vec![sleeper(here.clone()), sleeper(here)], heard)
}

/// Asserts that every task that began was interrupted. (One that was cancelled early never began.)
fn assert_interrupted(heard: &mpsc::Receiver<&'static str>) {
    let (asleep, interrupted): (Vec<_>, Vec<_>) = heard.iter().partition(|what| *what == "asleep");
    assert_eq!(asleep.len(), interrupted.len());
}

#[watched]
fn invoke_all_gives_all_in_order() {
    each_kind(|executor| {
        // Each waits for the one after it, so that they end in the opposite order.
        let (mut tasks, mut next) = (Vec::new(), None::<mpsc::Receiver<()>>);
        for i in (0..10).rev() {
            let (done, wait) = mpsc::channel();
            let after = next.replace(wait);
            tasks.push(work(move || {
                after.map(|after| after.recv());
                drop(done);
                i
            }));
        }
        tasks.reverse();
        let results = executor.invoke_all(tasks).unwrap();
        let values: Vec<i32> = results.into_iter().map(Result::unwrap).collect();
        assert_eq!(values, (0..10).collect::<Vec<_>>());
    });
}

#[watched]
fn invoke_all_of_nothing_is_nothing() {
    each_kind(|executor| {
        let none: [fn(); 0] = [];
        assert!(executor.invoke_all(none).unwrap().is_empty());
        assert!(
            executor
                .invoke_all_timeout(none, Duration::ZERO)
                .unwrap()
                .is_empty()
        );
    });
}

#[watched]
fn a_panic_in_invoke_all_is_one_of_its_results() {
    each_kind(|executor| {
        let tasks = [work(|| 1), work(|| panic!("snap")), work(|| 3)];
        let results = executor.invoke_all(tasks).unwrap();
        assert!(matches!(results[0], Ok(1)) && matches!(results[2], Ok(3)));
        match &results[1] {
            Err(TaskError::Panicked(panicked)) => assert_eq!(panicked.message(), Some("snap")),
            other => panic!("{other:?}"),
        }
    });
}

#[watched]
fn invoke_all_in_time_gives_all() {
    each_kind(|executor| {
        let tasks = (0..10).map(|i| move || i);
        let results = executor.invoke_all_timeout(tasks, LONG).unwrap();
        assert!(results.into_iter().map(Result::unwrap).eq(0..10));
    });
}

#[watched]
fn invoke_all_cancels_what_is_late() {
    each_kind(|executor| {
        let (mut tasks, heard) = two_sleepers(|| 0);
        tasks.insert(1, work(|| 1));
        let results = executor.invoke_all_timeout(tasks, Duration::from_millis(5));
        let results = results.unwrap();
        assert!(matches!(results[0], Err(TaskError::Cancelled)));
        // The quick one succeeds, unless the machine is very slow.
        assert!(matches!(results[1], Ok(1) | Err(TaskError::Cancelled)));
        assert!(matches!(results[2], Err(TaskError::Cancelled)));
        assert_interrupted(&heard);
    });
}

#[watched]
fn an_interrupt_ends_invoke_all() {
    each_kind(|executor| {
        let (tasks, heard) = two_sleepers(|| ());
        interrupt_me_soon();
        let result = executor.invoke_all(tasks);
        assert!(
            matches!(result, Err(InvokeAllError::Interrupted)),
            "{result:?}"
        );
        assert!(pirn::thread::is_interrupt(&result.unwrap_err()));
        assert!(thread::take_interrupt());
        assert_interrupted(&heard);
    });
}

#[watched]
fn an_interrupted_thread_invokes_nothing_that_takes_time() {
    each_kind(|executor| {
        thread::current().interrupt();
        let (tasks, heard) = two_sleepers(|| ());
        let result = executor.invoke_all_timeout(tasks, LONG);
        assert!(
            matches!(result, Err(InvokeAllError::Interrupted)),
            "{result:?}"
        );
        assert_interrupted(&heard);
        let (tasks, heard) = two_sleepers(|| Err::<(), _>(()));
        let result = executor.invoke_any(tasks);
        assert!(
            matches!(result, Err(InvokeAnyError::Interrupted)),
            "{result:?}"
        );
        assert!(thread::take_interrupt());
        assert_interrupted(&heard);
    });
}

#[watched]
fn a_shut_down_executor_invokes_nothing() {
    each_kind(|executor| {
        executor.shutdown();
        let result = executor.invoke_all([|| ()]);
        let shutdown = Err(InvokeAllError::Submit(SubmitError::Shutdown));
        assert_eq!(
            format!("{result:?}"),
            format!("{shutdown:?}", shutdown = shutdown as Result<(), _>)
        );
        let result = executor.invoke_any([|| Ok::<_, ()>(())]);
        assert!(matches!(
            result,
            Err(InvokeAnyError::Submit(SubmitError::Shutdown))
        ));
    });
}

/// Returns an iterator that does something after the tasks.
fn then<T>(tasks: Vec<T>, end: impl FnOnce() -> Option<T>) -> impl Iterator<Item = T> {
    tasks.into_iter().chain(std::iter::once_with(end).flatten())
}

#[watched]
fn what_has_started_is_cancelled_when_the_rest_cannot_start() {
    each_kind(|executor| {
        // Shut down between the tasks.
        let (tasks, heard) = two_sleepers(|| ());
        let tasks = then(tasks, || {
            executor.shutdown();
            Some(work(|| ()))
        });
        let result = executor.invoke_all(tasks);
        assert!(matches!(
            result,
            Err(InvokeAllError::Submit(SubmitError::Shutdown))
        ));
        assert_interrupted(&heard);
    });
    each_kind(|executor| {
        // The iterator panics.
        let (tasks, heard) = two_sleepers(|| ());
        let tasks = then(tasks, || panic!("snap"));
        assert!(catch_unwind(AssertUnwindSafe(|| executor.invoke_all(tasks))).is_err());
        assert_interrupted(&heard);
    });
}

#[watched]
fn invoke_any_gives_the_first_success_and_cancels_the_rest() {
    each_kind(|executor| {
        let (mut tasks, heard) = two_sleepers(|| Err("interrupted"));
        tasks.insert(0, work(|| Err("failed")));
        tasks.insert(1, work(|| panic!("snap")));
        tasks.push(work(|| Ok(7)));
        assert_eq!(executor.invoke_any(tasks).unwrap(), 7);
        assert_interrupted(&heard);
    });
}

#[watched]
fn invoke_any_does_not_wait_for_the_losers() {
    each_kind(|executor| {
        let (end, ended) = mpsc::channel::<()>();
        let (here, begun) = mpsc::channel();
        let tasks = [
            work(move || {
                here.send(()).unwrap();
                ended.recv().map_err(drop).map(|()| 1) // Ignores interrupts.
            }),
            work(move || begun.recv().map_err(drop).map(|()| 2)),
        ];
        assert_eq!(executor.invoke_any(tasks).unwrap(), 2);
        end.send(()).unwrap(); // Only now can the loser end.
    });
}

#[watched]
fn invoke_any_stops_starting_when_one_has_won() {
    each_kind(|executor| {
        let (won, has_won) = mpsc::channel();
        let tasks = (0_u64..).map(|i| {
            if i > 0 {
                thread::yield_now();
            }
            let won = won.clone();
            move || won.send(()).map(|()| i)
        });
        executor.invoke_any(tasks).unwrap(); // There are infinitely many of them.
        assert_eq!(has_won.recv(), Ok(()));
    });
}

#[watched]
fn when_all_fail_the_first_failure_is_given() {
    thread_local! {
        /// Dropped at the end of the thread.
        static TELLS: Cell<Option<mpsc::Sender<()>>> = const { Cell::new(None) };
    }
    each_kind(|executor| {
        let (first, second) = mpsc::channel::<()>();
        let tasks = [
            work(move || {
                let _ = second.recv(); // Until the other's thread has ended.
                Err::<(), _>("late")
            }),
            work(move || {
                TELLS.set(Some(first));
                Err("early")
            }),
        ];
        let error = executor.invoke_any(tasks).unwrap_err();
        assert!(
            matches!(error, InvokeAnyError::Failed("early")),
            "{error:?}"
        );
        assert_eq!(error.to_string(), "all tasks failed, the first with: early");

        let error = executor.invoke_any([work(|| -> Result<(), &str> { panic!("snap") })]);
        let error = error.unwrap_err();
        assert!(matches!(error, InvokeAnyError::Panicked(_)), "{error:?}");
        assert!(error.to_string().ends_with("the task panicked: snap"));
    });
}

#[watched]
fn invoke_any_of_nothing_is_an_error() {
    each_kind(|executor| {
        let none: [fn() -> Result<(), ()>; 0] = [];
        assert!(matches!(
            executor.invoke_any(none),
            Err(InvokeAnyError::Empty)
        ));
    });
}

#[watched]
fn invoke_any_gives_up_in_time() {
    each_kind(|executor| {
        let (tasks, heard) = two_sleepers(|| Err::<(), _>(()));
        let result = executor.invoke_any_timeout(tasks, Duration::from_millis(5));
        assert!(
            matches!(result, Err(InvokeAnyError::TimedOut)),
            "{result:?}"
        );
        assert_interrupted(&heard);
        assert_eq!(
            executor
                .invoke_any_timeout([|| Ok::<_, ()>(1)], LONG)
                .unwrap(),
            1
        );
    });
}

#[watched]
fn an_interrupt_ends_invoke_any() {
    each_kind(|executor| {
        let (tasks, heard) = two_sleepers(|| Err::<(), _>(()));
        interrupt_me_soon();
        let result = executor.invoke_any(tasks);
        assert!(
            matches!(result, Err(InvokeAnyError::Interrupted)),
            "{result:?}"
        );
        assert!(thread::take_interrupt());
        assert_interrupted(&heard);
    });
}

#[watched]
fn tasks_invoke_tasks() {
    each_kind(|executor| {
        let executor = Arc::new(executor);
        let sum = |executor: &ThreadPerTask, of: u64| -> u64 {
            let results = executor.invoke_all((0..of).map(|i| move || i)).unwrap();
            results.into_iter().map(Result::unwrap).sum()
        };
        let inner = Arc::clone(&executor);
        let tasks = (0..10).map(|i| {
            let inner = Arc::clone(&inner);
            move || {
                let first = inner.invoke_any([move || Ok::<_, ()>(i)]).unwrap();
                sum(&inner, first)
            }
        });
        let results = executor.invoke_all(tasks).unwrap();
        let sums: Vec<u64> = results.into_iter().map(Result::unwrap).collect();
        assert_eq!(sums, [0, 0, 1, 3, 6, 10, 15, 21, 28, 36]);
    });
}
