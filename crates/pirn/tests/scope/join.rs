//! Forking and joining: the threads of subtasks, and their results.
//!
//! The table lists the tests of `StructuredTaskScope` in JDK 25 and 26, and the corresponding tests
//! here. For those that the compiler makes impossible, the documentation of the named type has a
//! `compile_fail` example.
//!
//! | there | here |
//! |---|---|
//! | fork creates virtual threads, unnamed | `each_subtask_has_a_thread_of_its_own` |
//! | fork uses the factory | `limits`: `subtasks_run_on_threads_as_configured` |
//! | fork by a random thread, by a subtask | impossible: `TaskScope` is not `Send`, nor `Sync` |
//! | fork after join, with any result | impossible: the join takes the `TaskScope` |
//! | fork after cancellation | `cancel`: `nothing_is_started_after_a_cancellation` |
//! | fork after close | impossible: a `TaskScope` cannot leave its scope |
//! | fork rejected by the factory | `limits`: `a_thread_that_cannot_be_started_fails_the_join` |
//! | join with no subtasks | `a_join_with_no_forks` |
//! | join with remaining subtasks | `a_join_waits_for_those_that_run` |
//! | join after join, from the joiner, after close, by others | impossible: the join takes the `TaskScope` |
//! | retry of an interrupted join | not offered: an interrupted scope is cancelled |
//! | interrupt before and during join | `interrupt`: `the_owner_is_interrupted_…` |
//! | join when cancelled | `cancel`: `nothing_is_started_after_a_cancellation` |
//! | join with a timeout: not reached, reached, past | `deadlines` |
//! | cancellation, timeout interrupt threads | `cancel`: `blocked_…`; `deadlines`: `the_timeout_…` |
//! | close without join, forked or not | `leave`: `an_owner_that_does_not_join_…` |
//! | close after a join that failed | `interrupt`: `the_owner_is_interrupted_…` |
//! | close by a random thread, by a subtask, twice | impossible: the scope closes where the block ends (`TaskScope`) |
//! | interrupt before and during close | `interrupt`: `the_end_of_a_scope_is_not_interruptible` |
//! | closes out of order; the outer one first | impossible: the scope closes where the block ends (`TaskScope`) |
//! | `isCancelled` | `cancel`, throughout |
//! | `onFork`, `onComplete`, `result`, `timeout`: throw, cancel, are invoked | `custom_joiners` |
//! | `toString` of scope and subtask | `tree`: `debug_…`; `a_subtask_shows_its_state` |
//! | subtask: succeeded, failed, not completed, cancelled | `what_became_of_each`, `cancel` |
//! | `get` before join | impossible: it asks for the proof of a join (`Subtask`) |
//! | subtask read by other threads | impossible: `Subtask` is not `Send`, nor `Sync`; its value may be |
//! | every joiner: none, all, some, timeout | `joiners`, `deadlines` |
//! | joiners with a supplier of exceptions | not needed: `map_err` of the result |
//! | unmodifiable lists | not needed: the list is the caller's |
//! | default methods of joiners, nulls | `custom_joiners`: `a_joiner_of_few_words` |
//! | a joiner used twice | impossible: a scope takes its joiner |
//! | scoped values inherited, rebound; structure violations | `values` |
//! | a binding's end with a scope open in it | impossible: the scope closes where the block ends (`TaskScope`) |
//! | StressCancellation | `cancel`: `cancelled_in_the_middle_of_many_forks` |
//! | thread dumps | `tree` |

use std::collections::HashSet;
use std::sync::mpsc;

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, Failure, State, SubtaskError};
use pirn::thread;

#[watched]
fn each_subtask_has_a_thread_of_its_own() {
    everywhere(|| {
        let subtask = || {
            let me = thread::current();
            assert_eq!(me.name(), None);
            assert!(me.is_virtual());
            Ok::<_, Oops>(me.id())
        };
        let ids = Builder::new().open_with(scope::all_successful(), |s| {
            for _ in 0..50 {
                s.fork(subtask);
            }
            Ok(s.join()?.into_output())
        });
        let mut ids: HashSet<_> = ids.unwrap().into_iter().collect();
        assert!(ids.insert(thread::current().id()), "ran on the owner");
        assert_eq!(ids.len(), 51);
    });
}

