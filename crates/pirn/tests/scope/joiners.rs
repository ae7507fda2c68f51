//! The results of the library's joiners: with no subtasks, and with subtasks that succeed, fail,
//! panic.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, State, SubtaskError};

/// A subtask that succeeds, one that fails, one that panics.
fn good() -> Result<u32, Oops> {
    Ok(7)
}

fn bad() -> Result<u32, Oops> {
    Err("bad")
}

fn worse() -> Result<u32, Oops> {
    panic!("worse")
}

type Task = fn() -> Result<u32, Oops>;

#[watched]
fn await_all_successful_with_all_that_succeed() {
    everywhere(|| {
        let sum = Builder::new().open(|s| {
            let (a, b) = (s.fork(good), s.fork(good));
            let all = s.join()?;
            assert_eq!(a.state(), State::Success);
            Ok(a.get(&all) + b.get(&all))
        });
        assert_eq!(sum.unwrap(), 14);
    });
}

#[watched]
fn await_all_successful_fails_with_the_first_failure() {
    everywhere(|| {
        for tasks in [[good, bad], [bad, good], [bad, forever]] as [[Task; 2]; 3] {
            let result = Builder::new().open(|s| {
                let subtasks = tasks.map(|task| s.fork(task));
                let unjoined = s.join().unwrap_err();
                assert!(matches!(unjoined.error(), JoinError::Failed("bad")));
                for (subtask, task) in subtasks.into_iter().zip(tasks) {
                    match subtask.result(&unjoined) {
                        Ok(value) => assert_eq!(value, 7),
                        // The failure is in the join's result.
                        Err(SubtaskError::Taken) => assert_eq!(task(), Err("bad")),
                        Err(SubtaskError::Unavailable) => {}
                        other => panic!("{other:?}"),
                    }
                }
                Err::<(), _>(unjoined.into())
            });
            assert!(matches!(result, Err(JoinError::Failed("bad"))));
        }
    });
}

#[watched]
fn await_all_successful_passes_on_panics() {
    everywhere(|| {
        let result = Builder::new().open(|s| {
            s.fork(|| -> Result<(), Oops> { std::panic::panic_any(vec![1, 2]) });
            s.fork(forever::<()>);
            s.join()?;
            Ok(())
        });
        match result {
            Err(JoinError::Panicked(panic)) => {
                let payload = panic.into_payload().downcast::<Vec<i32>>();
                assert_eq!(*payload.unwrap(), [1, 2]);
            }
            other => panic!("{other:?}"),
        }
    });
}

#[watched]
fn all_successful_gives_the_values_in_the_order_of_forks() {
    everywhere(|| {
        let turn = AtomicUsize::new(0);
        let turn = &turn;
        let values = Builder::new().open_with(scope::all_successful(), |s| {
            for i in 0..5 {
                // They complete in the reverse order.
                s.fork(move || {
                    until(|| turn.load(SeqCst) == 4 - i);
                    turn.fetch_add(1, SeqCst);
                    Ok::<_, Oops>(i)
                });
            }
            Ok(s.join()?.into_output())
        });
        assert_eq!(values.unwrap(), [0, 1, 2, 3, 4]);
    });
}

#[watched]
fn all_successful_of_none() {
    everywhere(|| {
        let values = Builder::new().open_with(scope::all_successful::<u32, Oops>(), |s| {
            Ok(s.join()?.into_output())
        });
        assert!(values.unwrap().is_empty());
    });
}

#[watched]
fn all_successful_fails_with_the_first_failure() {
    everywhere(|| {
        for tasks in [[good, bad], [bad, forever], [forever, bad], [bad, bad]] as [[Task; 2]; 4] {
            let result = Builder::new().open_with(scope::all_successful(), |s| {
                let _kept = tasks.map(|task| s.fork(task));
                Ok(s.join()?.into_output())
            });
            assert!(
                matches!(result, Err(JoinError::Failed("bad"))),
                "{result:?}"
            );
        }
        let result = Builder::new().open_with(scope::all_successful(), |s| {
            s.fork(forever);
            s.fork(worse);
            Ok(s.join()?.into_output())
        });
        match result {
            Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), Some("worse")),
            other => panic!("{other:?}"),
        }
    });
}

#[watched]
fn any_successful_gives_the_first_success() {
    everywhere(|| {
        let tasks = [
            &[good as Task] as &[Task],
            &[bad, good],
            &[good, bad],
            &[worse, good, bad],
            &[forever, forever, good],
        ];
        for tasks in tasks {
            let value = Builder::new().open_with(scope::any_successful(), |s| {
                for task in tasks {
                    s.fork(task);
                }
                Ok(s.join()?.into_output())
            });
            assert_eq!(value.unwrap(), 7);
        }
    });
}

