//! `std::sync` between crowds of virtual threads, mixed with platform threads. (Channels are in
//! `channels.rs`.)

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, TryLockError};
use std::time::{Duration, Instant};

use crate::common::{block_then, crowd, crowd_size, many, on_virtual, watched};
use pirn::thread;

#[watched]
fn a_mutex_excludes_even_across_switches() {
    let counter = Mutex::new(0);
    let inside = AtomicUsize::new(0);
    crowd(|_| {
        for _ in 0..5 {
            let mut counter = counter.lock().unwrap();
            assert_eq!(inside.fetch_add(1, SeqCst), 0, "two inside");
            let seen = *counter;
            thread::yield_now();
            *counter = seen + 1;
            inside.fetch_sub(1, SeqCst);
        }
    });
    assert_eq!(counter.into_inner().unwrap(), 5 * crowd_size());
}

#[watched]
fn a_mutex_may_be_held_while_sleeping() {
    let turns = Mutex::new(0);
    crowd(|i| {
        let mut turns = turns.lock().unwrap();
        *turns += 1;
        if i % 50 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    });
    assert_eq!(turns.into_inner().unwrap(), crowd_size());
}

#[watched]
fn try_lock_fails_while_another_holds() {
    let mutex = Mutex::new(());
    let guard = mutex.lock().unwrap();
    thread::scope(|scope| {
        let tried = scope.spawn(|| matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
        assert!(tried.join().unwrap());
    });
    drop(guard);
    assert!(mutex.try_lock().is_ok());
}

#[watched]
fn a_panic_poisons_the_mutex() {
    let mutex = Mutex::new(1);
    thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let mut guard = mutex.lock().unwrap();
            *guard = 2;
            thread::yield_now();
            panic!("snap");
        });
        assert!(holder.join().is_err());
    });
    let error = mutex.lock().unwrap_err();
    assert_eq!(*error.into_inner(), 2);
    mutex.clear_poison();
    assert_eq!(*mutex.lock().unwrap(), 2);
}

#[watched]
fn poison_comes_only_from_the_panicking_thread() {
    let (hurt, fine) = (Mutex::new(()), Mutex::new(()));
    crowd(|i| {
        let _ = catch_unwind(|| {
            // Only the panicking thread poisons, whichever threads share its carrier.
            if i % 2 == 0 {
                let _guard = hurt.lock();
                thread::yield_now();
                std::panic::resume_unwind(Box::new(()));
            }
            let guard = fine.lock().unwrap();
            thread::yield_now();
            drop(guard);
        });
    });
    assert!(hurt.is_poisoned());
    assert!(!fine.is_poisoned());
}

#[watched]
fn readers_share_an_rwlock() {
    let lock = RwLock::new(5);
    let all_inside = Barrier::new(crowd_size());
    crowd(|_| {
        let guard = lock.read().unwrap();
        // Opens only if all hold the read lock at once.
        all_inside.wait();
        assert_eq!(*guard, 5);
    });
}

#[watched]
fn writers_exclude_everybody() {
    let lock = RwLock::new((0, 0));
    crowd(|i| {
        for _ in 0..5 {
            if i % 4 == 0 {
                let mut pair = lock.write().unwrap();
                pair.0 += 1;
                thread::yield_now();
                pair.1 += 1;
            } else {
                let pair = lock.read().unwrap();
                let before = *pair;
                thread::yield_now();
                assert_eq!(*pair, before);
                assert_eq!(pair.0, pair.1);
            }
        }
    });
    let writers = (0..crowd_size()).filter(|i| i % 4 == 0).count();
    assert_eq!(lock.into_inner().unwrap(), (5 * writers, 5 * writers));
}

#[watched]
fn notify_all_wakes_everybody() {
    let (open, changed) = (Mutex::new(false), Condvar::new());
    block_then(
        many(),
        |_| {
            let guard = open.lock().unwrap();
            drop(changed.wait_while(guard, |open| !*open).unwrap());
        },
        || {
            *open.lock().unwrap() = true;
            changed.notify_all();
        },
    );
}

#[watched]
fn notify_one_wakes_one_each() {
    // Each thread takes one permit; permits are handed out one at a time.
    let (permits, changed) = (Mutex::new(0), Condvar::new());
    block_then(
        many(),
        |_| {
            let guard = permits.lock().unwrap();
            let mut guard = changed.wait_while(guard, |permits| *permits == 0).unwrap();
            *guard -= 1;
        },
        || {
            for _ in 0..many() {
                *permits.lock().unwrap() += 1;
                changed.notify_one();
            }
        },
    );
    assert_eq!(permits.into_inner().unwrap(), 0);
}