#[watched]
fn subtasks_run_at_the_same_time() {
    everywhere(|| {
        let (left, from_left) = mpsc::sync_channel(0);
        let (right, from_right) = mpsc::sync_channel(0);
        let sum = Builder::new().open(|s| {
            let ping = s.fork(move || {
                left.send(1).unwrap();
                Ok::<_, Oops>(from_right.recv().unwrap())
            });
            let pong = s.fork(move || {
                let got: i32 = from_left.recv().unwrap();
                right.send(got + 1).unwrap();
                Ok(got)
            });
            let all = s.join()?;
            Ok((pong.get(&all), ping.get(&all)))
        });
        assert_eq!(sum.unwrap(), (1, 2));
    });
}

#[watched]
fn values_of_any_type_come_back_by_their_handles() {
    everywhere(|| {
        let values = Builder::new().open(|s| {
            let number = s.fork(|| Ok(7_u8));
            let text = s.fork(|| Ok(String::from("weft")));
            let nothing = s.fork(|| Ok(()));
            let large = s.fork(|| Ok::<_, Oops>([5_u64; 1000]));
            assert_eq!((number.index(), large.index()), (0, 3));
            let all = s.join()?;
            nothing.get(&all);
            // In another order.
            Ok((large.get(&all)[999], text.get(&all), number.get(&all)))
        });
        assert_eq!(values.unwrap(), (5, "weft".to_string(), 7));
    });
}

#[watched]
fn a_join_with_no_forks() {
    everywhere(|| {
        let joined = Builder::new().open::<Oops, _, _>(|s| {
            assert!(!s.is_cancelled());
            s.join()?;
            Ok("done")
        });
        assert_eq!(joined.unwrap(), "done");
    });
}

#[watched]
fn a_join_waits_for_those_that_run() {
    everywhere(|| {
        let (go, gone) = mpsc::channel();
        let me = thread::current();
        let releasing = std::thread::spawn(move || {
            until_it_waits(&me);
            go.send("foo").unwrap();
        });
        let value = Builder::new().open::<Oops, _, _>(|s| {
            let waiting = s.fork(move || Ok(gone.recv().unwrap()));
            let all = s.join()?;
            Ok(waiting.get(&all))
        });
        assert_eq!(value.unwrap(), "foo");
        releasing.join().unwrap();
    });
}

#[watched]
fn a_join_of_those_that_are_done_does_not_wait() {
    everywhere(|| {
        let value = Builder::new().open::<Oops, _, _>(|s| {
            let done = s.fork(|| Ok(1));
            until_done(&done);
            until_all_have_left(&s);
            thread::current().interrupt(); // `join` need not wait, so it does not take this
            let all = s.join()?;
            assert_eq!(done.state(), State::Success);
            Ok(done.get(&all))
        });
        assert_eq!(value.unwrap(), 1);
        assert!(thread::take_interrupt(), "the flag stays");
    });
}

#[watched]
fn what_became_of_each() {
    everywhere(|| {
        let result = Builder::new().open_with(scope::await_all(), |s| {
            let (go, gone) = mpsc::channel::<()>();
            let good = s.fork(|| Ok("good"));
            let bad = s.fork(|| Err::<(), Oops>("bad"));
            let worse = s.fork(|| -> Result<(), Oops> { panic!("worse") });
            let text = s.fork(|| -> Result<(), Oops> { std::panic::panic_any(7_u8) });
            let late = s.fork(move || Ok(gone.recv().unwrap_err()));
            assert_eq!(late.state(), State::Unavailable);
            drop(go);
            let ended = s.join()?;

            assert_eq!(good.state(), State::Success);
            assert_eq!(bad.state(), State::Failed);
            assert_eq!(worse.state(), State::Failed);
            assert_eq!(late.state(), State::Success);
            assert_eq!(*good.peek(&ended).unwrap().unwrap(), "good");
            let failure = bad.peek(&ended).unwrap().unwrap_err();
            assert!(matches!(failure, Failure::Failed("bad")));
            assert_eq!(good.result(&ended).unwrap(), "good");
            assert!(matches!(
                bad.result(&ended),
                Err(SubtaskError::Failed("bad"))
            ));
            match worse.result(&ended) {
                Err(SubtaskError::Panicked(panic)) => assert_eq!(panic.message(), Some("worse")),
                other => panic!("{other:?}"),
            }
            match text.result(&ended) {
                Err(SubtaskError::Panicked(panic)) => {
                    assert_eq!(panic.into_payload().downcast_ref(), Some(&7_u8));
                }
                other => panic!("{other:?}"),
            }
            Ok(())
        });
        result.unwrap();
    });
}

