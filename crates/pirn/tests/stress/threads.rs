//! Stress, after the tests of the same names for Loom. Each runs for a second, or for
//! `PIRN_STRESS_SECONDS`; they find defects that appear by chance, as a hang or a wrong sum.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::common::{Rng, carriers, child, watched};
use pirn::thread::{self, Thread};

const SETTING: &str = "PIRN_STRESS_SECONDS";

/// Leaves of the tree of Skynet, a power of ten.
const LEAVES: u64 = 100_000;
/// Threads that sleep or are parked at the same time.
const HORDE: usize = 20_000;

/// Returns the duration of each test.
pub fn length() -> Duration {
    let seconds = match env::var(SETTING) {
        Ok(text) => text.parse().expect(SETTING),
        Err(_) => 1.0,
    };
    Duration::from_secs_f64(seconds)
}

/// Returns the limit of each test.
pub fn limit() -> Duration {
    Duration::from_secs(120) + 4 * length()
}

/// Runs `round(0)`, `round(1)`, … until the time is up, at least once.
fn rounds(mut round: impl FnMut(u64)) {
    let end = Instant::now() + length();
    for number in 0.. {
        round(number);
        if Instant::now() >= end {
            return;
        }
    }
}

/// Parks until `ready` holds; the thread that makes it hold unparks this one.
fn park_until(ready: impl Fn() -> bool) {
    while !ready() {
        thread::park();
    }
}

/// Lets two threads, of either kind, take turns by park and unpark.
fn take_turns(turns: usize, platform_partner: bool) {
    let turn = Arc::new(AtomicUsize::new(0));
    let player = |parity: usize, turn: Arc<AtomicUsize>, partner: mpsc::Receiver<Thread>| {
        move || {
            let partner = partner.recv().unwrap();
            for i in (parity..turns).step_by(2) {
                park_until(|| turn.load(SeqCst) == i);
                turn.store(i + 1, SeqCst);
                partner.unpark();
            }
        }
    };
    let (to_even, even_partner) = mpsc::channel();
    let (to_odd, odd_partner) = mpsc::channel();
    let even = thread::spawn(player(0, turn.clone(), even_partner));
    let odd = player(1, turn.clone(), odd_partner);
    let odd = move || {
        to_even.send(thread::current()).unwrap();
        odd();
    };
    to_odd.send(even.thread().clone()).unwrap();
    if platform_partner {
        std::thread::spawn(odd).join().unwrap();
    } else {
        thread::spawn(odd).join().unwrap();
    }
    even.join().unwrap();
    assert_eq!(turn.load(SeqCst), turns);
}

#[watched(limit = limit())]
fn parking() {
    rounds(|round| {
        thread::scope(|scope| {
            for i in 0..20 {
                scope.spawn(move || take_turns(200, (i + round) % 5 == 0));
            }
        });
    });
}

#[watched(limit = limit())]
fn park_after_timed_park() {
    rounds(|round| {
        thread::scope(|scope| {
            for i in 0..200 {
                let mut rng = Rng::new(round * 1000 + i);
                let open = Arc::new(AtomicBool::new(false));
                let (timeout, delay) = (rng.micros(1000), rng.micros(1000));
                let parked = scope.spawn({
                    let open = Arc::clone(&open);
                    move || {
                        // The time-out and the unpark race; neither may spoil the park after it.
                        thread::park_timeout(timeout);
                        park_until(|| open.load(SeqCst));
                    }
                });
                let parked = parked.thread().clone();
                scope.spawn(move || {
                    thread::sleep(delay);
                    open.store(true, SeqCst);
                    parked.unpark();
                });
            }
        });
    });
}

#[watched(limit = limit())]
fn ping_pong() {
    rounds(|round| {
        for capacity in [0, 1] {
            let (ping, pings) = mpsc::sync_channel(capacity);
            let (pong, pongs) = mpsc::sync_channel(capacity);
            let echo = move || pings.into_iter().for_each(|ball| pong.send(ball).unwrap());
            let joined: Box<dyn FnOnce()> = if round % 4 == 0 {
                let handle = std::thread::spawn(echo);
                Box::new(move || handle.join().unwrap())
            } else {
                let handle = thread::spawn(echo);
                Box::new(move || handle.join().unwrap())
            };
            crate::common::on_virtual(move || {
                for ball in 0..1000 {
                    ping.send(ball).unwrap();
                    assert_eq!(pongs.recv(), Ok(ball));
                }
            });
            joined();
        }
    });
}

