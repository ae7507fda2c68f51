//! Scopes in which user code fails at the worst moment: the scope is still left, and no thread
//! remains.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::common::{child, watched};
use pirn::scope::{self, JoinError, State};
use pirn::{Runnable, Scheduler, thread};

type Failed = JoinError<&'static str>;

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped a bomb");
    }
}

/// Longer than any test, unless interrupted.
const FOREVER: Duration = Duration::from_secs(3600);

#[watched]
fn a_name_that_cannot_be_one_fails_the_fork() {
    {
        let builder = scope::Builder::new().threads(thread::Builder::new().name("nul\0".into()));
        let result: Result<(), Failed> = builder.open(|s| {
            let subtask = s.fork(|| Ok(()));
            assert_eq!(subtask.state(), State::Unavailable);
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Fork(_))), "{result:?}");
    }
}

#[watched]
fn what_cannot_be_started_is_dropped() {
    let shared = Arc::new(());
    {
        let builder = scope::Builder::new().threads(thread::Builder::new().name("nul\0".into()));
        let captured = Arc::clone(&shared);
        let result: Result<(), Failed> = builder.open(|s| {
            s.fork(move || {
                drop(captured);
                Ok(())
            });
            s.join()?;
            Ok(())
        });
        assert!(result.is_err());
        assert_eq!(Arc::strong_count(&shared), 1, "the closure was forgotten");
    }
}

/// Cancels a scope in which one of the listeners panics; the others must still be interrupted.
fn cancel_through_a_panicking_listener(builder: scope::Builder, cancel_as_owner: bool) {
    let (here, arrived) = mpsc::channel();
    let result: Result<(), Failed> = builder.open(|s| {
        for i in 0..100 {
            let here = here.clone();
            s.fork(move || {
                let _guard = thread::on_interrupt(move || {
                    if i % 40 == 0 {
                        resume_unwind(Box::new("expected")); // says nothing
                    }
                });
                here.send(()).unwrap();
                thread::sleep_interruptible(FOREVER).map_err(|_| "interrupted")
            });
        }
        for _ in 0..100 {
            arrived.recv().unwrap();
        }
        if cancel_as_owner {
            s.cancel();
        } else {
            s.fork(|| Err::<(), _>("failed"));
        }
        s.join()?;
        Ok(())
    });
    match result {
        Err(JoinError::Failed("failed")) => assert!(!cancel_as_owner),
        Err(JoinError::Cancelled) => assert!(cancel_as_owner),
        other => panic!("{other:?}"),
    }
}

#[watched]
fn listeners_that_panic_keep_nobody_from_being_interrupted() {
    cancel_through_a_panicking_listener(scope::Builder::new(), true);
    cancel_through_a_panicking_listener(scope::Builder::new(), false);
}

#[watched]
fn listeners_that_panic_do_not_stop_the_clock() {
    let builder = scope::Builder::new().timeout(Duration::from_millis(20));
    let result: Result<(), Failed> = builder.open(|s| {
        for _ in 0..40 {
            s.fork(move || {
                let _guard = thread::on_interrupt(|| resume_unwind(Box::new("expected")));
                thread::sleep_interruptible(FOREVER).map_err(|_| "interrupted")
            });
        }
        s.join()?;
        Ok(())
    });
    assert!(matches!(result, Err(JoinError::TimedOut)), "{result:?}");
}

/// A payload whose destructor panics, with another such payload.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic_any(Bomb);
    }
}

#[watched]
fn payloads_that_panic_when_they_are_dropped() {
    {
        let builder = scope::Builder::new();
        let (here, arrived) = mpsc::channel();
        let result: Result<(), Failed> = builder.open(|s| {
            s.fork::<(), _>(move || {
                here.send(thread::current()).unwrap();
                let _ = thread::sleep_interruptible(FOREVER);
                panic_any(Payload); // too late for anybody to have it
            });
            arrived.recv().unwrap();
            s.cancel();
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)), "{result:?}");
    }
}

#[watched]
fn a_closure_that_panics_when_a_scheduler_drops_it() {
    #[derive(Default)]
    struct Drops(Mutex<Vec<Runnable>>);
    impl Scheduler for Drops {
        fn schedule(&self, thread: Runnable) {
            self.0.lock().unwrap().push(thread);
        }
    }
    let scheduler = Arc::new(Drops::default());
    let builder = thread::Builder::new().scheduler(Arc::clone(&scheduler) as Arc<dyn Scheduler>);
    let result: Result<(), Failed> = scope::Builder::new().threads(builder).open(|s| {
        let bomb = Bomb;
        s.fork(move || {
            let _bomb = &bomb;
            Ok(())
        });
        let given = std::mem::take(&mut *scheduler.0.lock().unwrap());
        assert_eq!(given.len(), 1);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(given)));
        s.join()?;
        Ok(())
    });
    assert!(matches!(result, Err(JoinError::Panicked(_))), "{result:?}");
}

/// The lock of a scope is on its owner's stack: the last thread to leave must have released it
/// before the owner goes on.
#[watched]
fn nobody_touches_the_stack_of_an_owner_that_has_gone_on() {
    #[inline(never)]
    fn scope_of_one(count: &AtomicUsize) {
        let result: Result<(), Failed> = pirn::scope::open(|s| {
            s.fork(|| {
                count.fetch_add(1, SeqCst);
                Ok(())
            });
            s.join()?;
            Ok(())
        });
        result.unwrap();
    }
    #[inline(never)]
    fn is_untouched() -> bool {
        let mut stack = [0_u8; 16 << 10];
        black_box(&mut stack).fill(0xAA);
        for _ in 0..100 {
            std::hint::spin_loop();
        }
        black_box(&stack).iter().all(|byte| *byte == 0xAA)
    }
    // With idle carriers, for which a waiting platform thread spins before it sleeps.
    let variables = [("PIRN_PARALLELISM", "4")];
    child::isolated(&variables, || {
        let count = AtomicUsize::new(0);
        std::thread::scope(|platform| {
            for _ in 0..2 {
                platform.spawn(|| {
                    for round in 0..15_000 {
                        scope_of_one(&count);
                        assert!(is_untouched(), "in round {round}");
                    }
                });
            }
        });
        assert_eq!(count.load(SeqCst), 30_000);
    });
}
