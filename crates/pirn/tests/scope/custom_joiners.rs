//! Custom joiners: their calls, the threads of these calls, and the effect of their panics.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{Builder, Completed, JoinError, Joiner, JoinerFor, State};
use pirn::thread::{self, ThreadId};

/// Where a joiner panics.
#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    Fork,
    Complete,
    Result,
    TimeOut,
    Nowhere,
}

/// Panics somewhere.
struct Panicking(At);

impl Panicking {
    fn come(&self, at: At) {
        if self.0 == at {
            panic!("the joiner panics at {at:?}");
        }
    }
}

impl Joiner for Panicking {
    type Error = Oops;
    type Output = &'static str;

    fn result(&self) -> Result<&'static str, JoinError<Oops>> {
        self.come(At::Result);
        Ok("result")
    }

    fn timed_out(&self) -> Result<&'static str, JoinError<Oops>> {
        self.come(At::TimeOut);
        Ok("timed out")
    }
}

impl<T> JoinerFor<T> for Panicking {
    fn on_fork(&self, index: usize) -> ControlFlow<()> {
        if index == 1 {
            self.come(At::Fork);
        }
        ControlFlow::Continue(())
    }

    fn on_complete(&self, _: &mut Completed<'_, T, Oops>) -> ControlFlow<()> {
        self.come(At::Complete);
        ControlFlow::Continue(())
    }
}

#[watched]
fn a_panic_in_on_fork_is_the_owners() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let drops = Drops::default();
        let message = panic_of(|| {
            Builder::new().open_with(Panicking(At::Fork), |s| {
                s.fork(|| counted_forever::<()>(&begun, &interrupted));
                until(|| begun.load(SeqCst) == 1);
                let token = drops.token();
                s.fork(move || {
                    drop(token);
                    Ok(())
                });
                unreachable!("the fork panics");
                #[allow(unreachable_code)]
                Ok(())
            })
        });
        assert_eq!(message, "the joiner panics at Fork");
        assert_eq!(interrupted.load(SeqCst), 1, "not waited for");
        drops.assert_all(1);
    });
}

#[watched]
fn a_panic_in_on_complete_fails_the_join() {
    everywhere(|| {
        let drops = Drops::default();
        let drops = &drops;
        let result = Builder::new().open_with(Panicking(At::Complete), |s| {
            let endless = s.fork(forever::<()>);
            let done = s.fork(|| Ok(drops.token()));
            let unjoined = s.join().unwrap_err();
            assert_eq!(endless.state(), State::Unavailable);
            assert_eq!(done.state(), State::Unavailable);
            Err::<(), _>(unjoined.into_error())
        });
        match result {
            Err(JoinError::Panicked(panic)) => {
                assert_eq!(panic.message(), Some("the joiner panics at Complete"));
            }
            other => panic!("{other:?}"),
        }
        drops.assert_all(1);
    });
}

#[watched]
fn a_panic_in_result_is_the_owners() {
    everywhere(|| {
        let drops = Drops::default();
        let drops = &drops;
        let message = panic_of(|| {
            Builder::new().open_with(Panicking(At::Result), |s| {
                let _kept = s.fork(|| Ok(drops.token()));
                s.join()?;
                Ok(())
            })
        });
        assert_eq!(message, "the joiner panics at Result");
        drops.assert_all(1);
    });
}

#[watched]
fn timed_out_is_asked_instead_of_result() {
    everywhere(|| {
        let timeout = || Builder::new().timeout(Duration::from_millis(1));
        let output = timeout().open_with(Panicking(At::Result), |s| {
            s.fork(forever::<()>);
            Ok(s.join()?.into_output())
        });
        assert_eq!(output.unwrap(), "timed out");
        let message = panic_of(|| {
            timeout().open_with(Panicking(At::TimeOut), |s| {
                s.fork(forever::<()>);
                Ok(s.join()?.into_output())
            })
        });
        assert_eq!(message, "the joiner panics at TimeOut");
        // It is not called without need.
        let output = Builder::new().open_with(Panicking(At::Nowhere), |s| {
            s.fork(|| Ok(()));
            Ok(s.join()?.into_output())
        });
        assert_eq!(output.unwrap(), "result");
    });
}

/// Cancels on the fork of this number.
struct CancelOnFork(usize);

impl Joiner for CancelOnFork {
    type Error = Oops;
    type Output = ();
    fn result(&self) -> Result<(), JoinError<Oops>> {
        Ok(())
    }
}

