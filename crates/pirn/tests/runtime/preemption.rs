//! Preemption: threads that compute are put aside in the middle of their code, and notice nothing.
//!
//! Each test runs with one carrier and no spare ones, so that nothing but preemption can help.

use std::ffi::{c_int, c_void};
use std::hint;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

use crate::common::float::Control;
use crate::common::registers::registers_stay;
use crate::common::sys::check;
use crate::common::{SetAtEnd, child, watched};
use pirn::thread;

const ALONE: [(&str, &str); 2] = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];

/// Runs `body` in children with one carrier, and long and short slices.
pub fn alone(body: impl Fn()) {
    child::isolated_each(
        ["10", "100us"].map(|slice| [ALONE[0], ALONE[1], ("PIRN_PREEMPT", slice)]),
        body,
    );
}

/// Computes until `over`.
fn hog(over: &AtomicBool) {
    while !over.load(Relaxed) {
        hint::spin_loop();
    }
}

/// Runs `body` on a virtual thread, beside others that compute by `work`, over and over again.
pub fn beside(hogs: usize, work: impl Fn() + Sync, body: impl FnOnce() + Send) {
    let (over, work) = (AtomicBool::new(false), &work);
    thread::scope(|scope| {
        for _ in 0..hogs {
            scope.spawn(|| {
                let _end = SetAtEnd(&over); // A failure ends all.
                while !over.load(Relaxed) {
                    work();
                }
            });
        }
        scope.spawn(|| {
            let _end = SetAtEnd(&over);
            body();
        });
    });
}

/// As std's: a server whose handler sleeps for a delay of zero is not cut in two by the others.
#[watched]
fn a_sleep_of_zero_lets_nobody_run() {
    child::isolated(&[ALONE[0], ALONE[1], ("PIRN_PREEMPT", "0")], || {
        let has_run = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::scope(|scope| {
                    scope.spawn(|| has_run.store(true, Relaxed));
                    thread::sleep(Duration::ZERO);
                    std::thread::sleep(Duration::ZERO);
                    assert!(!has_run.load(Relaxed));
                    thread::yield_now();
                    assert!(has_run.load(Relaxed));
                });
            });
        });
    });
}

/// Returns after the calling thread has been put aside `times` times, for a thread that it starts.
fn be_preempted(times: u64, mut work: impl FnMut()) {
    let (turns, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            // Each of its turns begins after a preemption of the other.
            while !over.load(Relaxed) {
                turns.fetch_add(1, Relaxed);
                thread::sleep(Duration::from_micros(50));
            }
        });
        while turns.load(Relaxed) < times {
            work();
        }
        over.store(true, Relaxed);
    });
}

#[watched]
fn a_ticker_goes_on_beside_computing_threads() {
    alone(|| {
        beside(20, hint::spin_loop, || {
            for _ in 0..100 {
                thread::sleep(Duration::from_millis(1));
            }
        });
    });
}

#[watched]
fn computing_threads_wait_for_each_other() {
    alone(|| {
        let arrived = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for round in 1..=3 {
                        arrived.fetch_add(1, SeqCst);
                        while arrived.load(SeqCst) < 20 * round {
                            hint::spin_loop();
                        }
                    }
                });
            }
        });
    });
}

#[watched]
fn a_thread_that_main_carries_is_preempted() {
    alone(|| {
        for _ in 0..20 {
            static RAN: AtomicBool = AtomicBool::new(false);
            RAN.store(false, SeqCst);
            let waiting = thread::spawn(|| hog(&RAN));
            let other = thread::spawn(|| RAN.store(true, SeqCst));
            waiting.join().unwrap();
            other.join().unwrap();
        }
    });
}

#[watched]
fn events_of_descriptors_are_urgent() {
    use std::io::{Read, Write};
    alone(|| {
        beside(3, hint::spin_loop, || {
            let (mut here, mut there) = std::os::unix::net::UnixStream::pair().unwrap();
            let echo = std::thread::spawn(move || {
                let mut byte = [0];
                while there.read(&mut byte).unwrap() == 1 {
                    there.write_all(&byte).unwrap();
                }
            });
            for byte in 0..100 {
                here.write_all(&[byte]).unwrap();
                let mut answer = [0];
                here.read_exact(&mut answer).unwrap();
                assert_eq!(answer, [byte]);
            }
            drop(here);
            echo.join().unwrap();
        });
    });
}

#[watched]
fn a_thread_behind_one_that_keeps_its_carrier_is_run_by_another_that_computes() {
    const TWO: [(&str, &str); 2] = [("PIRN_PARALLELISM", "2"), ("PIRN_SPARE_CARRIERS", "8")];
    child::isolated(&TWO, || {
        let (began, over) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _end = SetAtEnd(&over); // A failure ends all.
                began.store(true, Relaxed);
                hog(&over);
            });
            scope.spawn(|| {
                let _end = SetAtEnd(&over);
                while !began.load(Relaxed) {
                    thread::yield_now();
                }
                // Both carriers are taken now: what is spawned stays in this one's queue.
                for _ in 0..2 {
                    scope.spawn(|| over.store(true, Relaxed));
                }
                thread::no_preemption(|| hog(&over));
            });
        });
    });
}

