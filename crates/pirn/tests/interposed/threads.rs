//! Threads and their locks: the functions that `std` does not call.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use libc::{
    c_int, c_void, clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_t,
    timespec,
};

use super::everywhere;
use crate::common::{child, migrate, on_virtual, skip, watched};

unsafe extern "C" {
    fn pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        time: *const timespec,
    ) -> c_int;
    fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int;
    fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int;
    fn pthread_rwlock_clockrdlock(
        lock: *mut pthread_rwlock_t,
        clock: clockid_t,
        time: *const timespec,
    ) -> c_int;
    fn pthread_rwlock_clockwrlock(
        lock: *mut pthread_rwlock_t,
        clock: clockid_t,
        time: *const timespec,
    ) -> c_int;
    fn pthread_cond_clockwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        time: *const timespec,
    ) -> c_int;
    fn sem_clockwait(semaphore: *mut libc::sem_t, clock: clockid_t, time: *const timespec)
    -> c_int;
    fn pthread_timedjoin_np(
        thread: pthread_t,
        value: *mut *mut c_void,
        time: *const timespec,
    ) -> c_int;
    fn pthread_clockjoin_np(
        thread: pthread_t,
        value: *mut *mut c_void,
        clock: clockid_t,
        time: *const timespec,
    ) -> c_int;
    fn pthread_tryjoin_np(thread: pthread_t, value: *mut *mut c_void) -> c_int;
    fn pthread_exit(value: *mut c_void) -> !;
    fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int;
    fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int;
    fn mtx_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int;
    fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    fn cnd_init(cond: *mut pthread_cond_t) -> c_int;
    fn cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    fn cnd_timedwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        time: *const timespec,
    ) -> c_int;
    fn cnd_signal(cond: *mut pthread_cond_t) -> c_int;
    fn cnd_broadcast(cond: *mut pthread_cond_t) -> c_int;
    fn call_once(control: *mut libc::pthread_once_t, routine: extern "C" fn());
    fn thrd_create(
        thread: *mut pthread_t,
        start: extern "C" fn(*mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn thrd_detach(thread: pthread_t) -> c_int;
    fn thrd_join(thread: pthread_t, value: *mut c_int) -> c_int;
    fn thrd_sleep(time: *const timespec, left: *mut timespec) -> c_int;
    fn thrd_yield();
    fn thrd_exit(value: c_int) -> !;
}

const TIMED: c_int = 1; // mtx_timed
const TIMED_OUT: c_int = 4; // thrd_timedout
const MONOTONIC: clockid_t = libc::CLOCK_MONOTONIC;

/// Returns a point in time on a clock, this far from now.
fn on(clock: clockid_t, after: Duration) -> timespec {
    let now = match clock {
        libc::CLOCK_REALTIME => SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap(),
        // SAFETY: room for the time.
        _ => unsafe {
            let mut now: timespec = mem::zeroed();
            libc::clock_gettime(clock, &mut now);
            Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
        },
    };
    let time = now + after;
    timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// Returns a time soon, on the clock of the day and on the other one.
fn soon() -> [timespec; 2] {
    [libc::CLOCK_REALTIME, MONOTONIC].map(|clock| on(clock, Duration::from_millis(3)))
}

/// What a child writes between what tells nothing and what does.
const FROM_HERE: &str = "from here on";

/// Returns how often the child of this test says something before that line, and after it.
fn told(what: &str) -> [usize; 2] {
    let output = child::run(&[]);
    assert!(output.status.success(), "{}", child::report(&output));
    let text = String::from_utf8(output.stderr).unwrap();
    let (before, after) = text.split_once(FROM_HERE).unwrap();
    [before, after].map(|text| text.matches(what).count())
}

#[watched]
fn a_lock_that_does_not_prefer_writers_says_so_once() {
    if !child::is_here() {
        return assert_eq!(told("though the lock is to prefer writers"), [0, 1]);
    }
    let wait_to_write = |preference| {
        // SAFETY: valid objects, used while they are there.
        unsafe {
            let (mut attributes, mut lock) = (mem::zeroed(), mem::zeroed());
            libc::pthread_rwlockattr_init(&mut attributes);
            let set = libc::pthread_rwlockattr_setkind_np(&mut attributes, preference);
            assert_eq!(set, 0);
            libc::pthread_rwlock_init(&mut lock, &attributes);
            assert_eq!(libc::pthread_rwlock_rdlock(&mut lock), 0);
            let lock = (&raw mut lock).addr();
            on_virtual(move || {
                let late = pthread_rwlock_timedwrlock(lock as _, &soon()[0]);
                assert_eq!(late, libc::ETIMEDOUT);
            });
            assert_eq!(libc::pthread_rwlock_unlock(lock as _), 0);
        }
    };
    [0, 1].into_iter().for_each(wait_to_write); // The default, and a preference that libc ignores.
    eprintln!("{FROM_HERE}");
    [2, 2].into_iter().for_each(wait_to_write);
}

/// Gives this platform thread a real-time policy, if it may have one.
fn become_real_time() -> bool {
    let one = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads a priority.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &one) == 0 }
}

