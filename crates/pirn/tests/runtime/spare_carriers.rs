//! Spare carriers: threads that compute, spin, or block in the kernel do not keep the others from
//! running.

use std::cell::Cell;
use std::hint;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::common::{Rng, child, sys, until_it_waits, watched};
use pirn::thread;

const ONE: (&str, &str) = ("PIRN_PARALLELISM", "1");
const TWO: (&str, &str) = ("PIRN_PARALLELISM", "2");
const NO_SPARES: (&str, &str) = ("PIRN_SPARE_CARRIERS", "0");
/// The default maximum number of spare carriers.
const SPARES: usize = 16;

/// Keeps its carrier until `over`.
fn hog(over: &AtomicBool) {
    while !over.load(SeqCst) {
        hint::spin_loop();
    }
}

/// Keeps its carrier for this long.
fn compute(duration: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < duration {
        hint::spin_loop();
    }
}

/// Keeps its carrier until `count` threads have arrived.
fn meet(arrived: &AtomicUsize, count: usize) {
    arrived.fetch_add(1, SeqCst);
    while arrived.load(SeqCst) < count {
        hint::spin_loop();
    }
}

/// Ends only if `count` threads that do not yield run at the same moment.
fn all_at_once(count: usize) {
    let arrived = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| meet(&arrived, count));
        }
    });
}

/// Runs `body` while `count` virtual threads keep their carriers, each on one of its own.
fn amid_hogs(count: usize, body: impl FnOnce()) {
    let (over, started) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                meet(&started, count);
                hog(&over);
            });
        }
        while started.load(SeqCst) < count {
            thread::sleep(Duration::from_micros(100));
        }
        body();
        over.store(true, SeqCst);
    });
}

#[watched]
fn a_thread_may_spin_until_another_has_run() {
    child::isolated(&[ONE], || {
        for _ in 0..20 {
            crate::common::on_virtual(|| {
                let ran = AtomicBool::new(false);
                thread::scope(|scope| {
                    scope.spawn(|| ran.store(true, SeqCst));
                    hog(&ran);
                });
            });
        }
    });
}

#[watched]
fn as_many_as_all_carriers_may_spin() {
    let few = ("PIRN_SPARE_CARRIERS", "3");
    child::isolated_each([[ONE, few], [TWO, few]], || {
        let count = crate::common::most_carriers();
        for _ in 0..5 {
            all_at_once(count);
        }
    });
}

#[watched]
fn by_default_there_are_sixteen_spare_carriers() {
    child::isolated(&[ONE], || {
        assert_eq!(crate::common::most_carriers(), 1 + SPARES);
        all_at_once(1 + SPARES);
    });
}

#[watched]
fn threads_that_yield_for_a_while_and_then_spin_meet() {
    child::isolated(&[ONE], || {
        // Spare carriers are let go while all threads yield, and may meanwhile get a thread that
        // spins.
        for round in 0..40 {
            let (early, late) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let end = Instant::now() + Duration::from_millis(15 + round);
            thread::scope(|scope| {
                for _ in 0..5 {
                    scope.spawn(|| {
                        meet(&early, 5);
                        while Instant::now() < end {
                            compute(Duration::from_micros(300));
                            thread::yield_now();
                        }
                        meet(&late, 5);
                    });
                }
            });
        }
    });
}

#[watched]
fn a_sleeper_is_woken_while_all_compute() {
    child::isolated(&[TWO], || {
        amid_hogs(2, || {
            let sleeper = thread::spawn(|| thread::sleep(Duration::from_millis(20)));
            sleeper.join().unwrap();
        });
    });
}

#[watched]
fn a_reader_is_woken_while_all_compute() {
    child::isolated(&[TWO], || {
        for _ in 0..5 {
            let (mut near, mut far) = UnixStream::pair().unwrap();
            let reader = thread::spawn(move || {
                let mut byte = [0];
                near.read_exact(&mut byte).unwrap();
                byte[0]
            });
            until_it_waits(reader.thread());
            // No timer is due, and no other thread waits: the event is the only work.
            amid_hogs(2, || {
                far.write_all(b"x").unwrap();
                assert_eq!(reader.join().unwrap(), b'x');
            });
        }
    });
}