#[watched]
fn what_asks_not_to_be_preempted_is_not() {
    alone(|| {
        let count = AtomicU64::new(0);
        let work = || {
            count.fetch_add(1, Relaxed);
        };
        beside(1, work, || {
            for _ in 0..3 {
                while count.load(Relaxed) == 0 {
                    thread::yield_now();
                }
                thread::no_preemption(|| {
                    let before = count.load(Relaxed);
                    let begin = std::time::Instant::now();
                    while begin.elapsed() < Duration::from_millis(40) {
                        assert_eq!(count.load(Relaxed), before);
                    }
                    // It may wait, and the other runs then; unless the wait is over before that,
                    // because the machine had something else to do.
                    while count.load(Relaxed) == before {
                        thread::sleep(Duration::from_millis(1));
                    }
                });
            }
        });
    });
}

#[watched]
fn code_that_lives_in_libc_gives_way() {
    let memory = || {
        let mut block = vec![0u8; 1 << 20];
        block.fill(hint::black_box(7));
        assert!(block.iter().all(|&byte| byte == 7));
        let copy = block.clone();
        assert!(block == copy);
    };
    let allocation = || {
        for size in 1..100 {
            hint::black_box(vec![0u8; size]);
        }
    };
    let text = || assert!(hint::black_box(format!("{:?}", 1.5f64.sin())).len() > 3);
    alone(|| {
        for work in [&memory as &(dyn Fn() + Sync), &allocation, &text] {
            beside(3, work, || {
                for _ in 0..20 {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
}

#[watched]
fn all_registers_stay() {
    alone(|| {
        let dirty = AtomicU64::new(1);
        let work = || assert!(registers_stay(dirty.fetch_add(0x1234_5678_9abc, Relaxed)));
        beside(2, work, || {
            be_preempted(200, || assert!(registers_stay(42)))
        });
    });
}

#[watched]
fn rounding_modes_stay() {
    alone(|| {
        let work = || {
            Control::DEFAULT.set();
            hint::spin_loop();
        };
        beside(2, work, || {
            let other = Control::rounding(2);
            other.set();
            be_preempted(100, || assert_eq!(Control::get(), other));
            Control::DEFAULT.set();
        });
    });
}

#[watched]
fn errno_and_thread_locals_stay() {
    thread_local!(static OWN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
    alone(|| {
        let numbers = AtomicU64::new(1);
        let check_own = || {
            let mine = numbers.fetch_add(1, Relaxed);
            OWN.set(mine);
            // SAFETY: the thread's own errno.
            unsafe { *libc::__errno_location() = mine as c_int };
            for _ in 0..2000 {
                assert_eq!(OWN.get(), mine);
                // SAFETY: the thread's own errno.
                assert_eq!(unsafe { *libc::__errno_location() }, mine as c_int);
            }
        };
        beside(3, check_own, || be_preempted(200, check_own));
    });
}

#[watched]
fn children_are_started_beside_computing_threads() {
    alone(|| {
        beside(3, hint::spin_loop, || {
            for _ in 0..30 {
                assert!(Command::new("true").status().unwrap().success());
                // SAFETY: a closure that does nothing makes `Command` fork.
                let forking = unsafe { Command::new("true").pre_exec(|| Ok(())).status() };
                assert!(forking.unwrap().success());
            }
            // SAFETY: the child only ends.
            unsafe {
                let child = check(libc::fork()).unwrap();
                if child == 0 {
                    libc::_exit(7);
                }
                let mut status = 0;
                check(libc::waitpid(child, &mut status, 0)).unwrap();
                assert_eq!(libc::WEXITSTATUS(status), 7);
            }
        });
    });
}

unsafe extern "C" {
    fn dl_iterate_phdr(
        callback: unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

#[watched]
fn the_list_of_libraries_can_be_walked_by_many() {
    unsafe extern "C" fn count(_: *mut libc::dl_phdr_info, _: usize, count: *mut c_void) -> c_int {
        for _ in 0..5_000 {
            hint::spin_loop(); // with the linker's lock held
        }
        // SAFETY: the caller's counter.
        unsafe { *count.cast::<usize>() += 1 };
        0
    }
    alone(|| {
        let walk = || {
            let mut objects = 0usize;
            // SAFETY: a callback of the right type, and its counter.
            let result = unsafe { dl_iterate_phdr(count, (&raw mut objects).cast()) };
            assert_eq!(result, 0);
            assert!(objects >= 3);
        };
        beside(3, walk, || (0..20).for_each(|_| walk()));
    });
}

#[watched]
fn calls_that_do_not_wait_are_not_interrupted() {
    let poll = || {
        // SAFETY: no descriptors.
        let polled = check(unsafe { libc::poll(std::ptr::null_mut(), 0, 0) });
        assert_eq!(polled.unwrap(), 0);
        let mut now = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        let none = std::ptr::null_mut();
        // SAFETY: no descriptors, and a valid time.
        let selected = check(unsafe { libc::select(0, none, none, none, &mut now) });
        assert_eq!(selected.unwrap(), 0);
    };
    alone(|| beside(3, poll, || thread::sleep(Duration::from_millis(300))));
}
