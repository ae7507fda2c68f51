//! `parking_lot`: `Mutex`, `RwLock` and `Condvar`, their deadlines and their fairness.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
use pirn::thread;
use pirn_compat::{self as common, Latch, NEVER, THREADS, on_threads, watched};
use pirn_testing::processor_time;

const TIMEOUT: Duration = Duration::from_millis(50);

#[watched]
fn mutex_excludes() {
    const EACH: usize = 50;
    let counter = Mutex::new(0);
    on_threads(THREADS, |_| {
        for _ in 0..EACH {
            let mut guard = counter.lock();
            let seen = *guard;
            thread::yield_now(); // lets the others run into the lock
            *guard = seen + 1;
        }
    });
    assert_eq!(counter.into_inner(), THREADS * EACH);
}

/// The thread that holds the lock waits for all the others to run into it.
#[watched]
fn all_threads_block_on_one_mutex() {
    let order = Mutex::new(Vec::new());
    let (held, locking) = (Latch::new(1), Latch::new(THREADS));
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = order.lock();
            held.arrive();
            locking.wait();
            assert!(guard.is_empty());
        });
        for index in 0..THREADS {
            let (order, held, locking) = (&order, &held, &locking);
            scope.spawn(move || {
                held.wait();
                locking.arrive();
                order.lock().push(index);
            });
        }
    });
    let mut order = order.into_inner();
    order.sort_unstable();
    assert!(order.into_iter().eq(0..THREADS));
}

/// A thread that releases the lock only to take it again at once lets the queue have it now and
/// then: `parking_lot` hands the lock over when a random time, half a millisecond or so, is up.
#[watched]
fn a_hog_does_not_starve_the_queue() {
    let served = Mutex::new(0);
    let (held, locking) = (Latch::new(1), Latch::new(THREADS));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = served.lock();
            held.arrive();
            locking.wait();
            while *guard < THREADS {
                drop(guard);
                guard = served.lock();
            }
        });
        for _ in 0..THREADS {
            scope.spawn(|| {
                held.wait();
                locking.arrive();
                *served.lock() += 1;
            });
        }
    });
    assert_eq!(served.into_inner(), THREADS);
}

/// Asserts that a thread gets a lock soon, some times, beside one that takes it in a loop: after
/// ten slices of each at most, counted in processor time. The two take it by `hog` and `other`,
/// which call a function while they have it.
fn gets_it(name: &str, hog: impl Fn(&dyn Fn()) + Sync, other: impl Fn() + Sync) {
    const TEN_SLICES: Duration = Duration::from_millis(100);
    let insides: [(&str, fn()); 3] = [
        ("computes", || (0..100).for_each(|_| std::hint::spin_loop())),
        ("yields", thread::yield_now),
        ("sleeps", || thread::sleep(Duration::from_millis(1))),
    ];
    for (how, inside) in insides {
        let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    hog(&|| {
                        inside();
                        turns.fetch_add(1, SeqCst);
                    });
                }
            });
            scope.spawn(|| {
                for _ in 0..5 {
                    thread::sleep(Duration::from_millis(1));
                    let (begin, from) = (turns.load(SeqCst), processor_time());
                    other();
                    let (time, turns) = (processor_time() - from, turns.load(SeqCst) - begin);
                    let case = format!("{name}, {how}: {turns} turns, {time:?}");
                    assert!(time < 2 * TEN_SLICES, "{case}");
                    // Beside 30 busy processes the kernel lets the thread that sleeps run a
                    // hundred times before a carrier.
                    assert!(how != "sleeps" || turns < 1000, "{case}");
                }
                stop.store(true, SeqCst);
            });
        });
    }
}

