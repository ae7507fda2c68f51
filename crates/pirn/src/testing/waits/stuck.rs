//! Circles of waiting threads. Those that are real stay until the process ends.

use super::{Noted, at, waits};
use crate::thread::{self, JoinHandle, Thread};
use crate::{executor, scope};
use core::cell::UnsafeCell;
use pirn_dump::{Finding, LockKind, Wait, WaitKind};
use pirn_observe::waits::deadlocks::Deadlocks;
use pirn_observe::waits::standstill::Standstill;
use pirn_rt::sched;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, mpsc};
use std::time::{Duration, Instant};

struct CMutex(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: C's functions synchronise.
unsafe impl Sync for CMutex {}

impl CMutex {
    const fn new() -> CMutex {
        CMutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    fn lock(&self) {
        // SAFETY: a mutex.
        unsafe { assert_eq!(libc::pthread_mutex_lock(self.0.get()), 0) };
    }

    fn unlock(&self) {
        // SAFETY: locked by the caller.
        unsafe { assert_eq!(libc::pthread_mutex_unlock(self.0.get()), 0) };
    }

    /// Accepts a wait for this mutex.
    fn is_awaited(&self) -> impl Fn(&Wait) -> bool {
        let mutex = at(self.0.get());
        move |wait| matches!(wait, Wait::Lock { address, what: LockKind::Mutex, .. } if *address == mutex)
    }
}

/// Looks at threads as a walk does, one after the other.
fn look(threads: &[&Thread]) -> Vec<Finding> {
    let mut deadlocks = Deadlocks::default();
    for thread in threads {
        let Some(slot) = thread.as_virtual().unwrap().slot() else {
            continue; // It has not run.
        };
        sched::inspect(slot, |core, parked| {
            if parked {
                deadlocks.add(
                    slot,
                    core.id(),
                    core.mounts(),
                    core.scope(),
                    &Noted::of(core),
                );
            }
        });
    }
    deadlocks.findings()
}

fn ids(threads: &[&Thread]) -> Vec<u64> {
    let mut ids: Vec<_> = threads.iter().map(|thread| thread.id().number()).collect();
    ids.sort();
    ids
}

/// Asserts that there is one circle, of just these threads.
#[track_caller]
fn assert_circle(found: &[Finding], threads: &[&Thread]) {
    assert_eq!(found.len(), 1, "{found:?}");
    let mut of = found[0].threads.clone();
    of.sort();
    assert_eq!(of, ids(threads), "{found:?}");
}

#[test]
fn two_mutexes_in_different_orders() {
    static MUTEXES: [CMutex; 2] = [CMutex::new(), CMutex::new()];
    let take = |name: &str, first: usize, second: usize| {
        let builder = thread::Builder::new().name(name.into());
        let take = move || {
            MUTEXES[first].lock();
            thread::park();
            MUTEXES[second].lock();
        };
        builder.spawn(take).unwrap()
    };
    let (one, two) = (take("ping", 0, 1), take("pong", 1, 0));
    let parked = |wait: &Wait| *wait == Wait::Park;
    waits(&one, parked);
    waits(&two, parked);
    one.thread().unpark();
    waits(&one, MUTEXES[1].is_awaited());
    assert!(look(&[one.thread(), two.thread()]).is_empty());
    two.thread().unpark();
    waits(&two, MUTEXES[0].is_awaited());
    let found = look(&[one.thread(), two.thread()]);
    assert_circle(&found, &[one.thread(), two.thread()]);
    assert!(found[0].text.contains("\"ping\"") && found[0].text.contains("waits for mutex 0x"));
}

#[test]
fn a_mutex_that_is_locked_twice() {
    static MUTEX: CMutex = CMutex::new();
    let thread = thread::spawn(|| {
        MUTEX.lock();
        MUTEX.lock();
    });
    waits(&thread, MUTEX.is_awaited());
    assert_circle(&look(&[thread.thread()]), &[thread.thread()]);
}

/// Two threads that are about to lock two mutexes in different orders, and two for locks that they
/// share in memory with a fifth.
fn circles_of_std(wait: fn()) -> [JoinHandle<()>; 5] {
    static STATICS: [Mutex<u64>; 2] = [Mutex::new(1), Mutex::new(2)];
    struct Shared {
        text: Mutex<String>,
        number: RwLock<u8>,
    }
    let shared = Arc::new(Shared {
        text: Mutex::new("weft".into()),
        number: RwLock::new(3),
    });
    let [first, second, third] = [0; 3].map(|_| Arc::clone(&shared));
    let lock = move |first: usize, second: usize| {
        thread::spawn(move || {
            let _guard = STATICS[first].lock();
            wait();
            drop(STATICS[second].lock());
        })
    };
    [
        lock(0, 1),
        lock(1, 0),
        thread::spawn(move || {
            let _guard = first.text.lock();
            wait();
            drop(first.number.read());
        }),
        thread::spawn(move || {
            let _guard = second.number.write();
            wait();
            drop(second.text.lock());
        }),
        thread::spawn(move || {
            thread::park();
            drop(third);
        }),
    ]
}

#[test]
fn locks_of_std_in_different_orders() {
    static GO: AtomicBool = AtomicBool::new(false);
    let threads = circles_of_std(|| {
        while !GO.load(Ordering::SeqCst) {
            thread::park();
        }
    });
    for thread in &threads {
        waits(thread, |wait| *wait == Wait::Park);
    }
    let all: Vec<&Thread> = threads.iter().map(JoinHandle::thread).collect();
    assert!(look(&all).is_empty());
    GO.store(true, Ordering::SeqCst);
    let at_lock = |wait: &Wait| matches!(wait.kind(), WaitKind::Lock(LockKind::Futex));
    for thread in &threads[..4] {
        thread.thread().unpark();
        waits(thread, at_lock);
    }
    let mut found = look(&all);
    found.sort_by_key(|finding| finding.threads.clone());
    assert_eq!(found.len(), 2, "{found:?}");
    for (finding, pair) in found.iter().zip(all.chunks(2)) {
        let mut of = finding.threads.clone();
        of.sort();
        assert_eq!(of, ids(pair), "{found:?}");
        let text = &finding.text;
        assert!(text.contains(" probably wait for each other: "), "{text}");
    }
}

#[test]
fn threads_that_join_each_other() {
    static OTHER: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);
    let (give, given) = mpsc::channel::<JoinHandle<()>>();
    let one = thread::spawn(move || given.recv().unwrap().join().unwrap());
    let thread = one.thread().clone();
    *OTHER.lock().unwrap() = Some(one);
    let two = thread::spawn(|| {
        let one = OTHER.lock().unwrap().take().unwrap();
        one.join().unwrap();
    });
    let other = two.thread().clone();
    waits(&two, |wait| matches!(wait, Wait::Join { .. }));
    assert!(look(&[&thread, &other]).is_empty());
    give.send(two).unwrap();
    super::when(&thread, |wait| matches!(wait, Wait::Join { .. }));
    assert_circle(&look(&[&thread, &other]), &[&thread, &other]);
}

#[test]
fn a_scope_that_is_joined_under_a_lock_of_its_subtask() {
    static MUTEX: CMutex = CMutex::new();
    let (give, given) = mpsc::channel();
    let owner = thread::spawn(move || {
        let joined: Result<(), scope::JoinError<std::fmt::Error>> = scope::open(|s| {
            MUTEX.lock();
            let subtask = s.fork(|| {
                MUTEX.lock();
                Ok(())
            });
            give.send(subtask.thread().unwrap()).unwrap();
            s.join()?;
            Ok(())
        });
        joined.unwrap();
    });
    let subtask = given.recv().unwrap();
    super::when(&subtask, MUTEX.is_awaited());
    waits(&owner, |wait| matches!(wait, Wait::Scope { .. }));
    let found = look(&[owner.thread(), &subtask]);
    assert_circle(&found, &[owner.thread(), &subtask]);
    assert!(
        found[0].text.contains("unless it is cancelled"),
        "{}",
        found[0].text
    );
}

#[test]
fn a_circle_that_a_deadline_ends_is_none() {
    static MUTEXES: [CMutex; 2] = [CMutex::new(), CMutex::new()];
    let one = thread::spawn(|| {
        MUTEXES[0].lock();
        thread::park();
        // SAFETY: a mutex, and a time of our own.
        unsafe {
            let mut time = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_REALTIME, &mut time);
            time.tv_sec += 3600;
            libc::pthread_mutex_timedlock(MUTEXES[1].0.get(), &time);
        }
    });
    waits(&one, |wait| *wait == Wait::Park); // It has the first mutex.
    let two = thread::spawn(|| {
        MUTEXES[1].lock();
        MUTEXES[0].lock();
    });
    waits(&two, MUTEXES[0].is_awaited());
    one.thread().unpark();
    waits(&one, MUTEXES[1].is_awaited());
    assert!(look(&[one.thread(), two.thread()]).is_empty());
}

