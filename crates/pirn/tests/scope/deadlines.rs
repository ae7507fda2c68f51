//! Timeouts and deadlines: reached or not, past, nested, of one join, with partial results.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::{child, on_virtual, watched};
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, State, SubtaskError};
use pirn::thread;

/// Soon enough for a test to wait for.
const SOON: Duration = Duration::from_millis(5);

/// Waits for the end of endless subtasks, which only the timeout can cause.
fn times_out(builder: Builder) {
    let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let result = builder.open(|s| {
        let subtask = s.fork(|| counted_forever::<()>(&begun, &interrupted));
        let unjoined = s.join().unwrap_err();
        assert!(
            matches!(unjoined.error(), JoinError::TimedOut),
            "{unjoined:?}"
        );
        assert_eq!(subtask.state(), State::Unavailable);
        assert!(matches!(
            subtask.result(&unjoined),
            Err(SubtaskError::Unavailable)
        ));
        Err::<(), _>(unjoined.into())
    });
    assert!(matches!(result, Err(JoinError::TimedOut)));
    assert_eq!(begun.load(SeqCst), interrupted.load(SeqCst));
}

/// Asserts that the timeout does not end it.
fn does_not_time_out(builder: Builder) {
    let value = builder.open::<Oops, _, _>(|s| {
        let subtask = s.fork(|| {
            thread::sleep_interruptible(SOON).map_err(|_| "interrupted")?;
            Ok(7)
        });
        let all = s.join()?;
        Ok(subtask.get(&all))
    });
    assert_eq!(value.unwrap(), 7);
}

#[watched]
fn the_timeout_comes_first() {
    everywhere(|| {
        let start = Instant::now();
        times_out(Builder::new().timeout(SOON));
        times_out(Builder::new().deadline(Instant::now() + SOON));
        assert!(start.elapsed() >= 2 * SOON);
    });
}

#[watched]
fn of_timeout_and_deadline_the_earlier_holds() {
    everywhere(|| {
        let now = Instant::now();
        times_out(Builder::new().timeout(SOON).deadline(now + FOREVER));
        times_out(Builder::new().timeout(FOREVER).deadline(now + SOON));
        times_out(Builder::new().timeout(Duration::MAX).deadline(now + SOON));
    });
}

#[watched]
fn the_subtasks_come_first() {
    everywhere(|| {
        for timeout in [FOREVER, Duration::MAX, Duration::from_nanos(u64::MAX)] {
            does_not_time_out(Builder::new().timeout(timeout));
        }
        // The latest time that `Instant` can express.
        let (mut far, mut step) = (Instant::now(), Duration::from_secs(1 << 62));
        while step > Duration::from_secs(1) {
            far = far.checked_add(step).unwrap_or(far);
            step /= 2;
        }
        does_not_time_out(Builder::new().deadline(far));
    });
}

#[watched]
fn the_time_is_up_before_the_scope_is_open() {
    everywhere(|| {
        let past = Instant::now();
        while Instant::now() == past {}
        for builder in [
            Builder::new().timeout(Duration::ZERO),
            Builder::new().deadline(past),
        ] {
            let result = builder.open::<Oops, _, _>(|s| {
                assert!(s.is_cancelled());
                let subtask = s.fork(|| -> Result<(), _> { unreachable!("the time was up") });
                assert_eq!(subtask.state(), State::Unavailable);
                s.join()?;
                Ok(())
            });
            assert!(matches!(result, Err(JoinError::TimedOut)));
        }
    });
}

#[watched]
fn the_time_is_up_before_the_join() {
    everywhere(|| {
        let result = Builder::new().timeout(SOON).open::<Oops, _, _>(|s| {
            let done = s.fork(|| Ok(7));
            until(|| s.is_cancelled());
            let late = s.fork(|| Ok(8));
            let unjoined = s.join().unwrap_err();
            assert_eq!(late.state(), State::Unavailable);
            // Holds unless the machine is very slow.
            assert!(matches!(
                done.result(&unjoined),
                Ok(7) | Err(SubtaskError::Unavailable)
            ));
            Err::<(), _>(unjoined.into())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)));
    });
}

#[watched]
fn the_time_is_up_after_the_join() {
    everywhere(|| {
        let value = Builder::new().timeout(SOON).open::<Oops, _, _>(|s| {
            let subtask = s.fork(|| Ok(7));
            match s.join() {
                Ok(all) => {
                    thread::sleep(2 * SOON);
                    Ok(subtask.get(&all))
                }
                Err(_) => Ok(7), // a very slow machine
            }
        });
        assert_eq!(value.unwrap(), 7);
    });
}

#[watched]
fn the_timeout_interrupts_while_the_owner_does_something_else() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let result = Builder::new().timeout(SOON).open(|s| {
            for _ in 0..40 {
                s.fork(|| counted_forever::<()>(&begun, &interrupted));
            }
            // The join does not cancel it: it comes later.
            until(|| s.is_cancelled());
            until(|| begun.load(SeqCst) == interrupted.load(SeqCst));
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)));
    });
}