/// In children, on 1, 2 and 8 carriers.
#[watched]
fn a_hog_does_not_keep_a_lock_for_long() {
    const CHILD: &str = "HOG_CHILD";
    if env::var_os(CHILD).is_none() {
        for carriers in ["1", "2", "8"] {
            let mut child = Command::new(env::current_exe().unwrap());
            child.args(["a_hog_does_not_keep_a_lock_for_long", "--exact"]);
            child.env("PIRN_PARALLELISM", carriers).env(CHILD, "1");
            let output = child.output().unwrap();
            assert!(output.status.success(), "{carriers} carriers: {output:?}");
        }
        return;
    }
    let mutex = Mutex::new(());
    let locks = |f: &dyn Fn()| {
        let _guard = mutex.lock();
        f();
    };
    gets_it("Mutex", locks, || locks(&|| ()));
    let lock = RwLock::new(());
    let reads = |f: &dyn Fn()| {
        let _guard = lock.read();
        f();
    };
    let writes = |f: &dyn Fn()| {
        let _guard = lock.write();
        f();
    };
    gets_it("RwLock, two writers", writes, || writes(&|| ()));
    gets_it("RwLock, a reader", writes, || reads(&|| ()));
    gets_it("RwLock, a writer", reads, || writes(&|| ()));
    let (taken, told) = (Mutex::new(false), Condvar::new());
    let takes = |f: &dyn Fn()| {
        let mut guard = taken.lock();
        told.wait_while(&mut guard, |taken| *taken);
        *guard = true;
        drop(guard);
        f();
        *taken.lock() = false;
        told.notify_one();
    };
    gets_it("Condvar", takes, || takes(&|| ()));
}

#[watched]
fn bump_hands_the_lock_to_a_blocked_thread() {
    let served = Mutex::new(0);
    let held = Latch::new(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = served.lock();
            held.arrive();
            while *guard < THREADS {
                MutexGuard::bump(&mut guard); // does nothing while no thread is blocked
                thread::yield_now();
            }
        });
        for _ in 0..THREADS {
            scope.spawn(|| {
                held.wait();
                let mut guard = served.lock();
                *guard += 1;
                MutexGuard::unlock_fair(guard);
            });
        }
    });
    assert_eq!(served.into_inner(), THREADS);
}

#[watched]
fn mutex_deadlines_pass_for_all_blocked_threads() {
    let mutex = Mutex::new(());
    let guard = mutex.lock();
    on_threads(THREADS, |index| {
        let start = Instant::now();
        let taken = match index % 2 {
            0 => mutex.try_lock_for(TIMEOUT),
            _ => mutex.try_lock_until(start + TIMEOUT),
        };
        assert!(taken.is_none());
        assert!(start.elapsed() >= TIMEOUT);
    });
    drop(guard);
    assert!(mutex.try_lock().is_some());
}

#[watched]
fn a_lock_released_before_the_deadline_is_taken() {
    let counter = Mutex::new(0);
    let lock = RwLock::new(0);
    let locking = Latch::new(THREADS);
    thread::scope(|scope| {
        let (counter_guard, lock_guard) = (counter.lock(), lock.write());
        for index in 0..THREADS {
            let (counter, lock, locking) = (&counter, &lock, &locking);
            scope.spawn(move || {
                locking.arrive();
                match index % 2 {
                    0 => *counter.try_lock_for(NEVER).unwrap() += 1,
                    _ => *lock.try_write_for(NEVER).unwrap() += 1,
                }
            });
        }
        locking.wait();
        drop((counter_guard, lock_guard));
    });
    assert_eq!(counter.into_inner() + lock.into_inner(), THREADS);
}

#[watched]
fn all_readers_hold_the_lock_at_once() {
    let lock = RwLock::new(0);
    let reading = Latch::new(THREADS);
    let seen = thread::scope(|scope| {
        let readers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let guard = lock.read();
                    reading.arrive_and_wait();
                    *guard
                })
            })
            .collect();
        reading.wait();
        scope.spawn(|| *lock.write() += 1);
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(seen, vec![0; THREADS]);
    assert_eq!(lock.into_inner(), 1);
}

#[watched]
fn all_threads_block_on_one_rwlock() {
    let lock = RwLock::new(0);
    let locking = Latch::new(THREADS);
    thread::scope(|scope| {
        let mut guard = lock.write();
        for index in 0..THREADS {
            let (lock, locking) = (&lock, &locking);
            scope.spawn(move || {
                locking.arrive();
                match index % 2 {
                    0 => assert!(*lock.read() >= 1000),
                    _ => *lock.write() += 1,
                }
            });
        }
        locking.wait();
        *guard = 1000;
    });
    assert_eq!(lock.into_inner(), 1000 + THREADS / 2);
}