#[watched]
fn any_successful_fails_if_all_do_or_there_are_none() {
    everywhere(|| {
        let result = Builder::new().open_with(scope::any_successful(), |s| {
            let first = s.fork(bad);
            until_done(&first);
            s.fork(worse);
            assert_eq!(first.state(), State::Failed);
            Ok(s.join()?.into_output())
        });
        assert!(
            matches!(result, Err(JoinError::Failed("bad"))),
            "{result:?}"
        );

        let result = Builder::new().open_with(scope::any_successful(), |s| {
            s.fork(worse);
            Ok(s.join()?.into_output())
        });
        assert!(matches!(result, Err(JoinError::Panicked(_))), "{result:?}");

        let result = Builder::new().open_with(scope::any_successful::<u32, Oops>(), |s| {
            Ok(s.join()?.into_output())
        });
        assert!(matches!(result, Err(JoinError::NoSubtasks)), "{result:?}");
    });
}

#[watched]
fn await_all_waits_for_all_whatever_comes_of_them() {
    everywhere(|| {
        let result = Builder::new().open_with(scope::await_all(), |s| {
            let subtasks = [good, bad, worse, bad, good].map(|task: Task| s.fork(task));
            let ended = s.join()?;
            let states = subtasks.each_ref().map(|subtask| subtask.state());
            use State::{Failed, Success};
            assert_eq!(states, [Success, Failed, Failed, Failed, Success]);
            Ok(subtasks.map(|subtask| subtask.result(&ended).ok()))
        });
        assert_eq!(result.unwrap(), [Some(7), None, None, None, Some(7)]);

        let none = Builder::new().open_with(scope::await_all::<Oops>(), |s| {
            s.join().map(drop).map_err(Into::into)
        });
        none.unwrap();
    });
}

#[watched]
fn all_until_never_gives_what_came_of_each() {
    everywhere(|| {
        let joiner = scope::all_until(|_| false);
        let results = Builder::new().open_with(joiner, |s| {
            for task in [good, bad, worse] as [Task; 3] {
                s.fork(task);
            }
            Ok(s.join()?.into_output())
        });
        match &*results.unwrap() {
            [
                Ok(7),
                Err(SubtaskError::Failed("bad")),
                Err(SubtaskError::Panicked(panic)),
            ] => {
                assert_eq!(panic.message(), Some("worse"));
            }
            other => panic!("{other:?}"),
        }

        let joiner = scope::all_until::<u32, Oops, _>(|_| false);
        let none = Builder::new().open_with(joiner, |s| Ok(s.join()?.into_output()));
        assert!(none.unwrap().is_empty());
    });
}

#[watched]
fn all_until_the_first_success() {
    everywhere(|| {
        let joiner = scope::all_until(|subtask| subtask.is_success());
        let results = Builder::new().open_with(joiner, |s| {
            for task in [forever, good, forever] as [Task; 3] {
                s.fork(task);
            }
            Ok(s.join()?.into_output())
        });
        let results = results.unwrap();
        use SubtaskError::Unavailable;
        assert!(
            matches!(&*results, [Err(Unavailable), Ok(7), Err(Unavailable)]),
            "{results:?}"
        );
    });
}

#[watched]
fn all_until_two_have_failed_counts_all_forks() {
    everywhere(|| {
        let failures = AtomicUsize::new(0);
        let joiner =
            scope::all_until(|subtask| !subtask.is_success() && failures.fetch_add(1, SeqCst) >= 1);
        let mut forks = 0;
        let results = Builder::new().open_with(joiner, |s| {
            while !s.is_cancelled() {
                s.fork(good);
                s.fork(bad);
                forks += 2;
            }
            // They are among the results as well.
            s.fork(good);
            s.fork(good);
            Ok(s.join()?.into_output())
        });
        let results = results.unwrap();
        assert_eq!(results.len(), forks + 2);
        let failed = |result: &&_| matches!(result, Err(SubtaskError::Failed("bad")));
        assert!(results.iter().filter(failed).count() >= 2);
        assert!(matches!(
            results[forks..],
            [Err(SubtaskError::Unavailable), Err(_)]
        ));
    });
}

#[watched]
fn a_predicate_that_panics_fails_the_join() {
    everywhere(|| {
        let joiner = scope::all_until(|_| panic!("no idea"));
        let result = Builder::new().open_with(joiner, |s| {
            s.fork(forever);
            s.fork(good);
            Ok(s.join()?.into_output())
        });
        match result {
            Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), Some("no idea")),
            other => panic!("{other:?}"),
        }
    });
}