#[watched]
fn a_timer_outlives_the_spare_carrier_that_armed_it() {
    child::isolated(&[ONE], || {
        let (sender, receiver) = mpsc::channel();
        // This thread has the regular carrier, so the sleeper begins on a spare one.
        let first = thread::spawn(move || {
            let started = std::sync::Arc::new(AtomicBool::new(false));
            let tell = started.clone();
            let sleeper = thread::spawn(move || {
                tell.store(true, SeqCst);
                // Meanwhile the regular carrier goes to sleep, and knows of no timer.
                compute(Duration::from_millis(50));
                thread::sleep(Duration::from_secs(2));
            });
            hog(&started);
            sender.send(sleeper).unwrap();
        });
        first.join().unwrap();
        receiver.recv().unwrap().join().unwrap();
    });
}

/// Returns the maximum number of `count` threads calling `work` that ran at the same moment.
fn most_at_once(count: usize, work: impl Fn() + Sync) -> usize {
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                // A thread that is put aside would count as running.
                thread::no_preemption(|| {
                    most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                    work();
                    inside.fetch_sub(1, SeqCst);
                });
            });
        }
    });
    most.into_inner()
}

#[watched]
fn without_spare_carriers_there_are_never_two_at_once() {
    child::isolated(&[ONE, NO_SPARES], || {
        let most = most_at_once(30, || compute(Duration::from_millis(20)));
        assert_eq!(most, 1);
    });
}

/// Spins on `count` carriers at once, and then yields in turn until no more threads run at the same
/// moment than without spare carriers.
fn spin_and_calm_down(count: usize) {
    let (arrived, calm) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (inside, most, steps) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                meet(&arrived, count);
                while !calm.load(SeqCst) {
                    thread::no_preemption(|| {
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        (0..1000).for_each(|_| hint::spin_loop());
                        inside.fetch_sub(1, SeqCst);
                    });
                    steps.fetch_add(1, SeqCst);
                    thread::yield_now();
                }
            });
        }
        while !calm.load(SeqCst) {
            // If two run at once in any of this many steps, the system is not calm yet.
            let target = steps.load(SeqCst) + 1000;
            most.store(0, SeqCst);
            while steps.load(SeqCst) < target {
                std::thread::sleep(Duration::from_millis(1));
            }
            calm.store(most.load(SeqCst) <= crate::common::carriers(), SeqCst);
        }
    });
}

#[watched]
fn after_the_hogs_the_parallelism_holds_again() {
    child::isolated_each([[ONE], [TWO]], || {
        for _ in 0..3 {
            spin_and_calm_down(10);
            let work = || (0..1000).for_each(|_| hint::spin_loop());
            while most_at_once(3000, work) > crate::common::carriers() {}
        }
    });
}

#[watched]
fn threads_behind_a_stuck_one_are_not_forgotten_by_the_busy() {
    child::isolated_each([vec![TWO, NO_SPARES], vec![TWO]], || {
        for _ in 0..10 {
            let ran = AtomicBool::new(false);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while !ran.load(SeqCst) {
                            thread::yield_now();
                        }
                    });
                }
                // Its child waits in the queue of the very carrier that it keeps.
                scope.spawn(|| {
                    scope.spawn(|| ran.store(true, SeqCst));
                    hog(&ran);
                });
            });
        }
    });
}

/// Calls the kernel's `read` directly, which the runtime does not see.
fn inline_read(fd: i32, byte: &mut u8) -> isize {
    sys::inline(
        libc::SYS_read,
        fd as usize,
        ptr::from_mut(byte).addr(),
        1,
        0,
        0,
    )
}

#[watched]
fn a_thread_blocked_in_the_kernel_does_not_stop_the_others() {
    child::isolated(&[ONE], || {
        let pipes = crate::common::pipes(5);
        let begun = AtomicUsize::new(0);
        thread::scope(|scope| {
            for (reader, _) in &pipes {
                scope.spawn(|| {
                    let mut byte = 0;
                    begun.fetch_add(1, SeqCst);
                    assert_eq!(inline_read(reader.as_raw_fd(), &mut byte), 1);
                    assert_eq!(byte, b'x');
                });
            }
            scope.spawn(|| {
                while begun.load(SeqCst) < pipes.len() {
                    thread::sleep(Duration::from_millis(1));
                }
                crate::common::write_to_all(&pipes);
            });
        });
    });
}

