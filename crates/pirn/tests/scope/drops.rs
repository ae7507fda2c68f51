//! Every closure and every value is dropped once, before its scope is left, however its subtask
//! ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::common::{child, watched};
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, State, SubtaskError};
use pirn::{Runnable, Scheduler, thread};

/// The error of subtasks here is a token of its own.
type Result<'a, T = Token<'a>> = std::result::Result<T, Token<'a>>;

/// Returns a subtask with a token in its closure that succeeds with one, fails with one, or panics
/// with one in scope.
fn subtask<'a>(drops: &'a Drops, what: usize) -> impl FnOnce() -> Result<'a> + Send + 'a {
    let (captured, local) = (drops.token(), drops.token());
    move || {
        let _captured = captured;
        match what % 3 {
            0 => Ok(local),
            1 => Err(local),
            _ => panic!("with a token in scope"),
        }
    }
}

#[watched]
fn read_peeked_at_or_left() {
    everywhere(|| {
        let drops = Drops::default();
        let result = Builder::new().open_with(scope::await_all(), |s| {
            let subtasks: Vec<_> = (0..30).map(|i| s.fork(subtask(&drops, i))).collect();
            let ended = s.join()?;
            for (i, subtask) in subtasks.into_iter().enumerate() {
                match i / 3 % 3 {
                    0 => drop(subtask.result(&ended)),
                    1 => drop(subtask.peek(&ended).unwrap().is_ok()),
                    _ => {}
                }
            }
            Ok(())
        });
        assert!(result.is_ok());
        drops.assert_all(60);
    });
}

#[watched]
fn handles_dropped_before_and_after_their_subtasks_end() {
    everywhere(|| {
        let drops = Drops::default();
        let result = Builder::new().open_with(scope::await_all(), |s| {
            for i in 0..10 {
                drop(s.fork(subtask(&drops, i)));
                let done = s.fork(subtask(&drops, i));
                until_done(&done);
                drop(done);
            }
            s.join()?;
            Ok(())
        });
        assert!(result.is_ok());
        drops.assert_all(40);
    });
}

#[watched]
fn taken_by_joiners() {
    fn joined<'a, J>(drops: &'a Drops, joiner: J)
    where
        J: scope::JoinerFor<Token<'a>, Error = Token<'a>>,
    {
        let output = Builder::new().open_with(joiner, |s| {
            let _kept: Vec<_> = (0..9).map(|i| s.fork(subtask(drops, i))).collect();
            for i in 0..9 {
                s.fork(subtask(drops, i));
            }
            Ok(s.join()?.into_output())
        });
        drop(output);
        drops.assert_all(36);
    }
    everywhere(|| {
        joined(&Drops::default(), scope::await_all());
        joined(&Drops::default(), scope::await_all_successful());
        joined(&Drops::default(), scope::all_successful());
        joined(&Drops::default(), scope::any_successful());
        joined(&Drops::default(), scope::all_until(|_| false));
        joined(
            &Drops::default(),
            scope::all_until(|subtask| !subtask.is_success()),
        );
        joined(&Drops::default(), scope::shutdown_on_failure());
        joined(&Drops::default(), scope::shutdown_on_success());
    });
}