impl<T> JoinerFor<T> for CancelOnFork {
    fn on_fork(&self, index: usize) -> ControlFlow<()> {
        if index == self.0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn on_complete(&self, subtask: &mut Completed<'_, T, Oops>) -> ControlFlow<()> {
        panic!("told of {} in a cancelled scope", subtask.index());
    }
}

#[watched]
fn on_fork_can_cancel() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let drops = Drops::default();
        let result = Builder::new().open_with(CancelOnFork(1), |s| {
            let before = s.fork(|| counted_forever::<()>(&begun, &interrupted));
            until(|| begun.load(SeqCst) == 1);
            assert!(!s.is_cancelled());
            let token = drops.token();
            let subtask = s.fork(move || -> Result<(), Oops> {
                drop(token);
                unreachable!("cancelled");
            });
            drops.assert_all(1);
            assert!(s.is_cancelled());
            s.join()?;
            assert_eq!(subtask.state(), State::Unavailable);
            assert_eq!(before.state(), State::Unavailable);
            Ok(())
        });
        result.unwrap();
        assert_eq!(interrupted.load(SeqCst), 1);
    });
}

/// Notes its calls, and their threads.
#[derive(Default)]
struct Notes(Mutex<Vec<(&'static str, usize, ThreadId)>>);

impl Notes {
    fn note(&self, what: &'static str, index: usize) {
        let note = (what, index, thread::current().id());
        self.0.lock().unwrap().push(note);
    }
}

impl Joiner for Notes {
    type Error = Oops;
    type Output = Vec<(&'static str, usize, ThreadId)>;
    fn result(&self) -> Result<Self::Output, JoinError<Oops>> {
        self.note("result", 0);
        Ok(std::mem::take(&mut *self.0.lock().unwrap()))
    }
}

impl JoinerFor<ThreadId> for Notes {
    fn on_fork(&self, index: usize) -> ControlFlow<()> {
        self.note("fork", index);
        ControlFlow::Continue(())
    }

    fn on_complete(&self, subtask: &mut Completed<'_, ThreadId, Oops>) -> ControlFlow<()> {
        assert!(subtask.is_success());
        let id = *subtask.result().unwrap();
        self.note("complete", subtask.index());
        assert_eq!(id, thread::current().id(), "on another thread");
        ControlFlow::Continue(())
    }
}

#[watched]
fn what_a_joiner_is_told_and_where() {
    everywhere(|| {
        let me = thread::current().id();
        let notes = Builder::new().open_with(Notes::default(), |s| {
            let first = s.fork(|| Ok(thread::current().id()));
            until_done(&first);
            let second = s.fork(|| Ok(thread::current().id()));
            until_done(&second);
            assert_eq!(s.joiner().0.lock().unwrap().len(), 4);
            let ended = s.join()?;
            let ids = [first, second].map(|subtask| subtask.result(&ended).unwrap());
            Ok((ended.into_output(), ids))
        });
        let (notes, [first, second]) = notes.unwrap();
        let expected = [
            ("fork", 0, me),
            ("complete", 0, first),
            ("fork", 1, me),
            ("complete", 1, second),
            ("result", 0, me),
        ];
        assert_eq!(notes, expected);
    });
}

/// A joiner with only the required methods.
struct OfFewWords;

impl Joiner for OfFewWords {
    type Error = Oops;
    type Output = ();
    fn result(&self) -> Result<(), JoinError<Oops>> {
        Err(JoinError::Failed("by the joiner"))
    }
}

impl<T> JoinerFor<T> for OfFewWords {
    fn on_complete(&self, _: &mut Completed<'_, T, Oops>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[watched]
fn a_joiner_of_few_words() {
    everywhere(|| {
        let result = Builder::new().open_with(OfFewWords, |s| {
            let fine = s.fork(|| Ok(1));
            let unjoined = s.join().unwrap_err();
            assert_eq!(fine.result(&unjoined).unwrap(), 1);
            Err::<(), _>(unjoined.into())
        });
        assert!(matches!(result, Err(JoinError::Failed("by the joiner"))));
        let timeout = Builder::new().timeout(Duration::ZERO);
        let result = timeout.open_with(OfFewWords, |s| {
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::TimedOut)));
    });
}

/// Takes every result twice.
struct Greedy;

impl Joiner for Greedy {
    type Error = Oops;
    type Output = ();
    fn result(&self) -> Result<(), JoinError<Oops>> {
        Ok(())
    }
}

impl<T: Send> JoinerFor<T> for Greedy {
    fn on_complete(&self, subtask: &mut Completed<'_, T, Oops>) -> ControlFlow<()> {
        drop(subtask.take());
        assert!(!subtask.is_success());
        drop(subtask.take());
        ControlFlow::Continue(())
    }
}

#[watched]
fn a_result_is_taken_once() {
    everywhere(|| {
        let drops = Drops::default();
        let drops = &drops;
        let result = Builder::new().open_with(Greedy, |s| {
            s.fork(|| Ok(drops.token()));
            s.join()?;
            Ok(())
        });
        match result {
            Err(JoinError::Panicked(panic)) => {
                let message = panic.message().unwrap();
                assert!(message.contains("taken twice"), "{message}");
            }
            other => panic!("{other:?}"),
        }
        drops.assert_all(1);
    });
}
