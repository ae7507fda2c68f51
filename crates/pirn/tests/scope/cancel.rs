//! Cancellation: subtasks that are not started or are interrupted, and results that come too late.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};

use crate::common::{Rng, watched};
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, State, SubtaskError};
use pirn::thread;

#[watched]
fn nothing_is_started_after_a_cancellation() {
    everywhere(|| {
        let drops = Drops::default();
        let completed = Builder::new().open_with(CancelOnFirst::default(), |s| {
            let first = s.fork(|| Ok("foo"));
            until(|| s.is_cancelled());
            let token = drops.token();
            let late = s.fork(move || {
                let _token = token;
                unreachable!("started in a cancelled scope");
                #[allow(unreachable_code)]
                Ok(())
            });
            drops.assert_all(1); // not kept, either
            assert_eq!(late.state(), State::Unavailable);
            assert_eq!(late.index(), 1);
            assert!(late.thread().is_none());
            let forks = &s.joiner().forks;
            assert_eq!(forks.load(SeqCst), 2, "the joiner is told of all");
            let ended = s.join()?;
            assert_eq!(first.result(&ended).unwrap(), "foo");
            assert!(late.peek(&ended).is_none());
            assert!(matches!(
                late.result(&ended),
                Err(SubtaskError::Unavailable)
            ));
            Ok(ended.into_output())
        });
        assert_eq!(completed.unwrap(), 1);
    });
}

#[watched]
fn a_cancellation_interrupts_those_that_run_and_wakes_the_join() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let completed = Builder::new().open_with(CancelOnFirst::default(), |s| {
            // More than are interrupted at once.
            let endless: Vec<_> = (0..70)
                .map(|_| s.fork(|| counted_forever::<()>(&begun, &interrupted)))
                .collect();
            until(|| begun.load(SeqCst) == 70);
            s.fork(|| Ok("bar"));
            let ended = s.join()?;
            assert!(endless.iter().all(|e| e.state() == State::Unavailable));
            Ok(ended.into_output())
        });
        assert_eq!(completed.unwrap(), 1, "told of one that was late");
        assert_eq!(interrupted.load(SeqCst), 70);
    });
}

#[watched]
fn the_owner_can_cancel() {
    everywhere(|| {
        let result = Builder::new().open(|s| {
            let endless = s.fork(forever::<()>);
            s.cancel();
            s.cancel();
            assert!(s.is_cancelled());
            let unjoined = s.join().unwrap_err();
            assert!(matches!(unjoined.error(), JoinError::Cancelled));
            assert_eq!(endless.state(), State::Unavailable);
            Err::<(), _>(unjoined.into_error())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)));
    });
}

#[watched]
fn the_first_reason_counts() {
    everywhere(|| {
        let result = Builder::new().open(|s| {
            s.fork(|| Err::<(), _>("first"));
            until(|| s.is_cancelled());
            s.cancel();
            thread::current().interrupt();
            s.join()?;
            Ok(())
        });
        assert!(thread::take_interrupt());
        assert!(
            matches!(result, Err(JoinError::Failed("first"))),
            "{result:?}"
        );
    });
}

#[watched]
fn late_finishers_stay_unavailable_and_the_joiner_is_not_told() {
    everywhere(|| {
        let (finished, drops) = (AtomicBool::new(false), Drops::default());
        let (drops, joined) = (&drops, Barrier::new(2));
        let begun = AtomicBool::new(false);
        let completed = Builder::new().open_with(CancelOnFirst::default(), |s| {
            let late = s.fork(|| {
                begun.store(true, SeqCst);
                joined.wait(); // whatever happens
                finished.store(true, SeqCst);
                Ok(drops.token())
            });
            until(|| begun.load(SeqCst));
            s.fork(|| Ok(drops.token()));
            let forks = s.joiner().forks.load(SeqCst);
            let ended = s.join()?;
            assert!(!finished.load(SeqCst), "the join waited for it");
            joined.wait();
            // Its value is thrown away.
            until(|| drops.dropped() >= 1 && finished.load(SeqCst));
            assert_eq!(late.state(), State::Unavailable);
            assert!(late.peek(&ended).is_none());
            assert!(matches!(
                late.result(&ended),
                Err(SubtaskError::Unavailable)
            ));
            assert_eq!(forks, 2);
            Ok(ended.into_output())
        });
        assert_eq!(completed.unwrap(), 1);
        assert!(finished.load(SeqCst), "not waited for at the end");
        drops.assert_all(2);
    });
}

#[watched]
fn the_canceller_is_not_interrupted() {
    everywhere(|| {
        let flag = AtomicBool::new(true);
        /// Asks when its subtask is over.
        struct Ask<'a>(&'a AtomicBool);
        impl Drop for Ask<'_> {
            fn drop(&mut self) {
                self.0.store(thread::is_interrupted(), SeqCst);
            }
        }
        Builder::new()
            .open_with(CancelOnFirst::default(), |s| {
                // Without the handle, the subtask's own thread drops its value when it ends.
                drop(s.fork(|| {
                    thread::yield_now();
                    Ok(Ask(&flag))
                }));
                s.join()?;
                Ok(())
            })
            .unwrap();
        assert!(!flag.load(SeqCst));
    });
}