#[watched]
fn left_in_every_way() {
    everywhere(|| {
        type Way = fn(&Builder, &Drops);
        let by_error: Way = |builder, drops| {
            let result = builder.clone().open_with(scope::await_all(), |s| {
                let _kept = (s.fork(subtask(drops, 0)), s.fork(subtask(drops, 1)));
                s.fork(subtask(drops, 2));
                Err::<(), JoinError<Token<'_>>>(JoinError::TimedOut)
            });
            assert!(matches!(result, Err(JoinError::TimedOut)));
        };
        let by_panic: Way = |builder, drops| {
            let message = panic_of(|| {
                builder
                    .clone()
                    .open_with(scope::await_all::<Token<'_>>(), |s| {
                        let _kept = (s.fork(subtask(drops, 0)), s.fork(subtask(drops, 1)));
                        s.fork(subtask(drops, 2));
                        panic!("the owner");
                        #[allow(unreachable_code)]
                        Ok(())
                    })
            });
            assert_eq!(message, "the owner");
        };
        let cancelled: Way = |builder, drops| {
            let result = builder
                .clone()
                .open_with(scope::await_all::<Token<'_>>(), |s| {
                    let _kept = (s.fork(subtask(drops, 0)), s.fork(subtask(drops, 1)));
                    s.cancel();
                    s.fork(subtask(drops, 2));
                    s.join()?;
                    Ok(())
                });
            assert!(matches!(result, Err(JoinError::Cancelled)));
        };
        let timed_out: Way = |builder, drops| {
            let builder = builder.clone().timeout(Duration::ZERO);
            let result = builder.open_with(scope::all_successful(), |s| {
                for i in 0..3 {
                    s.fork(subtask(drops, i));
                }
                Ok(s.join()?.into_output())
            });
            assert!(matches!(result, Err(JoinError::TimedOut)));
        };
        for way in [by_error, by_panic, cancelled, timed_out] {
            let drops = Drops::default();
            for _ in 0..10 {
                way(&Builder::new(), &drops);
            }
            drops.assert_all(60);
        }
    });
}

/// Keeps its values until it is asked.
#[derive(Default)]
struct Keep(Mutex<Vec<Runnable>>);

impl Scheduler for Keep {
    fn schedule(&self, thread: Runnable) {
        self.0.lock().unwrap().push(thread);
    }
}

