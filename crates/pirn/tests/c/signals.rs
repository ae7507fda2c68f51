//! Signals arriving on virtual threads.
//!
//! Handlers belong to the process, so each test has its own process.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::sys::{self, check, on_signal};
use crate::common::{crowd, pattern, virtual_crowd, watched};
use libc::{SIGALRM, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, c_int};
use pirn::thread;

thread_local! {
    static SIGNALS: Cell<usize> = const { Cell::new(0) };
}

/// Counts on the interrupted thread.
extern "C" fn count(_signal: c_int) {
    SIGNALS.set(SIGNALS.get() + 1);
}

#[watched(alone)]
fn raise_runs_the_handler_on_the_virtual_thread() {
    on_signal(SIGUSR1, 0, count);
    crowd(|i| {
        for round in 1..=10 {
            let error = (i % 100) as c_int;
            sys::set_errno(error);
            // SAFETY: the handler is installed.
            unsafe { libc::raise(SIGUSR1) };
            assert_eq!((SIGNALS.get(), sys::errno()), (round, error));
            thread::yield_now();
            assert_eq!(SIGNALS.get(), round);
        }
    });
}

#[watched(alone)]
fn pthread_kill_of_oneself_runs_the_handler_here() {
    on_signal(SIGUSR2, 0, count);
    virtual_crowd(|_| {
        for round in 1..=10 {
            // SAFETY: this thread is alive.
            let error = unsafe { libc::pthread_kill(libc::pthread_self(), SIGUSR2) };
            assert_eq!(error, 0);
            assert_eq!(SIGNALS.get(), round);
            thread::yield_now();
        }
    });
}

static ARRIVED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static DISTURBED: Cell<usize> = const { Cell::new(0) };
}

/// Uses the state of whichever thread is interrupted.
extern "C" fn arrive(_signal: c_int) {
    let saved = sys::errno();
    ARRIVED.fetch_add(1, SeqCst);
    DISTURBED.set(DISTURBED.get() + 1);
    sys::set_errno(libc::EXDEV);
    sys::set_errno(saved);
}

/// Sends `signal` to this process repeatedly while `body` runs.
fn under_fire(signal: c_int, body: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                // SAFETY: a handler is installed.
                check(unsafe { libc::kill(libc::getpid(), signal) }).unwrap();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        body();
        over.store(true, SeqCst);
    });
}

#[watched(alone)]
fn sleeps_last_in_spite_of_signals() {
    on_signal(SIGALRM, 0, arrive);
    let before = ARRIVED.load(SeqCst);
    under_fire(SIGALRM, || {
        crowd(|_| {
            let begin = Instant::now();
            thread::sleep(Duration::from_millis(30));
            assert!(begin.elapsed() >= Duration::from_millis(30));
            let begin = Instant::now();
            std::thread::sleep(Duration::from_millis(30));
            assert!(begin.elapsed() >= Duration::from_millis(30));
        });
    });
    assert!(ARRIVED.load(SeqCst) > before);
}

#[watched(alone)]
fn streams_are_whole_in_spite_of_signals() {
    // Without SA_RESTART, so that calls may fail with EINTR; `std` begins them again.
    on_signal(SIGURG, 0, arrive);
    let data = pattern(2 << 20);
    under_fire(SIGURG, || {
        let (reader, writer) = io::pipe().unwrap();
        thread::scope(|scope| {
            let data = &data;
            scope.spawn(move || (&writer).write_all(data).unwrap());
            scope.spawn(move || {
                let mut received = Vec::new();
                (&reader).read_to_end(&mut received).unwrap();
                assert!(&received == data, "damaged");
            });
        });
    });
}

#[watched(alone)]
fn locks_and_threads_work_in_spite_of_signals() {
    on_signal(SIGVTALRM, libc::SA_RESTART, arrive);
    let total = std::sync::Mutex::new(0);
    under_fire(SIGVTALRM, || {
        for _ in 0..5 {
            crowd(|_| {
                for _ in 0..10 {
                    *total.lock().unwrap() += 1;
                    thread::yield_now();
                }
            });
        }
    });
    assert_eq!(
        total.into_inner().unwrap(),
        50 * crate::common::crowd_size()
    );
}

/// Ids come again. The kernel's timers are for a thread, not for its id.
#[watched(alone)]
fn a_timer_of_a_thread_that_has_ended_signals_no_other() {
    on_signal(SIGUSR1, libc::SA_RESTART, count);
    // SAFETY: no pointers.
    let own_id = || unsafe { libc::gettid() };
    let id = thread::spawn(move || {
        sys::mask(libc::SIG_BLOCK, SIGUSR1).unwrap();
        // SAFETY: all zeros is an event; the kernel reads it and a time, and writes a timer.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            (event.sigev_signo, event.sigev_notify_thread_id) = (SIGUSR1, own_id());
            let mut timer = std::ptr::null_mut();
            check(libc::timer_create(
                libc::CLOCK_MONOTONIC,
                &mut event,
                &mut timer,
            ))
            .unwrap();
            let often = sys::timespec(Duration::from_micros(100));
            let time = libc::itimerspec {
                it_interval: often,
                it_value: often,
            };
            check(libc::timer_settime(timer, 0, &time, std::ptr::null_mut())).unwrap();
        }
        own_id()
    });
    let id = id.join().unwrap();
    let next = move || {
        (own_id() == id).then(|| {
            thread::sleep(Duration::from_millis(5));
            SIGNALS.get()
        })
    };
    let mut ends = std::iter::repeat_with(|| thread::spawn(next).join().unwrap());
    assert_eq!(ends.find_map(|signals| signals), Some(0));
}