#[watched]
fn what_is_there_when_the_time_is_up() {
    everywhere(|| {
        let timeout = || Builder::new().timeout(Duration::from_millis(20));
        let result = timeout().open(|s| {
            let quick = s.fork(|| Ok("quick"));
            let slow = s.fork(forever::<()>);
            until(|| quick.state() == State::Success || s.is_cancelled());
            let late = s.join().unwrap_err();
            let quick = quick.result(&late);
            assert!(matches!(
                quick,
                Ok("quick") | Err(SubtaskError::Unavailable)
            ));
            assert!(slow.peek(&late).is_none());
            Err::<(), _>(late.into())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)));

        let joiner = scope::all_until(|_| false);
        let results = timeout().open_with(joiner, |s| {
            s.fork(|| Ok(()));
            s.fork(forever);
            Ok(s.join()?.into_output())
        });
        let results = results.unwrap();
        assert_eq!(results.len(), 2);
        assert!(matches!(
            results[0],
            Ok(()) | Err(SubtaskError::Unavailable)
        ));
        assert!(matches!(results[1], Err(SubtaskError::Unavailable)));
    });
}

#[watched]
fn every_other_joiner_fails_when_the_time_is_up() {
    fn joined<J>(joiner: J)
    where
        J: scope::JoinerFor<u32, Error = Oops>,
    {
        let result = Builder::new().timeout(SOON).open_with(joiner, |s| {
            s.fork(forever::<u32>);
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)), "{result:?}");
    }
    everywhere(|| {
        joined(scope::await_all());
        joined(scope::await_all_successful());
        joined(scope::all_successful());
        joined(scope::any_successful());
        joined(scope::shutdown_on_failure());
        joined(scope::shutdown_on_success());
    });
}

#[watched]
fn a_join_with_a_deadline() {
    everywhere(|| {
        for deadline in [Instant::now() + SOON, Instant::now()] {
            let result = Builder::new().open(|s| {
                let endless = s.fork(forever::<()>);
                let unjoined = s.join_until(deadline).unwrap_err();
                assert_eq!(endless.state(), State::Unavailable);
                Err::<(), _>(unjoined.into())
            });
            assert!(matches!(result, Err(JoinError::TimedOut)));
            assert!(Instant::now() >= deadline);
        }
        // Completed subtasks stay completed.
        let value = Builder::new().open::<Oops, _, _>(|s| {
            let done = s.fork(|| Ok(7));
            until_done(&done);
            until_all_have_left(&s);
            let all = s.join_until(Instant::now())?;
            Ok(done.get(&all))
        });
        assert_eq!(value.unwrap(), 7);
        // The scope's own deadline comes first.
        let result = Builder::new().timeout(SOON).open(|s| {
            s.fork(forever::<()>);
            s.join_until(Instant::now() + FOREVER)?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)));
        let value = Builder::new().open::<Oops, _, _>(|s| {
            let quick = s.fork(|| Ok(7));
            let all = s.join_until(Instant::now() + FOREVER)?;
            Ok(quick.get(&all))
        });
        assert_eq!(value.unwrap(), 7);
    });
}

#[watched]
fn an_inner_scope_does_not_outlive_the_outer_one() {
    everywhere(|| {
        let result = Builder::new().timeout(SOON).open::<Oops, _, _>(|outer| {
            times_out(Builder::new()); // has none of its own
            times_out(Builder::new().timeout(FOREVER));
            // By now, the outer one's deadline has passed.
            until(|| outer.is_cancelled());
            times_out(Builder::new().timeout(Duration::MAX));
            outer.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)));
    });
}

#[watched]
fn an_inner_scope_in_a_subtask_does_not_outlive_the_outer_one() {
    everywhere(|| {
        let result = Builder::new().timeout(SOON).open(|s| {
            s.fork(move || {
                let inner = Builder::new().timeout(FOREVER).open(|inner| {
                    inner.fork(forever::<()>);
                    until(|| inner.is_cancelled()); // does not hear the interrupt
                    inner.join()?;
                    Ok(())
                });
                assert!(matches!(inner, Err(JoinError::TimedOut)), "{inner:?}");
                until(thread::is_interrupted); // The outer one's time is up at the same moment.
                Ok::<_, Oops>(())
            });
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)), "{result:?}");
    });
}

#[watched]
fn an_inner_deadline_does_not_touch_the_outer_scope() {
    everywhere(|| {
        for timeout in [None, Some(FOREVER)] {
            let builder = match timeout {
                None => Builder::new(),
                Some(timeout) => Builder::new().timeout(timeout),
            };
            let value = builder.open::<Oops, _, _>(|outer| {
                let other = outer.fork(|| Ok(7));
                times_out(Builder::new().timeout(SOON));
                assert!(!outer.is_cancelled());
                let all = outer.join()?;
                Ok(other.get(&all))
            });
            assert_eq!(value.unwrap(), 7);
        }
    });
}

#[watched]
fn many_scopes_with_deadlines_that_are_not_reached() {
    everywhere(|| {
        for _ in 0..100 {
            let value = Builder::new().timeout(FOREVER).open::<Oops, _, _>(|s| {
                let subtask = s.fork(|| Ok(7));
                let all = s.join()?;
                Ok(subtask.get(&all))
            });
            assert_eq!(value.unwrap(), 7);
        }
    });
}

/// The subtask keeps the only carrier until the time is up, so that the runtime has not cancelled
/// the scope when it fails.
#[watched]
fn a_failure_when_the_time_is_up_is_the_timeout() {
    let one = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];
    child::isolated(&one, || {
        let joined = on_virtual(|| {
            let end = Instant::now() + SOON;
            Builder::new().deadline(end).open(|s| {
                let late = s.fork(move || {
                    while Instant::now() < end + SOON {
                        std::hint::spin_loop();
                    }
                    Err::<(), _>("late")
                });
                let unjoined = s.join().unwrap_err();
                assert_eq!(late.state(), State::Unavailable);
                Err::<(), JoinError<Oops>>(unjoined.into())
            })
        });
        assert!(matches!(joined, Err(JoinError::TimedOut)), "{joined:?}");
    });
}
