//! A thread that wants a lock beside others that take it in a loop gets it soon: after some ten
//! slices of each of them, counted in processor time of the process. Mounts would not tell: one
//! that computes on a carrier of its own is not switched. If those sleep while they have the lock,
//! the tries of the thread that wants it are counted, which are its mounts: a busy machine adds no
//! tries. A turn of those that sleep takes a tenth of a slice.

use std::cell::UnsafeCell;
use std::hint;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, RwLock, mpsc};
use std::time::Duration;

use libc::{c_int, pthread_cond_t, pthread_mutex_t};

use crate::common::{child, watched};
use pirn::thread;
use pirn_rt::vthread;
use pirn_testing::processor_time;

/// Takes the lock, calls a function, and releases the lock.
type Take = Arc<dyn Fn(&dyn Fn()) + Send + Sync>;

/// A kind of lock: how the thread in a loop takes it, and how the other does.
struct Kind(&'static str, Take, Take);

/// A lock that both take in the same way.
fn kind(name: &'static str, take: impl Fn(&dyn Fn()) + Send + Sync + 'static) -> Kind {
    let take: Take = Arc::new(take);
    Kind(name, take.clone(), take)
}

/// An object of C's that stays for ever.
struct C<T>(UnsafeCell<T>);

// SAFETY: the objects are locks, made for being shared.
unsafe impl<T> Sync for C<T> {}

impl<T> C<T> {
    fn new(init: impl FnOnce(*mut T) -> c_int) -> &'static C<T> {
        // SAFETY: all of these objects may be zero until they are initialised.
        let object = Box::leak(Box::new(C(UnsafeCell::new(unsafe { mem::zeroed() }))));
        assert_eq!(init(object.get()), 0);
        object
    }

    fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Calls a function of C's for an object that is never freed.
macro_rules! c {
    ($($call:tt)*) => {
        // SAFETY: it is initialised, or this initialises it.
        unsafe { $($call)* }
    };
}

/// Calls functions of C's, each of which must succeed, before and after the function `f`.
macro_rules! c_kind {
    ($name:expr, $object:expr, $take:path, $release:path) => {{
        let object = $object;
        kind($name, move |f| {
            assert_eq!(c!($take(object.get())), 0);
            f();
            assert_eq!(c!($release(object.get())), 0);
        })
    }};
}

unsafe extern "C" {
    fn pthread_rwlockattr_setkind_np(
        attributes: *mut libc::pthread_rwlockattr_t,
        kind: c_int,
    ) -> c_int;
    fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int;
    fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int;
    fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    fn cnd_init(cond: *mut pthread_cond_t) -> c_int;
    fn cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    fn cnd_signal(cond: *mut pthread_cond_t) -> c_int;
}

fn std_kinds() -> Vec<Kind> {
    let mutex = Mutex::new(());
    let of_writers = RwLock::new(());
    let [of_both, of_readers] = [Arc::new(RwLock::new(())), Arc::new(RwLock::new(()))];
    let reads = |lock: &Arc<RwLock<()>>| {
        let lock = lock.clone();
        Arc::new(move |f: &dyn Fn()| {
            let _guard = lock.read().unwrap();
            f();
        })
    };
    let writes = |lock: &Arc<RwLock<()>>| {
        let lock = lock.clone();
        Arc::new(move |f: &dyn Fn()| {
            let _guard = lock.write().unwrap();
            f();
        })
    };
    vec![
        kind("Mutex", move |f| {
            let _guard = mutex.lock().unwrap();
            f();
        }),
        kind("RwLock, two writers", move |f| {
            let _guard = of_writers.write().unwrap();
            f();
        }),
        Kind("RwLock, a reader", writes(&of_both), reads(&of_both)),
        Kind("RwLock, a writer", reads(&of_readers), writes(&of_readers)),
        semaphore("semaphore, told with the mutex", true),
        semaphore("semaphore, told without it", false),
        channel_of_senders(),
        channel_of_receivers(),
        permits(),
    ]
}

/// A semaphore for one, of a mutex and a condition variable.
fn semaphore(name: &'static str, tells_inside: bool) -> Kind {
    let (free, told) = (Mutex::new(true), Condvar::new());
    kind(name, move |f| {
        let free_now = free.lock().unwrap();
        *told.wait_while(free_now, |free| !*free).unwrap() = false;
        f();
        let mut free_now = free.lock().unwrap();
        *free_now = true;
        if tells_inside {
            told.notify_one();
        }
        drop(free_now);
        if !tells_inside {
            told.notify_one();
        }
    })
}

/// A full channel, into which both send.
fn channel_of_senders() -> Kind {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || receiver.into_iter().for_each(|()| thread::yield_now()));
    kind("sync_channel", move |f| {
        sender.send(()).unwrap();
        f();
    })
}