#[watched(limit = limit())]
fn skynet() {
    fn node(first: u64, leaves: u64, parent: mpsc::Sender<u64>) {
        if leaves == 1 {
            return parent.send(first).unwrap();
        }
        let (sender, sums) = mpsc::channel();
        for i in 0..10 {
            let (sender, leaves) = (sender.clone(), leaves / 10);
            thread::spawn(move || node(first + i * leaves, leaves, sender));
        }
        drop(sender);
        parent.send(sums.iter().sum()).unwrap();
    }
    rounds(|_| {
        let (sender, sum) = mpsc::channel();
        thread::spawn(move || node(0, LEAVES, sender));
        assert_eq!(sum.recv(), Ok(LEAVES * (LEAVES - 1) / 2));
    });
}

#[watched(limit = limit())]
fn yield_a_lot() {
    rounds(|_| {
        let yields = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..50 * carriers() {
                scope.spawn(|| {
                    for _ in 0..100 {
                        thread::yield_now();
                        std::thread::yield_now();
                        yields.fetch_add(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!(yields.into_inner(), 5000 * carriers() as u64);
    });
}

#[watched(limit = limit())]
fn sleep_a_lot() {
    rounds(|round| {
        let slept = AtomicUsize::new(0);
        let slept = &slept;
        thread::scope(|scope| {
            for i in 0..HORDE {
                scope.spawn(move || {
                    let mut rng = Rng::new(round * 100_000 + i as u64);
                    for _ in 0..3 {
                        let (length, begin) = (rng.micros(200_000), Instant::now());
                        thread::sleep(length);
                        assert!(begin.elapsed() >= length);
                    }
                    slept.fetch_add(1, SeqCst);
                });
            }
        });
        assert_eq!(slept.load(SeqCst), HORDE);
    });
}

#[watched(limit = limit())]
fn a_horde_parks_and_is_woken() {
    rounds(|_| {
        let (arrived, open) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (arrived, open) = (&arrived, &open);
        thread::scope(|scope| {
            let handles: Vec<_> = (0..5 * HORDE)
                .map(|_| {
                    scope.spawn(move || {
                        arrived.fetch_add(1, SeqCst);
                        park_until(|| open.load(SeqCst));
                    })
                })
                .collect();
            while arrived.load(SeqCst) < handles.len() {
                thread::yield_now();
            }
            open.store(true, SeqCst);
            handles.iter().for_each(|handle| handle.thread().unpark());
        });
    });
}

#[watched(limit = limit())]
fn timed_get() {
    rounds(|round| {
        thread::scope(|scope| {
            for i in 0..200 {
                let mut rng = Rng::new(round * 1000 + i);
                let (task, patience) = (rng.micros(2000), rng.micros(2000));
                scope.spawn(move || {
                    let (sender, result) = mpsc::sync_channel(1);
                    thread::spawn(move || {
                        thread::sleep(task);
                        let _ = sender.send(i); // the receiver may have given up
                    });
                    let begin = Instant::now();
                    match result.recv_timeout(patience) {
                        Ok(value) => assert_eq!(value, i),
                        Err(RecvTimeoutError::Timeout) => assert!(begin.elapsed() >= patience),
                        Err(RecvTimeoutError::Disconnected) => panic!("the value was lost"),
                    }
                });
            }
        });
    });
}

#[watched(limit = limit())]
fn timed_wait_a_lot() {
    // Notifications race with timeouts. Still, each permit goes to exactly one thread.
    rounds(|round| {
        let (permits, changed) = (Mutex::new(0), Condvar::new());
        let (permits, changed) = (&permits, &changed);
        let threads = 200;
        thread::scope(|scope| {
            for i in 0..threads {
                let mut rng = Rng::new(round * 1000 + i);
                scope.spawn(move || {
                    let mut guard = permits.lock().unwrap();
                    while *guard == 0 {
                        guard = changed.wait_timeout(guard, rng.micros(2000)).unwrap().0;
                    }
                    *guard -= 1;
                });
            }
            scope.spawn(move || {
                let mut rng = Rng::new(round);
                for _ in 0..threads {
                    *permits.lock().unwrap() += 1;
                    changed.notify_one();
                    if rng.below(4) == 0 {
                        thread::sleep(rng.micros(100));
                    }
                }
            });
        });
        assert_eq!(*permits.lock().unwrap(), 0);
    });
}

#[watched(limit = limit())]
fn notified_then_timed_out_wait() {
    rounds(|_| {
        let (state, changed) = (Mutex::new(0), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                let guard = state.lock().unwrap();
                let guard = changed.wait_while(guard, |state| *state != 1).unwrap();
                // A second wait, which no thread ends, in the place of the first.
                let short = Duration::from_micros(200);
                let (mut guard, result) = changed
                    .wait_timeout_while(guard, short, |state| *state == 1)
                    .unwrap();
                assert!(result.timed_out());
                *guard = 2;
                changed.notify_all();
            });
            scope.spawn(|| {
                *state.lock().unwrap() = 1;
                changed.notify_all();
                let guard = state.lock().unwrap();
                drop(changed.wait_while(guard, |state| *state != 2).unwrap());
            });
        });
    });
}

#[watched(limit = limit())]
fn mixed() {
    rounds(|round| {
        let crowd = 200;
        let shared = Mutex::new(0_u64);
        let expected = AtomicU64::new(0);
        let all_here = Barrier::new(crowd);
        let (sender, receiver) = mpsc::sync_channel(3);
        let (shared, expected, all_here) = (&shared, &expected, &all_here);
        thread::scope(|scope| {
            let receiving = scope.spawn(move || receiver.iter().sum::<u64>());
            let workers: Vec<_> = (0..crowd as u64)
                .map(|i| {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        all_here.wait();
                        let mut rng = Rng::new(round * 1000 + i);
                        let mut sent = 0;
                        for _ in 0..20 {
                            sent += random_step(&mut rng, shared, expected, &sender);
                        }
                        sent
                    })
                })
                .collect();
            drop(sender);
            let sent: u64 = workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .sum();
            assert_eq!(receiving.join().unwrap(), sent);
        });
        assert_eq!(*shared.lock().unwrap(), expected.load(SeqCst));
    });
}