/// Cancels a scope with a blocking subtask when it blocks; that must end `block` with `ECANCELED`.
fn blocked<T: Send>(block: impl FnOnce() -> io::Result<T> + Send) {
    let block = move || {
        let result = block();
        assert!(thread::is_interrupted());
        let error = result.err().expect("nothing to wait for");
        assert!(pirn::thread::is_interrupt(&error), "{error}");
        Err::<(), _>(error)
    };
    let result = pirn::scope::open(|s| {
        let blocked = s.fork(block);
        until_it_waits(&blocked.thread().unwrap());
        s.fork(|| Err::<(), _>(io::Error::other("failed")));
        s.join()?;
        Ok(())
    });
    assert_eq!(result.unwrap_err().flatten().to_string(), "failed");
}

/// On a platform and a virtual owner.
fn both(test: fn()) {
    test();
    crate::common::on_virtual(test);
}

#[watched]
fn blocked_in_an_interruptible_sleep_or_park() {
    both(|| {
        blocked(|| Ok(thread::sleep_interruptible(FOREVER)?));
        blocked(|| Ok(thread::park_interruptible()?));
    });
}

#[watched]
fn blocked_in_the_network() {
    both(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        blocked(|| listener.accept());
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        blocked(|| (&stream).read(&mut [0]));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        blocked(|| socket.recv(&mut [0]));
    });
}

#[watched]
fn blocked_in_a_pipe() {
    both(|| {
        let (mut reader, _writer) = io::pipe().unwrap();
        blocked(move || reader.read(&mut [0]));
    });
}

#[watched]
fn blocked_in_std_sleep_and_park() {
    both(|| {
        let result = pirn::scope::open(|s| {
            // They return early, once.
            let sleeper = s.fork(|| {
                std::thread::sleep(FOREVER);
                Ok(())
            });
            let parked = s.fork(|| {
                thread::park();
                Ok(())
            });
            for subtask in [&sleeper, &parked] {
                until_it_waits(&subtask.thread().unwrap());
            }
            s.fork(|| Err::<(), _>("failed"));
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Failed("failed"))));
    });
}

#[watched]
fn a_subtask_that_finds_itself_interrupted_may_go_on() {
    everywhere(|| {
        let (here, heard) = mpsc::channel();
        let result = Builder::new().open(|s| {
            s.fork(move || {
                forever::<()>().unwrap_err();
                assert!(thread::take_interrupt()); // from here on it can wait again
                thread::sleep_interruptible(std::time::Duration::from_millis(1)).unwrap();
                here.send("cleaned up").unwrap();
                Ok(())
            });
            s.fork(|| Err::<(), _>("failed"));
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Failed("failed"))));
        // It may not have begun when the scope was cancelled.
        assert!(matches!(
            heard.try_recv(),
            Ok("cleaned up") | Err(mpsc::TryRecvError::Disconnected)
        ));
    });
}

#[watched]
fn cancelled_in_the_middle_of_many_forks() {
    everywhere(|| {
        let mut rng = Rng::new(7);
        for _ in 0..50 {
            let (before, after) = (rng.below(20) as usize, rng.below(20) as usize);
            let drops = Drops::default();
            let drops = &drops;
            let completed = Builder::new().open_with(CancelOnFirst::default(), |s| {
                let endless = |token| {
                    s.fork(move || {
                        let _token = token;
                        forever::<Token<'_>>()
                    })
                };
                let mut kept = Vec::new();
                kept.extend((0..before).map(|_| endless(drops.token())));
                s.fork(|| Ok(drops.token()));
                kept.extend((0..after).map(|_| endless(drops.token())));
                kept.truncate(5);
                let ended = s.join()?;
                assert!(kept.iter().all(|e| e.state() == State::Unavailable));
                Ok(ended.into_output())
            });
            assert_eq!(completed.unwrap(), 1);
            assert_eq!(drops.dropped(), before + after + 1);
            drops.assert_all(before + after + 1);
        }
    });
}

#[watched]
fn cancellations_from_many_sides_at_once() {
    everywhere(|| {
        for _ in 0..20 {
            let start = Barrier::new(9);
            let result = Builder::new().open_with(scope::any_successful(), |s| {
                for i in 0..8 {
                    let start = &start;
                    s.fork(move || {
                        start.wait();
                        Ok::<_, Oops>(i)
                    });
                }
                start.wait();
                s.cancel();
                s.join()
                    .map(|joined| joined.into_output())
                    .map_err(Into::into)
            });
            assert!(
                matches!(result, Ok(0..8) | Err(JoinError::Cancelled)),
                "{result:?}"
            );
        }
    });
}