/// A channel that is always full, from which both receive: as workers do that share a `Receiver`.
fn channel_of_receivers() -> Kind {
    let (sender, receiver) = mpsc::sync_channel(1);
    let receiver = Mutex::new(receiver);
    thread::spawn(move || while sender.send(()).is_ok() {});
    kind("Mutex<Receiver>", move |f| {
        receiver.lock().unwrap().recv().unwrap();
        f();
    })
}

fn permits() -> Kind {
    let semaphore = thread::Semaphore::new(1);
    kind("thread::Semaphore", move |f| {
        let _permit = semaphore.acquire();
        f();
    })
}

const PREFERRED_WRITER: &str = "rwlock for writers, a writer";

use libc::{pthread_mutex_lock as lock, pthread_mutex_unlock as unlock};

/// Mutexes with each attribute.
fn c_mutexes() -> Vec<Kind> {
    use libc::{pthread_mutexattr_setprotocol as protocol, pthread_mutexattr_settype as kind_of};
    use libc::{pthread_mutexattr_setpshared as shared, pthread_mutexattr_setrobust as robust};
    type Sets = unsafe extern "C" fn(*mut libc::pthread_mutexattr_t, c_int) -> c_int;
    const ADAPTIVE: c_int = 3;
    let all: [(_, Sets, _); 7] = [
        ("normal", kind_of, libc::PTHREAD_MUTEX_NORMAL),
        ("adaptive", kind_of, ADAPTIVE),
        ("recursive", kind_of, libc::PTHREAD_MUTEX_RECURSIVE),
        ("error-checking", kind_of, libc::PTHREAD_MUTEX_ERRORCHECK),
        ("inherits priorities", protocol, libc::PTHREAD_PRIO_INHERIT),
        ("robust", robust, libc::PTHREAD_MUTEX_ROBUST),
        ("shared", shared, libc::PTHREAD_PROCESS_SHARED),
    ];
    let with = |(name, set, value): (_, Sets, _)| {
        let mutex = C::new(|mutex| {
            // SAFETY: all are valid objects.
            unsafe {
                let mut attributes = mem::zeroed();
                libc::pthread_mutexattr_init(&mut attributes);
                assert_eq!(set(&mut attributes, value), 0);
                libc::pthread_mutex_init(mutex, &attributes)
            }
        });
        c_kind!(name, mutex, lock, unlock)
    };
    all.map(with).into()
}

/// Locks that prefer readers, as by default, or writers.
fn c_rwlocks() -> [Kind; 5] {
    use libc::{pthread_rwlock_rdlock as rdlock, pthread_rwlock_wrlock as wrlock};
    let rwlock = |kind| {
        C::new(|lock| {
            // SAFETY: all are valid objects.
            unsafe {
                let mut attributes = mem::zeroed();
                libc::pthread_rwlockattr_init(&mut attributes);
                assert_eq!(pthread_rwlockattr_setkind_np(&mut attributes, kind), 0);
                libc::pthread_rwlock_init(lock, &attributes)
            }
        })
    };
    let of_both = |both: &'static C<libc::pthread_rwlock_t>| {
        let Kind(_, writes, _) = c_kind!("", both, wrlock, libc::pthread_rwlock_unlock);
        let Kind(_, reads, _) = c_kind!("", both, rdlock, libc::pthread_rwlock_unlock);
        [writes, reads]
    };
    let [two_writers, _] = of_both(rwlock(0));
    let [writes, reads] = of_both(rwlock(0));
    const PREFERS_WRITERS: c_int = 2;
    let [writes_first, reads_last] = of_both(rwlock(PREFERS_WRITERS));
    let reads_too = reads_last.clone();
    [
        Kind("rwlock, two writers", two_writers.clone(), two_writers),
        Kind("rwlock, a reader", writes.clone(), reads.clone()),
        Kind("rwlock, a writer", reads, writes),
        Kind(
            "rwlock for writers, a reader",
            writes_first.clone(),
            reads_too,
        ),
        Kind(PREFERRED_WRITER, reads_last, writes_first),
    ]
}