#[watched]
fn a_priority_that_is_not_inherited_is_told_once() {
    if !std::thread::spawn(become_real_time).join().unwrap() {
        return skip("this process may have no real-time threads");
    }
    if !child::is_here() {
        return assert_eq!(told("whose owner does not inherit its priority"), [0, 1]);
    }
    on_virtual(|| ()); // There is a runtime.
    let wait = |is_real_time: bool| {
        // SAFETY: valid objects, used while they are there.
        unsafe {
            let (mut attributes, mut mutex) = (mem::zeroed(), mem::zeroed());
            libc::pthread_mutexattr_init(&mut attributes);
            libc::pthread_mutexattr_setprotocol(&mut attributes, libc::PTHREAD_PRIO_INHERIT);
            libc::pthread_mutex_init(&mut mutex, &attributes);
            assert_eq!(libc::pthread_mutex_lock(&mut mutex), 0);
            let mutex = (&raw mut mutex).addr();
            let late = std::thread::spawn(move || {
                assert!(!is_real_time || become_real_time());
                libc::pthread_mutex_timedlock(mutex as _, &soon()[0])
            });
            assert_eq!(late.join().unwrap(), libc::ETIMEDOUT);
            assert_eq!(libc::pthread_mutex_unlock(mutex as _), 0);
        }
    };
    wait(false);
    eprintln!("{FROM_HERE}");
    [true, true].into_iter().for_each(wait);
}

/// Platform threads wait for such a mutex in the parking lot. One that is claimed while it is awake
/// goes on at once: its waker must not look at its stack any more.
#[watched]
fn platform_threads_share_a_mutex_that_inherits_priorities() {
    const THREADS: usize = 4;
    const TURNS: usize = 20_000;
    on_virtual(|| ()); // There is a runtime.
    let mut sum = 0_usize;
    // SAFETY: valid objects, used while they are there; `sum` under the mutex.
    unsafe {
        let (mut attributes, mut mutex) = (mem::zeroed(), mem::zeroed());
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_setprotocol(&mut attributes, libc::PTHREAD_PRIO_INHERIT);
        libc::pthread_mutex_init(&mut mutex, &attributes);
        let (mutex, sum) = ((&raw mut mutex).addr(), (&raw mut sum).addr());
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(move || {
                    for _ in 0..TURNS {
                        assert_eq!(libc::pthread_mutex_lock(mutex as _), 0);
                        *(sum as *mut usize) += 1;
                        assert_eq!(libc::pthread_mutex_unlock(mutex as _), 0);
                    }
                });
            }
        });
    }
    assert_eq!(sum, THREADS * TURNS);
}

#[watched]
fn locks_that_are_taken_time_out() {
    everywhere(|| {
        let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
        let [day, other] = soon();
        // SAFETY: initialised locks, which this thread unlocks in the end.
        unsafe {
            let (mutex, lock) = (&raw mut mutex as usize, &raw mut lock as usize);
            assert_eq!(pthread_mutex_clocklock(mutex as _, MONOTONIC, &other), 0);
            assert_eq!(libc::pthread_rwlock_rdlock(lock as _), 0);
            assert_eq!(libc::pthread_rwlock_unlock(lock as _), 0);
            assert_eq!(libc::pthread_rwlock_wrlock(lock as _), 0);
            assert_eq!(libc::pthread_rwlock_unlock(lock as _), 0);
            assert_eq!(pthread_rwlock_timedwrlock(lock as _, &day), 0);
            // Another thread of the same kind finds them taken.
            let busy = move || {
                let [day, other] = soon();
                let results = [
                    pthread_mutex_clocklock(mutex as _, MONOTONIC, &other),
                    libc::pthread_mutex_timedlock(mutex as _, &day),
                    pthread_rwlock_timedrdlock(lock as _, &day),
                    pthread_rwlock_timedwrlock(lock as _, &day),
                    pthread_rwlock_clockrdlock(lock as _, MONOTONIC, &other),
                    pthread_rwlock_clockwrlock(lock as _, MONOTONIC, &other),
                ];
                assert_eq!(results, [libc::ETIMEDOUT; 6]);
            };
            std::thread::spawn(busy).join().unwrap();
            on_virtual(busy);
            assert_eq!(libc::pthread_mutex_unlock(mutex as _), 0);
            assert_eq!(libc::pthread_rwlock_unlock(lock as _), 0);
            assert_eq!(pthread_rwlock_clockrdlock(lock as _, MONOTONIC, &other), 0);
            assert_eq!(pthread_rwlock_timedrdlock(lock as _, &day), 0);
            assert_eq!(libc::pthread_rwlock_unlock(lock as _), 0);
            assert_eq!(libc::pthread_rwlock_unlock(lock as _), 0);
            assert_eq!(pthread_rwlock_clockwrlock(lock as _, MONOTONIC, &other), 0);
            assert_eq!(libc::pthread_rwlock_unlock(lock as _), 0);
        }
    });
}