/// Does one of several things that block. Returns the value that was sent.
fn random_step(
    rng: &mut Rng,
    shared: &Mutex<u64>,
    expected: &AtomicU64,
    sender: &mpsc::SyncSender<u64>,
) -> u64 {
    let value = rng.below(100);
    match rng.below(8) {
        0 => thread::sleep(rng.micros(300)),
        1 => thread::park_timeout(rng.micros(300)),
        2 => thread::yield_now(),
        3 => {
            sender.send(value).unwrap();
            return value;
        }
        4 => {
            let doubled = thread::spawn(move || 2 * value);
            assert_eq!(doubled.join().unwrap(), 2 * value);
        }
        5 => {
            let doubled = std::thread::spawn(move || 2 * value);
            assert_eq!(doubled.join().unwrap(), 2 * value);
        }
        6 => {
            thread::current().unpark();
            thread::park();
        }
        _ => {
            let mut guard = shared.lock().unwrap();
            if value < 10 {
                thread::yield_now();
            }
            *guard += value;
            expected.fetch_add(value, SeqCst);
        }
    }
    0
}

#[watched(limit = Duration::from_secs(600) + 60 * length())]
fn with_one_and_with_more_carriers_than_cores() {
    for count in ["1", "2", "8"] {
        let mut command = Command::new(env::current_exe().unwrap());
        let output = command
            .args(["threads::", "--skip", "with_one_and_with"])
            .env("PIRN_PARALLELISM", count)
            .output()
            .unwrap();
        let report = child::report(&output);
        assert!(output.status.success(), "{count} carriers: {report}");
    }
}