#[test]
fn threads_that_move_are_never_a_circle() {
    static MUTEXES: [CMutex; 3] = [CMutex::new(), CMutex::new(), CMutex::new()];
    static STOP: AtomicBool = AtomicBool::new(false);
    let workers: Vec<_> = (0..6)
        .map(|worker| {
            thread::spawn(move || {
                for round in worker.. {
                    if STOP.load(Ordering::Relaxed) {
                        break;
                    }
                    let (low, high) = [(0, 1), (1, 2), (0, 2)][round % 3];
                    MUTEXES[low].lock();
                    thread::yield_now();
                    MUTEXES[high].lock();
                    MUTEXES[low].unlock();
                    MUTEXES[high].unlock();
                }
            })
        })
        .collect();
    let threads: Vec<_> = workers.iter().map(JoinHandle::thread).collect();
    waits(&workers[0], |wait| matches!(wait, Wait::Lock { .. }));
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        let found = look(&threads);
        assert!(found.is_empty(), "{found:?}");
    }
    STOP.store(true, Ordering::Relaxed);
    workers
        .into_iter()
        .for_each(|worker| worker.join().unwrap());
}

#[test]
fn a_platform_thread_may_wake_them() {
    let executor = executor::ThreadPerTask::new();
    let task = executor.submit(thread::park).unwrap();
    let thread = task.thread();
    let noted = super::when(thread, |wait| *wait == Wait::Park);
    let mut standstill = Standstill::new();
    let core = thread.as_virtual().unwrap();
    standstill.add(core.slot().unwrap(), core.id(), core.mounts(), Some(&noted));
    assert!(
        standstill.finding(false).is_none(),
        "the test's own thread is there"
    );
    thread.unpark();
    task.join().unwrap();
}