#[watched]
fn what_nobody_signals_times_out() {
    everywhere(|| {
        let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        let mut cond = libc::PTHREAD_COND_INITIALIZER;
        // SAFETY: initialised, and used by this thread only.
        unsafe {
            let mut semaphore: libc::sem_t = mem::zeroed();
            assert_eq!(libc::sem_init(&mut semaphore, 0, 0), 0);
            let [day, other] = soon();
            let error = |result: c_int| super::checked(result).unwrap_err();
            assert_eq!(
                error(libc::sem_timedwait(&mut semaphore, &day)),
                libc::ETIMEDOUT
            );
            assert_eq!(
                error(sem_clockwait(&mut semaphore, MONOTONIC, &other)),
                libc::ETIMEDOUT
            );
            assert_eq!(libc::sem_post(&mut semaphore), 0);
            assert_eq!(libc::sem_wait(&mut semaphore), 0);
            assert_eq!(libc::sem_post(&mut semaphore), 0);
            assert_eq!(sem_clockwait(&mut semaphore, MONOTONIC, &other), 0);
            libc::pthread_mutex_lock(&mut mutex);
            let [_, other] = soon();
            loop {
                // A wake-up without a signal is allowed.
                match pthread_cond_clockwait(&mut cond, &mut mutex, MONOTONIC, &other) {
                    0 => {}
                    error => break assert_eq!(error, libc::ETIMEDOUT),
                }
            }
            loop {
                match libc::pthread_cond_timedwait(&mut cond, &mut mutex, &day) {
                    0 => {}
                    error => break assert_eq!(error, libc::ETIMEDOUT),
                }
            }
            libc::pthread_mutex_unlock(&mut mutex);
            // No thread waits for these.
            assert_eq!(libc::pthread_cond_signal(&mut cond), 0);
            assert_eq!(libc::pthread_cond_broadcast(&mut cond), 0);
        }
    });
}

#[watched]
fn barriers_and_spinlocks() {
    everywhere(|| {
        // SAFETY: initialised before use, destroyed after it.
        unsafe {
            let mut barrier: libc::pthread_barrier_t = mem::zeroed();
            assert_eq!(libc::pthread_barrier_init(&mut barrier, ptr::null(), 2), 0);
            let place = &raw mut barrier as usize;
            let wait = move || libc::pthread_barrier_wait(place as _);
            let other = pirn::thread::spawn(wait);
            let results = [wait(), other.join().unwrap()];
            let serial = libc::PTHREAD_BARRIER_SERIAL_THREAD;
            assert!(results == [0, serial] || results == [serial, 0]);
            assert_eq!(libc::pthread_barrier_destroy(&mut barrier), 0);

            let mut lock: libc::pthread_spinlock_t = mem::zeroed();
            assert_eq!(
                libc::pthread_spin_init(&mut lock, libc::PTHREAD_PROCESS_PRIVATE),
                0
            );
            let (place, mut count) = (&raw mut lock as usize, 0u32);
            let counter = &raw mut count as usize;
            let add = move || {
                for _ in 0..1000 {
                    assert_eq!(libc::pthread_spin_lock(place as _), 0);
                    *(counter as *mut u32) += 1;
                    assert_eq!(libc::pthread_spin_unlock(place as _), 0);
                }
            };
            let others = [std::thread::spawn(add)];
            let virtual_ones = [(); 4].map(|()| pirn::thread::spawn(add));
            others.into_iter().for_each(|other| other.join().unwrap());
            virtual_ones
                .into_iter()
                .for_each(|other| other.join().unwrap());
            assert_eq!((counter as *const u32).read(), 5000);
        }
    });
}