#[watched]
fn producers_and_consumers_share_a_bounded_queue() {
    let queue = Mutex::new(Vec::new());
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let sum = AtomicUsize::new(0);
    // An even crowd, half of either kind of thread on each side.
    let half = crowd_size() / 2;
    crowd(|i| {
        for round in 1..=10 {
            let guard = queue.lock().unwrap();
            if i % 2 == 0 {
                let mut guard = emptied.wait_while(guard, |queue| queue.len() >= 3).unwrap();
                guard.push(round);
                filled.notify_one();
            } else {
                let mut guard = filled.wait_while(guard, |queue| queue.is_empty()).unwrap();
                sum.fetch_add(guard.pop().unwrap(), SeqCst);
                emptied.notify_one();
            }
        }
    });
    assert_eq!(sum.into_inner(), half * 55);
}

#[watched]
fn wait_timeout_ends_without_a_notification() {
    let (lock, changed) = (Mutex::new(()), Condvar::new());
    crowd(|i| {
        let length = Duration::from_millis(10 + i as u64 % 10);
        let begin = Instant::now();
        let guard = lock.lock().unwrap();
        let (_guard, result) = changed
            .wait_timeout_while(guard, length, |()| true)
            .unwrap();
        assert!(result.timed_out());
        assert!(begin.elapsed() >= length);
    });
}

#[watched]
fn wait_timeout_ends_with_a_notification() {
    let (open, changed) = (Mutex::new(false), Condvar::new());
    block_then(
        many(),
        |_| {
            let guard = open.lock().unwrap();
            let (_guard, result) = changed
                .wait_timeout_while(guard, Duration::from_secs(3600), |open| !*open)
                .unwrap();
            assert!(!result.timed_out());
        },
        || {
            *open.lock().unwrap() = true;
            changed.notify_all();
        },
    );
}

#[watched]
fn a_barrier_opens_for_all_with_one_leader() {
    let barrier = Barrier::new(crowd_size());
    let (leaders, arrived) = (AtomicUsize::new(0), AtomicUsize::new(0));
    crowd(|_| {
        for generation in 1..=5 {
            arrived.fetch_add(1, SeqCst);
            if barrier.wait().is_leader() {
                leaders.fetch_add(1, SeqCst);
            }
            assert!(arrived.load(SeqCst) >= generation * crowd_size());
        }
    });
    assert_eq!(leaders.into_inner(), 5);
}

#[watched]
fn once_runs_once_and_the_rest_wait() {
    let once = Once::new();
    let runs = AtomicUsize::new(0);
    crowd(|_| {
        once.call_once(|| {
            // Blocks while everybody else comes to wait for it.
            thread::sleep(Duration::from_millis(10));
            runs.fetch_add(1, SeqCst);
        });
        assert_eq!(runs.load(SeqCst), 1);
    });
}

#[watched]
fn a_panic_poisons_a_once_until_forced() {
    on_virtual(|| {
        let once = Once::new();
        let first = catch_unwind(std::panic::AssertUnwindSafe(|| {
            once.call_once(|| {
                thread::yield_now();
                panic!("snap");
            });
        }));
        assert!(first.is_err());
        assert!(catch_unwind(std::panic::AssertUnwindSafe(|| once.call_once(|| ()))).is_err());
        once.call_once_force(|state| assert!(state.is_poisoned()));
        assert!(once.is_completed());
    });
}

#[watched]
fn once_lock_initialises_once() {
    let cell = OnceLock::new();
    let runs = AtomicUsize::new(0);
    crowd(|i| {
        let value = *cell.get_or_init(|| {
            thread::sleep(Duration::from_millis(5));
            runs.fetch_add(1, SeqCst);
            i
        });
        assert_eq!(cell.get(), Some(&value));
    });
    assert_eq!(runs.into_inner(), 1);
}

#[watched]
fn once_lock_can_be_waited_for() {
    let cell = OnceLock::new();
    block_then(
        many(),
        |_| assert_eq!(cell.wait(), &"set"),
        || cell.set("set").unwrap(),
    );
}

#[watched]
fn lazy_lock_initialises_once() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    static LAZY: LazyLock<String> = LazyLock::new(|| {
        thread::sleep(Duration::from_millis(5));
        RUNS.fetch_add(1, SeqCst);
        String::from("made")
    });
    crowd(|_| assert_eq!(*LAZY, "made"));
    assert_eq!(RUNS.load(SeqCst), 1);
}

#[watched]
fn locks_pass_between_both_kinds_of_thread() {
    // A platform thread holds; everybody waits; then a virtual thread holds; and so on.
    let lock = Mutex::new(0);
    let waiting = AtomicUsize::new(0);
    let guard = lock.lock().unwrap();
    std::thread::scope(|scope| {
        let everybody = scope.spawn(|| {
            crowd(|_| {
                waiting.fetch_add(1, SeqCst);
                *lock.lock().unwrap() += 1;
            });
        });
        while waiting.load(SeqCst) < crowd_size() {
            std::thread::yield_now();
        }
        drop(guard);
        everybody.join().unwrap();
    });
    assert_eq!(lock.into_inner().unwrap(), crowd_size());
}