fn c_kinds() -> Vec<Kind> {
    let semaphore = C::new(|semaphore| c!(libc::sem_init(semaphore, 0, 1)));
    let spin = C::new(|lock| c!(libc::pthread_spin_init(lock, 0)));
    let mtx = C::new(|mutex| c!(mtx_init(mutex, 0)));
    let mut kinds = c_mutexes();
    kinds.extend(c_rwlocks());
    kinds.extend([
        c_kind!("sem_t", semaphore, libc::sem_wait, libc::sem_post),
        c_kind!(
            "spinlock",
            spin,
            libc::pthread_spin_lock,
            libc::pthread_spin_unlock
        ),
        c_kind!("mtx_t", mtx, mtx_lock, mtx_unlock),
        c_condition(
            "cond_t",
            C::new(|mutex| c!(libc::pthread_mutex_init(mutex, std::ptr::null()))),
            C::new(|cond| c!(libc::pthread_cond_init(cond, std::ptr::null()))),
            [lock, unlock],
            (libc::pthread_cond_wait, libc::pthread_cond_signal),
        ),
        c_condition(
            "cnd_t",
            C::new(|mutex| c!(mtx_init(mutex, 0))),
            C::new(|cond| c!(cnd_init(cond))),
            [mtx_lock, mtx_unlock],
            (cnd_wait, cnd_signal),
        ),
    ]);
    kinds
}

type OfMutex = unsafe extern "C" fn(*mut pthread_mutex_t) -> c_int;
type Waits = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;
type Signals = unsafe extern "C" fn(*mut pthread_cond_t) -> c_int;

/// As [`semaphore`], of C's.
fn c_condition(
    name: &'static str,
    mutex: &'static C<pthread_mutex_t>,
    told: &'static C<pthread_cond_t>,
    [lock, unlock]: [OfMutex; 2],
    (wait, signal): (Waits, Signals),
) -> Kind {
    let taken = AtomicBool::new(false);
    kind(name, move |f| {
        c!(lock(mutex.get()));
        while taken.swap(true, SeqCst) {
            c!(wait(told.get(), mutex.get()));
        }
        c!(unlock(mutex.get()));
        f();
        c!(lock(mutex.get()));
        taken.store(false, SeqCst);
        c!(signal(told.get()));
        c!(unlock(mutex.get()));
    })
}

/// What the thread in a loop does while it has the lock.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Inside {
    Computes,
    Yields,
    Sleeps,
}

/// The processor time of ten slices, in nanoseconds.
const TEN_SLICES: u64 = 100_000_000;

/// What the threads of one round share.
#[derive(Default)]
struct Round {
    stop: AtomicBool,
    /// The turns of the threads in a loop, and when the other began to wait: turns and time.
    turns: AtomicU64,
    from: [AtomicU64; 2],
    /// The longest wait.
    worst: [AtomicU64; 2],
    /// The most tries in one wait, of a virtual thread.
    tries: AtomicU64,
}

/// Returns how often the running thread has been mounted; 0: it is a platform thread.
fn mounts() -> u64 {
    vthread::current().map_or(0, |thread| thread.mounts().into())
}

impl Round {
    fn now(&self) -> [u64; 2] {
        [self.turns.load(SeqCst), processor_time().as_nanos() as u64]
    }

    /// Notes for how long the other has waited. Returns that.
    fn look(&self) -> [u64; 2] {
        let now = self.now();
        [0, 1].map(|i| {
            let waited = now[i].saturating_sub(self.from[i].load(SeqCst));
            self.worst[i].fetch_max(waited, SeqCst);
            waited
        })
    }

    fn begin(&self, [turns, time]: [u64; 2]) {
        self.from[1].store(time, SeqCst);
        self.from[0].store(turns, SeqCst);
    }
}

/// The kind of a thread.
#[derive(Clone, Copy, PartialEq, Debug)]
enum On {
    Virtual,
    Platform,
}

fn spawn(on: On, body: impl FnOnce() + Send + 'static) -> Box<dyn FnOnce()> {
    match on {
        On::Virtual => {
            let thread = thread::spawn(body);
            Box::new(|| thread.join().unwrap())
        }
        On::Platform => {
            let thread = std::thread::spawn(body);
            Box::new(|| thread.join().unwrap())
        }
    }
}