#[watched]
fn locks_of_c11() {
    everywhere(|| {
        // SAFETY: initialised before use. The other thread is joined.
        unsafe {
            let mut mutex: pthread_mutex_t = mem::zeroed();
            let mut cond: pthread_cond_t = mem::zeroed();
            assert_eq!((mtx_init(&mut mutex, TIMED), cnd_init(&mut cond)), (0, 0));
            let (mutex, cond) = (&raw mut mutex as usize, &raw mut cond as usize);
            static STEP: AtomicI32 = AtomicI32::new(0);
            assert_eq!(mtx_lock(mutex as _), 0);
            STEP.store(0, Ordering::SeqCst);
            let other = pirn::thread::spawn(move || {
                let [day, _] = soon();
                assert_eq!(mtx_timedlock(mutex as _, &day), TIMED_OUT);
                STEP.store(3, Ordering::SeqCst);
                assert_eq!(mtx_lock(mutex as _), 0);
                STEP.store(1, Ordering::SeqCst);
                assert_eq!(cnd_broadcast(cond as _), 0);
                while STEP.load(Ordering::SeqCst) != 2 {
                    assert_eq!(cnd_wait(cond as _, mutex as _), 0);
                }
                assert_eq!(mtx_unlock(mutex as _), 0);
            });
            while STEP.load(Ordering::SeqCst) != 3 {
                pirn::thread::yield_now();
            }
            while STEP.load(Ordering::SeqCst) != 1 {
                let [day, _] = soon();
                assert!([0, TIMED_OUT].contains(&cnd_timedwait(cond as _, mutex as _, &day)));
            }
            STEP.store(2, Ordering::SeqCst);
            assert_eq!(cnd_signal(cond as _), 0);
            assert_eq!(mtx_unlock(mutex as _), 0);
            other.join().unwrap();
        }
    });
}

extern "C" fn give(value: *mut c_void) -> *mut c_void {
    pirn::thread::sleep(Duration::from_millis(10));
    value
}

/// Returns a platform thread that ends soon.
fn create() -> pthread_t {
    // SAFETY: room for the thread; a function that takes any pointer.
    unsafe {
        let mut thread: pthread_t = mem::zeroed();
        assert_eq!(
            libc::pthread_create(&mut thread, ptr::null(), give, 7 as *mut c_void),
            0
        );
        thread
    }
}

#[watched]
fn joining_by_all_names() {
    everywhere(|| {
        let late = [libc::CLOCK_REALTIME, MONOTONIC].map(|c| on(c, Duration::from_secs(100)));
        let past = [libc::CLOCK_REALTIME, MONOTONIC].map(|c| on(c, Duration::ZERO));
        // SAFETY: threads that are joined or detached once.
        unsafe {
            let joining = |join: &dyn Fn(pthread_t, *mut *mut c_void) -> c_int| {
                let mut value = ptr::null_mut();
                assert_eq!(join(create(), &mut value), 0);
                assert_eq!(value as usize, 7);
            };
            joining(&|thread, value| libc::pthread_join(thread, value));
            joining(&|thread, value| pthread_timedjoin_np(thread, value, &late[0]));
            joining(&|thread, value| pthread_clockjoin_np(thread, value, MONOTONIC, &late[1]));
            joining(&|thread, value| {
                assert_eq!(
                    pthread_timedjoin_np(thread, value, &past[0]),
                    libc::ETIMEDOUT
                );
                let clock = MONOTONIC;
                let result = pthread_clockjoin_np(thread, value, clock, &past[1]);
                assert_eq!(result, libc::ETIMEDOUT);
                assert_eq!(pthread_tryjoin_np(thread, value), libc::EBUSY);
                loop {
                    match pthread_tryjoin_np(thread, value) {
                        libc::EBUSY => pirn::thread::yield_now(),
                        result => break result,
                    }
                }
            });
            assert_eq!(libc::pthread_detach(create()), 0);
        }
    });
}

#[watched]
fn once_of_c11() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn run() {
        RUNS.fetch_add(1, Ordering::SeqCst);
    }
    everywhere(|| {
        let mut control = libc::PTHREAD_ONCE_INIT;
        let before = RUNS.load(Ordering::SeqCst);
        // SAFETY: initialised.
        unsafe {
            call_once(&mut control, run);
            call_once(&mut control, run);
        }
        assert_eq!(RUNS.load(Ordering::SeqCst), before + 1);
    });
}

