//! Deadlines for the extent of a call: what they end, what they leave, how they are inherited.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::common::{on_virtual, virtual_crowd, watched};
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, with_deadline};
use pirn::thread::{self, Interrupted};

/// Soon enough for a test to wait for.
const SOON: Duration = Duration::from_millis(5);
/// Later than the end of each test.
const LATE: Duration = Duration::from_secs(3600);

fn after(duration: Duration) -> Instant {
    Instant::now() + duration
}

/// Runs a test on both kinds of threads. It must leave no interrupt behind.
fn on_both(test: fn()) {
    let whole = move || {
        test();
        assert!(!thread::is_interrupted());
        assert_eq!(scope::deadline(), None);
    };
    whole();
    on_virtual(whole);
}

#[watched]
fn it_ends_a_wait() {
    on_both(|| {
        let deadline = after(SOON);
        let result = with_deadline(deadline, || thread::sleep_interruptible(FOREVER));
        assert_eq!(result, Err(Interrupted));
        assert!(Instant::now() >= deadline);
        // The next wait is not disturbed.
        assert_eq!(
            thread::sleep_interruptible(Duration::from_micros(1)),
            Ok(())
        );
    });
}

#[watched]
fn it_ends_input_and_what_begins_afterwards() {
    on_virtual(|| {
        let (mut silent, _other) = UnixStream::pair().unwrap();
        with_deadline(after(SOON), || {
            for _ in 0..3 {
                let error = silent.read(&mut [0]).unwrap_err();
                assert!(thread::is_interrupt(&error));
            }
            assert!(thread::is_interrupted());
            // A thread that has been told of it may wait again, to clean up.
            assert!(thread::take_interrupt());
            assert_eq!(
                thread::sleep_interruptible(Duration::from_micros(1)),
                Ok(())
            );
        });
        assert!(!thread::is_interrupted());
    });
}

#[watched]
fn a_call_that_returns_in_time_is_left_alone() {
    on_both(|| {
        for _ in 0..100 {
            assert_eq!(with_deadline(after(LATE), || 7), 7);
        }
    });
}

#[watched]
fn a_deadline_that_has_passed_interrupts_at_once() {
    on_both(|| {
        let passed = Instant::now();
        assert!(with_deadline(passed, thread::is_interrupted));
        // An outer call's time is up as well: the inner one leaves the flag.
        with_deadline(passed, || {
            with_deadline(after(LATE), || assert!(thread::is_interrupted()));
            assert!(thread::is_interrupted());
        });
    });
}

#[watched]
fn code_that_computes_to_its_end_keeps_its_result() {
    on_both(|| {
        let deadline = after(SOON);
        let number = with_deadline(deadline, || {
            until(|| Instant::now() > deadline && thread::is_interrupted());
            7
        });
        assert_eq!(number, 7);
    });
}

#[watched]
fn the_earlier_of_two_deadlines_holds() {
    on_both(|| {
        let soon = after(SOON);
        with_deadline(soon, || {
            with_deadline(after(LATE), || {
                assert!(scope::deadline().unwrap() <= soon + SOON);
                assert_eq!(thread::sleep_interruptible(FOREVER), Err(Interrupted));
            });
            assert!(thread::is_interrupted()); // the outer call is still under way
        });
        with_deadline(after(LATE), || {
            let result = with_deadline(after(SOON), || thread::sleep_interruptible(FOREVER));
            assert_eq!(result, Err(Interrupted));
            assert!(!thread::is_interrupted());
            assert_eq!(
                thread::sleep_interruptible(Duration::from_micros(1)),
                Ok(())
            );
        });
    });
}

#[watched]
fn an_interrupt_by_another_thread_stays() {
    on_both(|| {
        let me = thread::current();
        // Before, between and after the expiry and the end of the call.
        with_deadline(after(LATE), || me.interrupt());
        assert!(thread::take_interrupt());
        with_deadline(Instant::now(), || me.interrupt());
        assert!(thread::take_interrupt());
        me.interrupt();
        with_deadline(Instant::now(), || assert!(thread::is_interrupted()));
        assert!(thread::take_interrupt());
    });
}

#[watched]
fn expiries_and_interrupts_at_the_same_time() {
    let interrupted = AtomicUsize::new(0);
    virtual_crowd(|number| {
        let (send, me) = channel();
        let other = thread::spawn(move || {
            let me: thread::Thread = me.recv().unwrap();
            me.interrupt();
        });
        let deadline = after(Duration::from_micros(number as u64 % 50));
        with_deadline(deadline, || {
            send.send(thread::current()).unwrap();
            for _ in 0..number % 5 {
                thread::yield_now();
            }
        });
        other.join().unwrap();
        // However they met, the other thread's interrupt is there, once.
        interrupted.fetch_add(usize::from(thread::take_interrupt()), SeqCst);
        assert!(!thread::is_interrupted());
        assert_eq!(thread::sleep_interruptible(Duration::from_nanos(1)), Ok(()));
    });
    assert_eq!(interrupted.into_inner(), crate::common::many());
}

#[watched]
fn a_scope_within_the_call_ends_with_it() {
    everywhere(|| {
        let result = with_deadline(after(SOON), || {
            Builder::new().open(|s| {
                let subtask = s.fork(|| {
                    assert!(scope::deadline().is_some()); // inherited by the subtask's thread
                    forever::<u8>()
                });
                let all = s.join()?;
                Ok(subtask.get(&all))
            })
        });
        assert!(matches!(result, Err(JoinError::TimedOut)), "{result:?}");
    });
}

#[watched]
fn a_call_within_a_scope_ends_with_that() {
    on_both(|| {
        let result = Builder::new().timeout(SOON).open::<Oops, _, _>(|_| {
            assert!(scope::deadline().is_some());
            // The owner is not interrupted by its scope, but by the call.
            let result = with_deadline(after(LATE), || thread::sleep_interruptible(FOREVER));
            assert_eq!(result, Err(Interrupted));
            Ok(())
        });
        assert!(result.is_ok());
    });
}

#[watched]
fn threads_without_a_scope_inherit_none() {
    on_both(|| {
        with_deadline(after(LATE), || {
            assert_eq!(thread::spawn(scope::deadline).join().unwrap(), None);
        });
    });
}

#[watched]
fn a_panic_ends_it() {
    on_both(|| {
        assert_eq!(
            panic_of(|| with_deadline(after(LATE), || panic!("no"))),
            "no"
        );
        assert_eq!(
            panic_of(|| with_deadline(Instant::now(), || panic!("late"))),
            "late"
        );
    });
}

#[watched]
fn listeners_hear_of_it() {
    on_both(|| {
        let heard = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&heard);
        with_deadline(after(SOON), || {
            let _guard = thread::on_interrupt(move || {
                counter.fetch_add(1, SeqCst);
            });
            until(|| heard.load(SeqCst) == 1);
        });
    });
}

#[watched]
fn the_child_of_a_fork_leaves_the_call() {
    on_virtual(|| {
        let left = with_deadline(after(LATE), || {
            // SAFETY: the child returns from the call, and exits.
            match unsafe { libc::fork() } {
                0 => None,
                child => Some(child),
            }
        });
        match left {
            // SAFETY: no arguments that matter.
            None => unsafe { libc::_exit(7) },
            Some(pid) => {
                let mut status = 0;
                // SAFETY: its own child.
                assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
                assert_eq!(libc::WEXITSTATUS(status), 7);
            }
        }
    });
}
