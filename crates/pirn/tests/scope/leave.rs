//! Ways out of a scope without a join, or before its subtasks have ended: by mistake, by `?`, by a
//! panic. All subtasks have ended when it is left.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{Builder, JoinError, State};
use pirn::thread;

const NOT_JOINED: &str = "the scope's owner did not join the subtasks that it has forked";

#[watched]
fn an_owner_that_does_not_join_its_forks_panics() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let message = panic_of(|| {
            Builder::new().open(|s| {
                let subtask = s.fork(|| counted_forever::<()>(&begun, &interrupted));
                until(|| begun.load(SeqCst) == 1);
                assert_eq!(subtask.state(), State::Unavailable);
                Ok(())
            })
        });
        assert_eq!(message, NOT_JOINED);
        assert_eq!(interrupted.load(SeqCst), 1);
        // Also if they are over.
        let message = panic_of(|| {
            Builder::new().open::<Oops, _, _>(|s| {
                until_done(&s.fork(|| Ok(())));
                Ok(())
            })
        });
        assert_eq!(message, NOT_JOINED);
    });
}

#[watched]
fn an_owner_that_does_not_join_and_has_no_forks() {
    everywhere(|| {
        let result = Builder::new().open::<Oops, _, _>(|_| Ok("nothing to do"));
        assert_eq!(result.unwrap(), "nothing to do");
        let result = Builder::new().open::<Oops, _, _>(|s| {
            s.cancel();
            Ok(())
        });
        result.unwrap();
    });
}

#[watched]
fn a_scope_that_its_owner_forgets_waits_all_the_same() {
    everywhere(|| {
        let done = AtomicBool::new(false);
        let message = panic_of(|| {
            Builder::new().open::<Oops, _, _>(|s| {
                s.fork(|| {
                    thread::yield_now();
                    done.store(true, SeqCst);
                    Ok(())
                });
                std::mem::forget(s);
                Ok(())
            })
        });
        assert_eq!(message, NOT_JOINED);
        assert!(done.load(SeqCst));
    });
}

#[watched]
fn an_error_of_the_owner_ends_the_scope() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let result: Result<(), JoinError<Oops>> = Builder::new().open(|s| {
            for _ in 0..3 {
                s.fork(|| counted_forever::<()>(&begun, &interrupted));
            }
            until(|| begun.load(SeqCst) == 3);
            Err("out of order")?;
            s.join()?;
            Ok(())
        });
        // The result is the owner's error, not the cancellation.
        assert!(matches!(result, Err(JoinError::Failed("out of order"))));
        assert_eq!(interrupted.load(SeqCst), 3);
    });
}

#[watched]
fn a_panic_of_the_owner_ends_the_scope() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let payload = payload_of(|| {
            Builder::new().open::<Oops, (), _>(|s| {
                for _ in 0..3 {
                    s.fork(|| counted_forever::<()>(&begun, &interrupted));
                }
                until(|| begun.load(SeqCst) == 3);
                resume_unwind(Box::new(7_u8))
            })
        });
        assert_eq!(payload.downcast_ref(), Some(&7_u8));
        assert_eq!(interrupted.load(SeqCst), 3);
        assert!(!thread::panicking());
    });
}

#[watched]
fn a_panic_of_the_owner_after_the_join() {
    everywhere(|| {
        let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let message = panic_of(|| {
            Builder::new().open_with(CancelOnFirst::default(), |s| {
                s.fork(|| {
                    begun.store(true, SeqCst);
                    forever::<()>().unwrap_err();
                    done.store(true, SeqCst);
                    Ok(())
                });
                until(|| begun.load(SeqCst));
                s.fork(|| Ok(()));
                s.join()?;
                panic!("after the join");
                #[allow(unreachable_code)]
                Ok(())
            })
        });
        assert_eq!(message, "after the join");
        assert!(done.load(SeqCst));
    });
}

#[watched]
fn the_end_waits_for_those_that_do_not_hear() {
    everywhere(|| {
        let done = AtomicUsize::new(0);
        let result = Builder::new().open(|s| {
            for _ in 0..3 {
                s.fork(|| {
                    for _ in 0..1000 {
                        thread::yield_now();
                    }
                    done.fetch_add(1, SeqCst);
                    Ok(())
                });
            }
            let begun = s.fork(|| Err::<(), _>("failed"));
            until(|| s.is_cancelled());
            drop(begun);
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Failed("failed"))));
        // Subtasks that had not begun when it was cancelled never began.
        assert!(done.load(SeqCst) <= 3);
        let seen = done.load(SeqCst);
        thread::yield_now();
        assert_eq!(done.load(SeqCst), seen, "something still runs");
    });
}

#[watched]
fn a_subtask_that_panics_in_a_scope_that_panics() {
    everywhere(|| {
        let message = panic_of(|| {
            Builder::new().open::<Oops, (), _>(|s| {
                s.fork(|| -> Result<(), Oops> { panic!("the subtask") });
                until(|| s.is_cancelled());
                panic!("the owner");
            })
        });
        assert_eq!(message, "the owner");
    });
}

#[watched]
fn subtask_handles_dropped_kept_and_forgotten() {
    everywhere(|| {
        let values = Builder::new().open(|s| {
            let kept: Vec<_> = (0..30).map(|i| s.fork(move || Ok::<_, Oops>(i))).collect();
            let mut read = Vec::new();
            for (i, subtask) in kept.into_iter().enumerate() {
                match i % 3 {
                    0 => drop(subtask),
                    1 => std::mem::forget(subtask),
                    _ => read.push(subtask),
                }
            }
            let all = s.join()?;
            Ok(read
                .into_iter()
                .map(|subtask| subtask.get(&all))
                .collect::<Vec<_>>())
        });
        assert_eq!(
            values.unwrap(),
            (0..30).filter(|i| i % 3 == 2).collect::<Vec<_>>()
        );
    });
}