#[watched]
fn threads_of_c11() {
    extern "C" fn exit(value: *mut c_void) -> c_int {
        // SAFETY: on a platform thread, with nothing to drop.
        unsafe { thrd_exit(value as c_int) }
    }
    everywhere(|| {
        // SAFETY: room for the thread and its value.
        unsafe {
            let (mut thread, mut value) = (mem::zeroed(), 0);
            assert_eq!(thrd_create(&mut thread, exit, 5 as *mut c_void), 0);
            assert_eq!(thrd_join(thread, &mut value), 0);
            assert_eq!(value, 5);
            assert_eq!(thrd_create(&mut thread, exit, 5 as *mut c_void), 0);
            assert_eq!(thrd_detach(thread), 0);
            let time = timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            };
            assert_eq!(thrd_sleep(&time, ptr::null_mut()), 0);
            thrd_yield();
        }
    });
}

#[watched]
fn cancelling() {
    static CLEANED: AtomicBool = AtomicBool::new(false);
    extern "C" fn wait(_: *mut c_void) -> *mut c_void {
        loop {
            // SAFETY: no arguments. A cancellation point, with nothing to drop around it.
            unsafe { libc::pause() };
        }
    }
    unsafe extern "C" {
        fn pthread_cancel(thread: pthread_t) -> c_int;
    }
    let f = || {
        // SAFETY: room for the thread and its value.
        unsafe {
            let (mut thread, mut value) = (mem::zeroed(), ptr::null_mut());
            assert_eq!(
                libc::pthread_create(&mut thread, ptr::null(), wait, ptr::null_mut()),
                0
            );
            assert_eq!(pthread_cancel(thread), 0);
            assert_eq!(libc::pthread_join(thread, &mut value), 0);
            assert_eq!(value as isize, -1); // PTHREAD_CANCELED
        }
        CLEANED.store(true, Ordering::SeqCst);
    };
    on_virtual(f);
    assert!(CLEANED.load(Ordering::SeqCst));
    // SAFETY: its own thread, which refuses.
    let refused = on_virtual(|| unsafe { pthread_cancel(libc::pthread_self()) });
    assert_eq!(refused, libc::ENOSYS);
    // SAFETY: its own thread, which refuses.
    let refused = on_virtual(|| unsafe {
        let me = libc::pthread_self();
        let none = ptr::null_mut();
        const ERROR: c_int = 2; // thrd_error
        assert_eq!(thrd_detach(me), ERROR);
        [libc::pthread_detach(me), pthread_tryjoin_np(me, none)]
    });
    assert_eq!(refused, [libc::EINVAL; 2]);
}

#[watched]
fn attributes_of_a_virtual_thread() {
    on_virtual(|| {
        migrate();
        // SAFETY: its own thread; room for the answers.
        unsafe {
            let me = libc::pthread_self();
            let mut set: libc::cpu_set_t = mem::zeroed();
            let size = size_of_val(&set);
            assert_eq!(libc::pthread_getaffinity_np(me, size, &mut set), 0);
            assert!(libc::CPU_COUNT(&set) > 0);
            assert_eq!(libc::pthread_setaffinity_np(me, size, &set), libc::ENOTSUP);
            let (mut policy, mut param) = (-1, mem::zeroed::<libc::sched_param>());
            assert_eq!(libc::pthread_getschedparam(me, &mut policy, &mut param), 0);
            assert_eq!((policy, param.sched_priority), (libc::SCHED_OTHER, 0));
            assert_eq!(libc::pthread_setschedparam(me, policy, &param), 0);
            param.sched_priority = 1;
            let refused = libc::pthread_setschedparam(me, libc::SCHED_FIFO, &param);
            assert_eq!(refused, libc::ENOTSUP);
            assert_eq!(libc::pthread_setschedprio(me, 0), 0);
            assert_eq!(libc::pthread_setschedprio(me, 1), libc::ENOTSUP);
            let mut clock = 0;
            let mut time: libc::timespec = mem::zeroed();
            assert_eq!(libc::pthread_getcpuclockid(me, &mut clock), 0);
            assert_eq!(libc::clock_gettime(clock, &mut time), 0);
            let own = libc::CLOCK_THREAD_CPUTIME_ID;
            assert_eq!(libc::clock_gettime(own, &mut time), 0);
        }
    });
}

#[watched]
fn a_virtual_thread_cannot_exit_by_libcs_functions() {
    static RUN: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: they end the process.
    let exits: [fn(); 2] = [
        || unsafe { pthread_exit(ptr::null_mut()) },
        || unsafe { thrd_exit(0) },
    ];
    if child::is_here() {
        let number = std::env::var("EXIT").unwrap().parse::<usize>().unwrap();
        RUN.store(number, Ordering::SeqCst);
        on_virtual(move || exits[number]());
        return;
    }
    for number in ["0", "1"] {
        let output = child::run(&[("EXIT", number)]);
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("it can only end by returning"),
            "{}",
            child::report(&output)
        );
    }
}