#[watched]
fn resting_spare_carriers_keep_no_stacks_from_others() {
    child::isolated(&[ONE], || {
        // Each spare carrier took stacks when it began with its thread.
        all_at_once(1 + SPARES);
        // One by one, so that every number of threads is the maximum at some time.
        let mut parked = Vec::new();
        for i in 0..4000 {
            let (here, arrived) = mpsc::channel();
            parked.push(thread::spawn(move || {
                here.send(()).unwrap();
                thread::park();
                i
            }));
            arrived.recv().unwrap();
        }
        for (i, handle) in parked.into_iter().enumerate() {
            handle.thread().unpark();
            assert_eq!(handle.join().unwrap(), i);
        }
    });
}

/// Forks, and executes `true` in the child.
fn fork_and_exec() {
    // SAFETY: the child calls nothing but `execv` and `_exit`.
    unsafe {
        let arguments = [c"true".as_ptr(), std::ptr::null()];
        let pid = libc::fork();
        if pid == 0 {
            libc::execv(c"/bin/true".as_ptr(), arguments.as_ptr());
            libc::_exit(9);
        }
        assert_eq!(sys::waitpid(pid).unwrap(), 0);
    }
}

#[watched]
fn processes_are_made_while_spare_carriers_run() {
    child::isolated(&[ONE], || {
        amid_hogs(4, || {
            thread::scope(|scope| {
                for _ in 0..5 {
                    scope.spawn(fork_and_exec);
                    scope.spawn(|| {
                        let output = Command::new("echo").arg("weft").output().unwrap();
                        assert_eq!(output.stdout, b"weft\n");
                    });
                    scope.spawn(|| {
                        let mut command = Command::new("true");
                        // Makes `std` fork.
                        // SAFETY: does nothing.
                        unsafe { command.pre_exec(|| Ok(())) };
                        assert!(command.status().unwrap().success());
                    });
                }
            });
        });
    });
}

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Runs some rounds of one of some thousand threads, in pairs: one turn for each token that it
/// receives.
fn weave(seed: usize, tokens: &Mutex<mpsc::Receiver<u64>>, partner: &mpsc::Sender<u64>) -> u64 {
    const ROUNDS: u64 = 10;
    let mut rng = Rng::new(seed as u64);
    let tokens = tokens.lock().unwrap();
    for _ in 0..ROUNDS {
        let token = tokens.recv().unwrap();
        OWN.set(OWN.get() + token);
        match rng.below(20) {
            0 => thread::sleep(rng.micros(3000)),
            1 => thread::yield_now(),
            2 => thread::park_timeout(rng.micros(500)),
            3 => OWN.set(OWN.get() + thread::spawn(|| OWN.get()).join().unwrap()),
            _ => {}
        }
        let _ = partner.send(token); // which may have had its rounds
    }
    OWN.get()
}

#[watched]
fn traffic_stays_in_order_while_hogs_come_and_go() {
    const PAIRS: usize = 2000;
    child::isolated_each([[ONE], [TWO]], || {
        let (over, sum) = (AtomicBool::new(false), AtomicU64::new(0));
        let (over, sum) = (&over, &sum);
        thread::scope(|scope| {
            for i in 0..6 {
                scope.spawn(move || {
                    let mut rng = Rng::new(i);
                    while !over.load(SeqCst) {
                        compute(rng.micros(12_000));
                        thread::sleep(rng.micros(12_000));
                    }
                });
            }
            thread::scope(|scope| {
                for i in 0..PAIRS {
                    let (left, to_left) = mpsc::channel();
                    let (right, to_right) = mpsc::channel();
                    let own = (left.clone(), right.clone());
                    left.send(i as u64).unwrap();
                    scope.spawn(move || {
                        let got = weave(2 * i, &Mutex::new(to_left), &right);
                        sum.fetch_add(got, Relaxed);
                    });
                    scope.spawn(move || {
                        let got = weave(2 * i + 1, &Mutex::new(to_right), &left);
                        sum.fetch_add(got, Relaxed);
                        drop(own);
                    });
                }
            });
            over.store(true, SeqCst);
        });
        let once: u64 = (0..PAIRS as u64).sum();
        assert_eq!(sum.load(SeqCst), 2 * 10 * once);
    });
}