#[watched]
fn a_subtask_shows_its_state() {
    everywhere(|| {
        let result = Builder::new().open_with(scope::await_all(), |s| {
            let (go, gone) = mpsc::channel::<()>();
            let good = s.fork(move || Ok(gone.recv().unwrap_err()));
            let bad = s.fork(|| Err::<(), Oops>("bad"));
            assert!(format!("{good:?}").contains("Unavailable"), "{good:?}");
            drop(go);
            s.join()?;
            assert!(format!("{good:?}").contains("Success"), "{good:?}");
            assert!(format!("{bad:?}").contains("index: 1"), "{bad:?}");
            assert!(format!("{bad:?}").contains("Failed"), "{bad:?}");
            Ok(())
        });
        result.unwrap();
    });
}

#[watched]
fn the_thread_of_a_subtask_can_be_interrupted_alone() {
    let result = scope::open_with(scope::await_all(), |s| {
        let one = s.fork(forever::<()>);
        let other = s.fork(|| match thread::park_interruptible() {
            Ok(()) => Ok("unparked"),
            Err(_) => Err("interrupted"),
        });
        one.thread().unwrap().interrupt();
        until_done(&one);
        assert!(!s.is_cancelled());
        other.thread().unwrap().unpark();
        let ended = s.join()?;
        assert!(matches!(
            one.result(&ended),
            Err(SubtaskError::Failed("interrupted"))
        ));
        Ok(other.result(&ended).unwrap())
    });
    assert_eq!(result.unwrap(), "unparked");
}

#[watched]
fn ten_thousand_forks() {
    let numbers: Vec<u64> = (0..10_000).collect();
    let sum = pirn::scope::open(|s| {
        let forks: Vec<_> = numbers
            .iter()
            .map(|n| s.fork(move || Ok::<_, Oops>(n + 1)))
            .collect();
        let all = s.join()?;
        Ok(forks.into_iter().map(|fork| fork.get(&all)).sum::<u64>())
    });
    assert_eq!(sum.unwrap(), 50_005_000);
}

#[watched]
fn short_forms() {
    let (a, b) = scope::all((|| Ok(1), || Ok::<_, Oops>("b"))).unwrap();
    assert_eq!((a, b), (1, "b"));
    let eight = (
        || Ok(1),
        || Ok(2),
        || Ok(3),
        || Ok(4),
        || Ok(5),
        || Ok(6),
        || Ok(7),
        || Ok::<_, Oops>("8"),
    );
    assert_eq!(scope::all(eight).unwrap(), (1, 2, 3, 4, 5, 6, 7, "8"));
    let squares = scope::all([1, 2, 3].map(|n| move || Ok::<i32, Oops>(n * n)));
    assert_eq!(squares.unwrap(), [1, 4, 9]);
    let squares: Vec<_> = (1..4).map(|n| move || Ok::<i32, Oops>(n * n)).collect();
    assert_eq!(scope::all(squares).unwrap(), [1, 4, 9]);
    let none: Vec<fn() -> Result<(), Oops>> = Vec::new();
    assert_eq!(scope::all(none).unwrap(), []);

    let failed = scope::all((forever::<()>, || Err::<(), _>("bad")));
    assert!(matches!(failed, Err(scope::JoinError::Failed("bad"))));
    let tasks: [fn() -> Result<u8, Oops>; 3] = [forever, || Err("bad"), || Ok(3)];
    assert_eq!(scope::any(tasks).unwrap(), 3);
    let none = scope::any(Vec::<fn() -> Result<(), Oops>>::new());
    assert!(matches!(none, Err(scope::JoinError::NoSubtasks)));
}
