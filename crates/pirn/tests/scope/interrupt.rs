//! Interrupts of the owner: the waits that they end, and those that they do not end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, State};
use pirn::thread;

/// Joins an endless subtask, on an owner that `interrupt` interrupts.
fn join_interrupted(interrupt: fn()) {
    let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let result = Builder::new().open(|s| {
        let endless = s.fork(|| counted_forever::<()>(&begun, &interrupted));
        until(|| begun.load(SeqCst) == 1);
        interrupt();
        let unjoined = s.join().unwrap_err();
        assert!(matches!(unjoined.error(), JoinError::Interrupted));
        assert_eq!(endless.state(), State::Unavailable);
        assert!(thread::is_interrupted(), "the flag stays");
        Err::<(), _>(unjoined.into())
    });
    assert!(matches!(result, Err(JoinError::Interrupted)));
    assert_eq!(interrupted.load(SeqCst), 1, "left before its subtask");
    assert!(thread::take_interrupt(), "the flag stays");
}

#[watched]
fn the_owner_is_interrupted_before_the_join() {
    everywhere(|| join_interrupted(|| thread::current().interrupt()));
}

#[watched]
fn the_owner_is_interrupted_in_the_join() {
    everywhere(|| join_interrupted(interrupt_me_soon));
}

#[watched]
fn every_joiner_fails_when_the_owner_is_interrupted() {
    fn joined<J>(joiner: J)
    where
        J: scope::JoinerFor<u32, Error = Oops>,
    {
        let result = Builder::new().open_with(joiner, |s| {
            s.fork(forever::<u32>);
            thread::current().interrupt();
            s.join()?;
            Ok(())
        });
        assert!(thread::take_interrupt());
        assert!(matches!(result, Err(JoinError::Interrupted)), "{result:?}");
    }
    everywhere(|| {
        joined(scope::await_all());
        joined(scope::await_all_successful());
        joined(scope::all_successful());
        joined(scope::any_successful());
        joined(scope::all_until(|_| false));
        joined(scope::shutdown_on_failure());
        joined(scope::shutdown_on_success());
    });
}

#[watched]
fn the_end_of_a_scope_is_not_interruptible() {
    everywhere(|| {
        for soon in [false, true] {
            let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
            let me = thread::current();
            let result = Builder::new().open_with(CancelOnFirst::default(), |s| {
                s.fork(|| {
                    begun.store(true, SeqCst);
                    forever::<()>().unwrap_err();
                    if soon {
                        until_it_waits(&me); // at the end of the scope: it has been joined
                        me.interrupt();
                    }
                    for _ in 0..1000 {
                        thread::yield_now(); // so that the owner waits meanwhile
                    }
                    done.store(true, SeqCst);
                    Ok(())
                });
                until(|| begun.load(SeqCst));
                s.fork(|| Ok(()));
                until(|| s.is_cancelled());
                s.join()?;
                if !soon {
                    thread::current().interrupt();
                }
                Ok(())
            });
            result.unwrap();
            assert!(done.load(SeqCst), "left before its subtask");
            assert!(thread::take_interrupt(), "the flag stays");
        }
    });
}

#[watched]
fn interrupted_while_a_fork_waits_for_the_limit() {
    everywhere(|| {
        for interrupt in [|| thread::current().interrupt(), interrupt_me_soon as fn()] {
            let drops = Drops::default();
            let result = Builder::new().limit(1).open(|s| {
                let first = s.fork(forever::<()>);
                let token = drops.token();
                interrupt();
                let second = s.fork(move || {
                    drop(token);
                    Ok(())
                });
                drops.assert_all(1);
                assert!(s.is_cancelled());
                assert!(thread::is_interrupted());
                assert_eq!(second.state(), State::Unavailable);
                let unjoined = s.join().unwrap_err();
                assert_eq!(first.state(), State::Unavailable);
                Err::<(), _>(unjoined.into())
            });
            assert!(matches!(result, Err(JoinError::Interrupted)), "{result:?}");
            assert!(thread::take_interrupt(), "the flag stays");
        }
    });
}

#[watched]
fn an_interrupted_owner_can_fork_where_there_is_room() {
    everywhere(|| {
        let value = Builder::new().limit(2).open(|s| {
            thread::current().interrupt();
            let subtask = s.fork(|| {
                assert!(!thread::is_interrupted(), "that was the owner");
                Ok::<_, Oops>(7)
            });
            until_done(&subtask);
            assert!(!s.is_cancelled());
            assert!(thread::take_interrupt()); // the owner goes on
            let all = s.join()?;
            Ok(subtask.get(&all))
        });
        assert_eq!(value.unwrap(), 7);
    });
}

#[watched]
fn an_interrupt_reaches_the_innermost_of_nested_scopes() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (begun, interrupted) = (&begun, &interrupted);
        // A subtask that joins subtasks that join subtasks.
        fn nest(depth: u32, begun: &AtomicUsize, ended: &AtomicUsize) -> Result<(), Oops> {
            if depth == 0 {
                return counted_forever(begun, ended);
            }
            let result = Builder::new().open(|s| {
                for _ in 0..2 {
                    s.fork(move || nest(depth - 1, begun, ended));
                }
                s.join()?;
                Ok(())
            });
            match result {
                Err(JoinError::Interrupted) => Err("interrupted"),
                other => panic!("{other:?}"),
            }
        }
        let result = Builder::new().open(|s| {
            s.fork(|| nest(3, begun, interrupted));
            until(|| begun.load(SeqCst) == 8);
            s.cancel();
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)));
        assert_eq!(interrupted.load(SeqCst), 8);
    });
}
