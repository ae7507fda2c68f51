//! One scope: which failure is reported, and when; what runs, and what is left.

use crate::common::{Count, HOUR, One, SLACK, below, millis, nap};
use pirn::scope::{self, JoinError};
use pirn::thread::{self, sleep_interruptible};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// What a subtask does at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Succeeds,
    Fails,
    Panics,
}

struct Plan {
    subtasks: Vec<(u64, End)>,
}

impl Plan {
    /// Different times, in any order.
    fn drawn() -> Plan {
        let mut times: Vec<u64> = (0..1 + below(5)).map(|n| 10 * (n + 1)).collect();
        for n in (1..times.len()).rev() {
            times.swap(n, below(n as u64 + 1) as usize);
        }
        let end = |time| {
            let end = [End::Succeeds, End::Succeeds, End::Fails, End::Panics][below(4) as usize];
            (time, end)
        };
        Plan {
            subtasks: times.into_iter().map(end).collect(),
        }
    }

    fn first(&self, of: impl Fn(End) -> bool) -> Option<(u64, End)> {
        let those = self.subtasks.iter().copied().filter(|it| of(it.1));
        those.min_by_key(|it| it.0)
    }
}

/// Runs a subtask. `there` has its value and its thread until both are gone.
fn run(there: &Count, time: u64, end: End) -> Result<(u64, One), u64> {
    let one = there.add().0;
    let slept = sleep_interruptible(millis(time)).is_ok();
    match end {
        _ if !slept && below(2) == 0 => Ok((time, one)), // Too late: its value is dropped.
        _ if !slept => Err(1000 + time),
        End::Succeeds => Ok((time, one)),
        End::Fails => Err(time),
        End::Panics => resume_unwind(Box::new(format!("{time}"))),
    }
}

#[pirn_sim::test(seeds(0..500))]
fn the_first_failure_ends_the_scope_at_once() {
    let plan = Plan::drawn();
    let (there, begin) = (Count::default(), Instant::now());
    let result = scope::open(|s| {
        let subtasks = plan.subtasks.iter();
        let subtasks: Vec<_> = subtasks
            .map(|&(time, end)| {
                let there = &there;
                s.fork(move || run(there, time, end))
            })
            .collect();
        let all = s.join()?;
        Ok(subtasks
            .into_iter()
            .map(|it| it.get(&all).0)
            .collect::<Vec<_>>())
    });
    assert_eq!(there.get(), 0, "a subtask or its value outlives the scope");
    let took = begin.elapsed();
    let first = plan.first(|end| end != End::Succeeds);
    let last = plan.subtasks.iter().map(|it| it.0).max();
    let time = first.map(|it| it.0).or(last).unwrap();
    assert!(
        (millis(time)..millis(time) + SLACK).contains(&took),
        "{took:?}, not {time}"
    );
    match (result, first) {
        (Ok(values), None) => {
            assert!(values.iter().eq(plan.subtasks.iter().map(|it| &it.0)));
        }
        (Err(JoinError::Failed(error)), Some((time, End::Fails))) => assert_eq!(error, time),
        (Err(JoinError::Panicked(panic)), Some((time, End::Panics))) => {
            assert_eq!(panic.message(), Some(&*time.to_string()));
        }
        (result, first) => panic!("{:?} of {first:?}", result.err()),
    }
}

#[pirn_sim::test(seeds(0..500))]
fn the_first_success_ends_the_scope_at_once() {
    let plan = Plan::drawn();
    let (there, begin) = (Count::default(), Instant::now());
    let result = scope::open_with(scope::any_successful(), |s| {
        for &(time, end) in &plan.subtasks {
            let there = &there;
            s.fork(move || run(there, time, end).map(|it| it.0));
        }
        Ok(s.join()?.into_output())
    });
    let took = begin.elapsed();
    assert_eq!(there.get(), 0);
    match plan.first(|end| end == End::Succeeds) {
        Some((time, _)) => {
            assert_eq!(result.unwrap(), time);
            assert!(
                (millis(time)..millis(time) + SLACK).contains(&took),
                "{took:?}"
            );
        }
        None => assert!(matches!(
            result,
            Err(JoinError::Failed(_) | JoinError::Panicked(_))
        )),
    }
}