impl Keep {
    fn take(&self) -> Vec<Runnable> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[watched]
fn not_begun_when_the_scope_is_cancelled() {
    let (drops, ran) = (Drops::default(), AtomicBool::new(false));
    let keep = Arc::new(Keep::default());
    let threads = thread::Builder::new().scheduler(keep.clone());
    let result = Builder::new().threads(threads).open::<Oops, (), _>(|s| {
        let token = drops.token();
        let subtask = s.fork(|| {
            let _token = token;
            ran.store(true, SeqCst);
            Ok(())
        });
        s.cancel();
        assert_eq!(drops.dropped(), 0);
        keep.take().into_iter().for_each(Runnable::run);
        drops.assert_all(1);
        assert_eq!(subtask.state(), State::Unavailable);
        s.join()?;
        Ok(())
    });
    assert!(matches!(result, Err(JoinError::Cancelled)));
    assert!(!ran.load(SeqCst), "begun in a cancelled scope");
}

#[watched]
fn abandoned_by_the_scheduler() {
    for cancelled in [false, true] {
        let drops = Drops::default();
        let keep = Arc::new(Keep::default());
        let threads = thread::Builder::new().scheduler(keep.clone());
        let result = Builder::new()
            .threads(threads)
            .open_with(scope::await_all::<Oops>(), |s| {
                let fork = || {
                    let token = drops.token();
                    s.fork(move || {
                        drop(token);
                        Ok(())
                    })
                };
                let (one, other) = (fork(), fork());
                drop(other);
                if cancelled {
                    s.cancel();
                }
                drop(keep.take());
                drops.assert_all(2);
                match s.join() {
                    Ok(ended) => {
                        assert!(!cancelled);
                        match one.result(&ended) {
                            Err(SubtaskError::Panicked(panic)) => {
                                let text =
                                    "the scheduler dropped this virtual thread before it ran";
                                assert_eq!(panic.message(), Some(text));
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                    Err(unjoined) => {
                        assert!(cancelled);
                        assert!(matches!(
                            one.result(&unjoined),
                            Err(SubtaskError::Unavailable)
                        ));
                    }
                }
                Ok(())
            });
        result.unwrap();
    }
}

/// Drops its values at once.
struct Dropper;

impl Scheduler for Dropper {
    fn schedule(&self, thread: Runnable) {
        drop(thread);
    }
}

#[watched]
fn abandoned_at_once_is_a_failure() {
    let drops = Drops::default();
    let threads = thread::Builder::new().scheduler(Arc::new(Dropper));
    let result = Builder::new().threads(threads).open::<Oops, _, _>(|s| {
        let token = drops.token();
        let failed = s.fork(move || {
            drop(token);
            Ok(())
        });
        assert!(s.is_cancelled());
        assert_eq!(failed.state(), State::Failed);
        s.join()?;
        Ok(())
    });
    assert!(matches!(result, Err(JoinError::Panicked(_))), "{result:?}");
    drops.assert_all(1);
}

/// Panics when it is dropped, with this text.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

#[watched]
fn a_closure_that_panics_while_it_is_dropped_by_the_scheduler() {
    let threads = thread::Builder::new().scheduler(Arc::new(Dropper));
    let result = Builder::new().threads(threads).open::<Oops, _, _>(|s| {
        let bomb = Bomb("the closure");
        s.fork(move || {
            let _bomb = &bomb;
            Ok(())
        });
        s.join()?;
        Ok(())
    });
    match result {
        Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), Some("the closure")),
        other => panic!("{other:?}"),
    }
}

#[watched]
fn a_closure_that_panics_while_it_is_dropped_unstarted() {
    everywhere(|| {
        let message = panic_of(|| {
            Builder::new().open::<Oops, _, _>(|s| {
                s.cancel();
                let bomb = Bomb("the closure");
                s.fork(move || {
                    let _bomb = &bomb;
                    Ok(())
                });
                s.join()?;
                Ok(())
            })
        });
        assert_eq!(message, "the closure");
    });
}

#[watched]
fn a_late_value_that_panics_while_it_is_dropped() {
    everywhere(|| {
        let (begun, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
        let result = Builder::new().open(|s| {
            s.fork(|| {
                begun.store(true, SeqCst);
                forever::<()>().unwrap_err();
                ended.fetch_add(1, SeqCst);
                Ok::<_, Oops>(Bomb("the value"))
            });
            until(|| begun.load(SeqCst));
            s.cancel();
            s.join()?;
            Ok(())
        });
        // The scope was cancelled already: `join` says so, and does not pass on the panic.
        assert!(matches!(result, Err(JoinError::Cancelled)));
        assert_eq!(ended.load(SeqCst), 1);
    });
}

#[watched]
fn a_value_that_blocks_while_it_is_dropped() {
    /// Waits for the owner when it is dropped.
    struct Waits(mpsc::Receiver<()>, mpsc::Sender<()>);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.0.recv().unwrap();
            self.1.send(()).unwrap();
        }
    }
    everywhere(|| {
        let (go, gone) = mpsc::channel();
        let (here, heard) = mpsc::channel();
        let result = Builder::new().open::<Oops, _, _>(|s| {
            drop(s.fork(move || {
                thread::yield_now(); // likely, so that the handle is dropped first
                gone.recv().unwrap();
                Ok(Waits(gone, here))
            }));
            go.send(()).unwrap();
            go.send(()).unwrap();
            s.join()?;
            assert_eq!(
                heard.try_recv(),
                Ok(()),
                "joined before the value was dropped"
            );
            Ok(())
        });
        result.unwrap();
    });
}

/// Leaves a value that the body never asks for and that panics while its thread drops it.
fn bomb_left_behind() {
    let result = Builder::new().open::<Oops, _, _>(|s| {
        let (go, gone) = mpsc::channel::<()>();
        drop(s.fork(move || {
            gone.recv().unwrap_err();
            Ok(Bomb("the value"))
        }));
        drop(go);
        s.join()?;
        Ok(())
    });
    result.unwrap();
}

#[watched]
fn a_value_that_panics_while_a_virtual_thread_drops_it_ends_the_process() {
    if child::is_here() {
        return bomb_left_behind();
    }
    let output = child::run(&[]);
    let report = child::report(&output);
    assert!(!output.status.success(), "{report}");
    let text = "a virtual thread's result panicked while it was dropped";
    assert!(report.contains(text), "{report}");
}