/// Asserts that a thread gets the lock soon, some times, beside `hogs` that take it in a loop.
fn gets_it(Kind(name, take, other): &Kind, inside: Inside, on: [On; 2], hogs: u64) {
    let round = Arc::new(Round::default());
    round.begin([u64::MAX; 2]);
    // Four times as long, since the kernel may preempt the carrier that has taken the woken thread.
    // Where a kind of lock starves its waiters, they wait for seconds.
    let most = 4 * TEN_SLICES * (hogs + 1);
    let hog = |_| {
        let (round, take) = (round.clone(), take.clone());
        spawn(on[0], move || {
            while !round.stop.load(SeqCst) {
                take(&|| {
                    match inside {
                        Inside::Computes => (0..100).for_each(|_| hint::spin_loop()),
                        Inside::Yields => thread::yield_now(),
                        Inside::Sleeps => std::thread::sleep(Duration::from_millis(1)),
                    }
                    round.turns.fetch_add(1, SeqCst);
                    // Ends a round that would not end by itself.
                    let [turns, time] = round.look();
                    if time > 2 * most || inside == Inside::Sleeps && turns > 5000 {
                        round.stop.store(true, SeqCst);
                    }
                });
            }
        })
    };
    let mut threads: Vec<_> = (0..hogs).map(hog).collect();
    let (shared, other) = (round.clone(), other.clone());
    threads.push(spawn(on[1], move || {
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(1));
            shared.begin(shared.now());
            let before = mounts();
            other(&|| ());
            shared.look();
            shared.tries.fetch_max(mounts() - before, SeqCst);
            shared.begin([u64::MAX; 2]);
        }
        shared.stop.store(true, SeqCst);
    }));
    threads.into_iter().for_each(|join| join());
    let [turns, time] = [0, 1].map(|i| round.worst[i].load(SeqCst));
    let tries = round.tries.load(SeqCst);
    let case = format!("{name}, {inside:?}, {on:?}: {turns} turns, {time} ns, {tries} tries");
    if std::env::var_os("PIRN_TEST_SAYS").is_some() {
        crate::common::report(&case);
    }
    assert!(time < most, "{case}");
    // Forty slices; where it starves, thousands. Beside 30 busy processes the kernel lets the
    // thread that sleeps run a hundred times before a carrier: so the bound for turns is for a
    // thread that is not woken at all, and for one beside a platform thread.
    let soon = turns < 1000 && (on[0] == On::Platform || tries < 400);
    assert!(inside != Inside::Sleeps || soon, "{case}");
}

/// Checks kinds of locks, between threads of these kinds.
fn check(kinds: fn() -> Vec<Kind>, on: &[[On; 2]]) {
    child::with_carriers(&["1", "2", "8"], || {
        for kind in kinds() {
            for inside in [Inside::Computes, Inside::Yields, Inside::Sleeps] {
                for &on in on {
                    gets_it(&kind, inside, on, 1);
                }
            }
        }
    });
}

#[watched]
fn std_locks_between_virtual_threads() {
    check(std_kinds, &[[On::Virtual; 2]]);
}

#[watched]
fn c_locks_between_virtual_threads() {
    check(c_kinds, &[[On::Virtual; 2]]);
}

#[watched]
fn locks_between_platform_threads_in_a_loop_and_virtual_ones() {
    let both = || std_kinds().into_iter().chain(c_kinds()).collect();
    check(both, &[[On::Platform, On::Virtual]]);
}

/// The kernel wakes the platform thread; a virtual one that releases a futex gives way to it.
#[watched]
fn a_mutex_between_virtual_threads_in_a_loop_and_a_platform_thread() {
    check(
        || std_kinds().drain(..1).collect(),
        &[[On::Virtual, On::Platform]],
    );
}

/// Of these virtual threads there is always one that waits.
#[watched]
fn a_platform_thread_gets_a_mutex_beside_several_virtual_ones() {
    child::with_carriers(&["1", "2", "8"], || {
        let (mutex, stop) = (Mutex::new(()), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(SeqCst) {
                        let _guard = mutex.lock().unwrap();
                        std::thread::sleep(Duration::from_micros(200));
                    }
                });
            }
            std::thread::scope(|platform| {
                platform.spawn(|| {
                    (0..5).for_each(|_| drop(mutex.lock().unwrap()));
                    stop.store(true, SeqCst);
                });
            });
        });
    });
}

#[watched]
fn locks_beside_several_threads() {
    child::with_carriers(&["1", "2", "8"], || {
        for kind in std_kinds().iter().chain(&c_kinds()) {
            // std prefers writers, and C readers: of two there is always one that has the lock or
            // waits for it. See `docs/limits.md`.
            let starves = ["RwLock, a reader", "rwlock, a writer", PREFERRED_WRITER];
            if starves.contains(&kind.0) {
                continue;
            }
            for inside in [Inside::Computes, Inside::Yields, Inside::Sleeps] {
                gets_it(kind, inside, [On::Virtual; 2], 3);
            }
        }
    });
}