/// With pauses, any of the failures may be the first; nothing outlives the scope all the same, and
/// nothing begins after its end has.
#[pirn_sim::test(seeds(0..500), pauses(30, millis(50)))]
fn nothing_outlives_a_scope_whose_threads_pause() {
    let plan = Plan::drawn();
    let (there, forked) = (Count::default(), Count::default());
    let limit = 1 + below(3) as usize;
    let at_once = Count::default();
    let way = below(4);
    let caught = thread::Panic::catch(|| {
        scope::Builder::new().limit(limit).open(|s| {
            let subtasks = plan.subtasks.iter();
            let subtasks: Vec<_> = subtasks
                .map(|&(time, end)| {
                    let (there, at_once) = (&there, &at_once);
                    let closure = forked.add().0;
                    s.fork(move || {
                        let _closure = closure;
                        let (_at_once, running) = at_once.add();
                        assert!(running <= limit, "{running} of {limit}");
                        run(there, time, end)
                    })
                })
                .collect();
            nap(30);
            match way {
                0 => Err::<(), _>(JoinError::Failed(7777)), // Leaves without a join.
                1 => resume_unwind(Box::new("the block")),
                2 => {
                    s.cancel();
                    assert!(s.join().is_err());
                    Ok(())
                }
                _ => {
                    let all = s.join()?;
                    subtasks.into_iter().for_each(|it| drop(it.get(&all)));
                    Ok(())
                }
            }
        })
    });
    assert_eq!((there.get(), forked.get(), at_once.get()), (0, 0, 0));
    let failed = plan.first(|end| end != End::Succeeds).is_some();
    match (caught, way) {
        (Err(panic), 1) => assert_eq!(panic.message(), Some("the block")),
        (Ok(Err(JoinError::Failed(7777))), 0) => {}
        (Ok(Err(JoinError::Failed(error))), 0 | 3) => assert!(failed && error < 7777),
        (Ok(Err(JoinError::Panicked(_))), 0 | 3) => assert!(failed),
        (Ok(Ok(())), 2) => {}
        (Ok(Ok(())), 3) => assert!(!failed),
        (caught, way) => panic!("{way}: {:?}", caught.map(|it| it.err())),
    }
}

#[pirn_sim::test(seeds(0..500), pauses(100, millis(5)))]
fn an_interrupt_of_the_owner_reaches_all() {
    let there = Arc::new(AtomicUsize::new(0));
    let in_owner = Arc::clone(&there);
    let owner = thread::spawn(move || {
        let there = &in_owner;
        let slow = move || {
            there.fetch_add(1, SeqCst);
            let slept = sleep_interruptible(HOUR);
            there.fetch_sub(1, SeqCst);
            slept.map_err(|_| "interrupted")
        };
        let result: Result<(), JoinError<&str>> = scope::open(|s| {
            s.fork(slow);
            s.fork(move || {
                let inner = scope::open(|s| {
                    s.fork(slow);
                    s.fork(slow);
                    nap(5);
                    s.join()?;
                    Ok(())
                });
                inner.map_err(|_| "inner")
            });
            nap(10);
            s.join()?;
            Ok(())
        });
        assert_eq!(there.load(SeqCst), 0, "a subtask outlives its scope");
        result
    });
    nap(30);
    let begin = Instant::now();
    owner.thread().interrupt();
    let result = owner.join().unwrap();
    assert!(matches!(result, Err(JoinError::Interrupted)), "{result:?}");
    assert!(begin.elapsed() < millis(1000));
    assert_eq!(there.load(SeqCst), 0);
}
