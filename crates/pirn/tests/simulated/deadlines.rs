//! Deadlines: in virtual time, to the millisecond.

use crate::common::{HOUR, SLACK, below, millis, nap};
use pirn::scope::{self, JoinError};
use pirn::thread::{self, sleep_interruptible};
use std::time::Instant;

/// Checks the deadline that holds. Each reading of the clock takes some time.
fn is_due(due: Instant) {
    let deadline = scope::deadline().unwrap();
    assert!(
        deadline.max(due) - deadline.min(due) < SLACK,
        "{deadline:?}, not {due:?}"
    );
}

/// Scopes and calls in each other, each with its own time limit: the earliest that is around holds.
fn within(depth: u64, due: Option<Instant>) {
    let own = Instant::now() + millis(10 + below(200));
    let due = due.map_or(own, |due| due.min(own));
    let in_time = |what: &str| {
        let late = Instant::now().saturating_duration_since(due);
        assert!(late <= SLACK, "{what} {depth}: {late:?} late");
        // A scope whose subtasks have earlier limits of their own ends with them.
        assert!(depth > 0 || Instant::now() >= due, "{what}: early");
    };
    match below(2) {
        0 => {
            let result: Result<(), JoinError<()>> = scope::Builder::new().deadline(own).open(|s| {
                is_due(due);
                for _ in 0..1 + below(2) {
                    s.fork(move || {
                        is_due(due);
                        match depth {
                            0 => assert!(sleep_interruptible(HOUR).is_err()),
                            depth => within(depth - 1, Some(due)),
                        }
                        Ok(())
                    });
                }
                s.join()?;
                Ok(())
            });
            in_time("a scope");
            // Of several, inner ones may end first, and are done.
            let told = matches!(
                result,
                Err(JoinError::TimedOut | JoinError::Interrupted) | Ok(())
            );
            assert!(told, "{result:?}");
        }
        _ => scope::with_deadline(own, || {
            is_due(due);
            match depth {
                0 => assert!(sleep_interruptible(HOUR).is_err()),
                depth => {
                    within(depth - 1, Some(due));
                    if Instant::now() < due {
                        // An inner limit is no longer felt.
                        assert!(sleep_interruptible(HOUR).is_err());
                    }
                }
            }
            in_time("a call");
        }),
    }
}

#[pirn_sim::test(seeds(0..400))]
fn the_earliest_of_all_deadlines_around_holds() {
    let threads: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(|| {
                nap(10);
                within(2, None);
                // It is over: nothing is left of it.
                assert_eq!(scope::deadline(), None);
                assert!(!thread::is_interrupted());
                assert!(
                    sleep_interruptible(millis(500)).is_ok(),
                    "an interrupt is left"
                );
            })
        })
        .collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
}

/// An interrupt by another thread is not lost when a call's deadline comes at the same time.
#[pirn_sim::test(seeds(0..600), pauses(50, millis(2)))]
fn an_interrupt_is_not_lost_at_a_deadline() {
    let interrupted = below(2) == 0;
    let worker = thread::spawn(move || {
        let end = Instant::now() + millis(5);
        scope::with_deadline(end, || nap(10));
        // What another thread has sent, and nothing else, is still there.
        sleep_interruptible(millis(100)).is_err()
    });
    if interrupted {
        nap(10);
        worker.thread().interrupt();
    }
    assert_eq!(worker.join().unwrap(), interrupted);
}

/// A scope that ends just when its time is up reports one of both, and leaves no interrupt behind.
#[pirn_sim::test(seeds(0..600), pauses(50, millis(2)))]
fn an_end_at_the_deadline_leaves_nothing_behind() {
    let end = Instant::now() + millis(5);
    let result: Result<(), JoinError<()>> = scope::Builder::new().deadline(end).open(|s| {
        for _ in 0..2 {
            s.fork(|| {
                let _ = sleep_interruptible(millis(5));
                Ok(())
            });
        }
        s.join()?;
        Ok(())
    });
    assert!(
        matches!(result, Ok(()) | Err(JoinError::TimedOut)),
        "{result:?}"
    );
    assert!(!thread::is_interrupted());
    assert!(sleep_interruptible(millis(50)).is_ok());
}