#[watched]
fn readers_never_see_half_a_write() {
    const EACH: usize = 50;
    let pair = RwLock::new((0, 0));
    on_threads(THREADS, |index| {
        for _ in 0..EACH {
            match index % 10 {
                0 => {
                    let mut guard = pair.write();
                    guard.0 += 1;
                    thread::yield_now();
                    guard.1 += 1;
                }
                1 => {
                    let guard = pair.upgradable_read();
                    let seen = *guard;
                    thread::yield_now(); // readers may come in, another writer may not
                    let mut guard = RwLockUpgradableReadGuard::upgrade(guard);
                    assert_eq!(*guard, seen);
                    *guard = (seen.0 + 1, seen.1 + 1);
                    let guard = RwLockWriteGuard::downgrade(guard);
                    thread::yield_now();
                    assert_eq!(*guard, (seen.0 + 1, seen.1 + 1));
                }
                _ => {
                    let guard = pair.read();
                    let first = guard.0;
                    thread::yield_now();
                    assert_eq!(first, guard.1);
                }
            }
        }
    });
    let writes = THREADS / 10 * 2 * EACH;
    assert_eq!(pair.into_inner(), (writes, writes));
}

#[watched]
fn rwlock_deadlines_pass_for_all_blocked_threads() {
    let lock = RwLock::new(());
    let guard = lock.write();
    on_threads(THREADS, |index| {
        let start = Instant::now();
        match index % 3 {
            0 => assert!(lock.try_read_for(TIMEOUT).is_none()),
            1 => assert!(lock.try_write_until(start + TIMEOUT).is_none()),
            _ => assert!(lock.try_upgradable_read_for(TIMEOUT).is_none()),
        }
        assert!(start.elapsed() >= TIMEOUT);
    });
    drop(guard);
    assert!(lock.try_write().is_some());
}

/// Threads that wait on a condition variable until they get one of the permits.
#[derive(Default)]
struct Permits {
    state: Mutex<PermitState>,
    granted: Condvar,
    all_waiting: Condvar,
}

#[derive(Default)]
struct PermitState {
    waiting: usize,
    permits: usize,
}

impl Permits {
    /// Waits for a permit, with or without a time limit that never comes.
    fn acquire(&self, limited: bool) {
        let mut state = self.state.lock();
        state.waiting += 1;
        if state.waiting == THREADS {
            self.all_waiting.notify_one();
        }
        while state.permits == 0 {
            if limited {
                assert!(!self.granted.wait_for(&mut state, NEVER).timed_out());
            } else {
                self.granted.wait(&mut state);
            }
        }
        state.permits -= 1;
        state.waiting -= 1;
    }

    /// Returns, with the lock, when all threads are in the condition variable's queue.
    fn lock_when_all_wait(&self) -> MutexGuard<'_, PermitState> {
        let mut state = self.state.lock();
        while state.waiting < THREADS {
            self.all_waiting.wait(&mut state);
        }
        state
    }
}

/// The numbers that `notify_one` and `notify_all` report are exact, since all are in the queue.
#[watched]
fn condvar_wakes_as_many_as_it_says() {
    const ONE_BY_ONE: usize = THREADS / 2;
    let permits = Permits::default();
    thread::scope(|scope| {
        for index in 0..THREADS {
            let permits = &permits;
            scope.spawn(move || permits.acquire(index % 2 == 0));
        }
        let mut state = permits.lock_when_all_wait();
        for _ in 0..ONE_BY_ONE {
            state.permits += 1;
            assert!(permits.granted.notify_one());
        }
        state.permits += THREADS - ONE_BY_ONE;
        let woken = permits.granted.notify_all();
        drop(state);
        assert_eq!(woken, THREADS - ONE_BY_ONE);
    });
    assert!(!permits.granted.notify_one());
    let state = permits.state.into_inner();
    assert_eq!((state.waiting, state.permits), (0, 0));
}

#[watched]
fn condvar_deadlines_pass_for_all_waiting_threads() {
    let timed_out = Mutex::new(0);
    let condvar = Condvar::new();
    on_threads(THREADS, |index| {
        let mut guard = timed_out.lock();
        let start = Instant::now();
        let result = match index % 2 {
            0 => condvar.wait_for(&mut guard, TIMEOUT),
            _ => condvar.wait_until(&mut guard, start + TIMEOUT),
        };
        assert!(result.timed_out());
        assert!(start.elapsed() >= TIMEOUT);
        let seen = *guard;
        thread::yield_now(); // the lock is held again: no thread comes in between
        *guard = seen + 1;
    });
    assert_eq!(timed_out.into_inner(), THREADS);
    assert_eq!(condvar.notify_all(), 0);
}
