//! Waits for objects in memory, with their owners.

use super::{at, waits};
use crate::thread;
use core::cell::UnsafeCell;
use core::ptr;
use pirn_dump::{LockKind, Wait};
use std::mem::MaybeUninit;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// An object of C's, which threads share.
struct Shared<T>(UnsafeCell<T>);
// SAFETY: C's functions synchronise.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    const fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }

    fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Accepts a wait for the object.
fn lock(what: LockKind, address: u64) -> impl Fn(&Wait) -> bool {
    move |wait| matches!(wait, Wait::Lock { address: a, what: w, .. } if (*a, *w) == (address, what))
}

fn owner(wait: &Wait) -> Option<u64> {
    wait.owner()
}

#[test]
fn a_lock_of_std_has_an_address_and_no_owner() {
    static LOCK: Mutex<()> = Mutex::new(());
    let guard = LOCK.lock().unwrap();
    let waiter = thread::spawn(|| drop(LOCK.lock()));
    let noted = waits(&waiter, |wait| {
        let inside = at(&LOCK)..at(&LOCK) + size_of_val(&LOCK) as u64;
        matches!(wait, Wait::Lock { address, what: LockKind::Futex, owner: None, .. }
            if inside.contains(address))
    });
    assert!(!noted.is_timed());
    drop(guard);
    waiter.join().unwrap();
}

#[test]
fn a_futex_wait_has_its_deadline() {
    static LOCK: Mutex<bool> = Mutex::new(false);
    static CHANGED: Condvar = Condvar::new();
    let clock = pirn_observe::waits::WallClock::now();
    let before = clock.at(pirn_rt::time::Deadline::after(Duration::from_secs(3600)));
    let waiter = thread::spawn(|| {
        let hour = Duration::from_secs(3600);
        let guard = LOCK.lock().unwrap();
        drop(CHANGED.wait_timeout_while(guard, hour, |go| !*go).unwrap());
    });
    let noted = waits(&waiter, lock(LockKind::Futex, at(&CHANGED)));
    let after = clock.at(pirn_rt::time::Deadline::after(Duration::from_secs(3600)));
    let until = noted.until(&clock).expect("a deadline");
    assert!(
        (before..=after).contains(&until),
        "{before} {until} {after}"
    );
    *LOCK.lock().unwrap() = true;
    CHANGED.notify_all();
    waiter.join().unwrap();
}

#[test]
fn a_mutex_of_c_has_an_owner_if_that_is_virtual() {
    static MUTEX: Shared<libc::pthread_mutex_t> = Shared::new(libc::PTHREAD_MUTEX_INITIALIZER);
    let lock_it = || {
        // SAFETY: a mutex.
        unsafe { assert_eq!(libc::pthread_mutex_lock(MUTEX.get()), 0) };
    };
    let unlock_it = || {
        // SAFETY: locked by the caller.
        unsafe { assert_eq!(libc::pthread_mutex_unlock(MUTEX.get()), 0) };
    };
    let holder = thread::spawn(move || {
        lock_it();
        thread::park();
        unlock_it();
    });
    waits(&holder, |wait| *wait == Wait::Park);
    let waiter = thread::spawn(move || {
        lock_it();
        unlock_it();
    });
    let noted = waits(&waiter, lock(LockKind::Mutex, at(MUTEX.get())));
    assert_eq!(owner(&noted.plain()), Some(holder.thread().id().number()));
    holder.thread().unpark();
    holder.join().unwrap();
    waiter.join().unwrap();

    lock_it(); // By a platform thread, which has no id.
    let waiter = thread::spawn(move || {
        lock_it();
        unlock_it();
    });
    let noted = waits(&waiter, lock(LockKind::Mutex, at(MUTEX.get())));
    assert_eq!(owner(&noted.plain()), None);
    unlock_it();
    waiter.join().unwrap();
}

#[test]
fn a_lock_for_reading_and_writing_has_an_owner_if_it_is_held_for_writing() {
    static LOCK: Shared<libc::pthread_rwlock_t> = Shared::new(libc::PTHREAD_RWLOCK_INITIALIZER);
    type Take = unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> i32;
    let hold = |take: Take, parks: bool| {
        thread::spawn(move || {
            // SAFETY: a lock, unlocked by the thread that locked it.
            unsafe { assert_eq!(take(LOCK.get()), 0) };
            if parks {
                thread::park();
            }
            // SAFETY: a lock, unlocked by the thread that locked it.
            unsafe { assert_eq!(libc::pthread_rwlock_unlock(LOCK.get()), 0) };
        })
    };
    let (read, write): (Take, Take) = (libc::pthread_rwlock_rdlock, libc::pthread_rwlock_wrlock);
    for (first, second, known) in [
        (write, read, true),
        (write, write, true),
        (read, write, false),
    ] {
        let holder = hold(first, true);
        waits(&holder, |wait| *wait == Wait::Park);
        let waiter = hold(second, false);
        let noted = waits(&waiter, lock(LockKind::RwLock, at(LOCK.get())));
        let holds = known.then(|| holder.thread().id().number());
        assert_eq!(owner(&noted.plain()), holds);
        holder.thread().unpark();
        holder.join().unwrap();
        waiter.join().unwrap();
    }
}

#[test]
fn condition_variables_semaphores_barriers_and_once() {
    static MUTEX: Shared<libc::pthread_mutex_t> = Shared::new(libc::PTHREAD_MUTEX_INITIALIZER);
    static COND: Shared<libc::pthread_cond_t> = Shared::new(libc::PTHREAD_COND_INITIALIZER);
    let waiter = thread::spawn(|| {
        // SAFETY: initialised objects.
        unsafe {
            libc::pthread_mutex_lock(MUTEX.get());
            libc::pthread_cond_wait(COND.get(), MUTEX.get());
            libc::pthread_mutex_unlock(MUTEX.get());
        }
    });
    waits(&waiter, lock(LockKind::Condvar, at(COND.get())));
    // SAFETY: initialised objects.
    unsafe { libc::pthread_cond_signal(COND.get()) };
    waiter.join().unwrap();

    static SEMAPHORE: Shared<MaybeUninit<libc::sem_t>> = Shared::new(MaybeUninit::uninit());
    let semaphore = || SEMAPHORE.get().cast::<libc::sem_t>();
    // SAFETY: memory for one.
    unsafe { libc::sem_init(semaphore(), 0, 0) };
    // SAFETY: initialised.
    let waiter = thread::spawn(move || unsafe { libc::sem_wait(semaphore()) });
    waits(&waiter, lock(LockKind::Semaphore, at(semaphore())));
    // SAFETY: initialised.
    unsafe { libc::sem_post(semaphore()) };
    waiter.join().unwrap();

    static BARRIER: Shared<MaybeUninit<libc::pthread_barrier_t>> =
        Shared::new(MaybeUninit::uninit());
    let barrier = || BARRIER.get().cast::<libc::pthread_barrier_t>();
    // SAFETY: memory for one.
    unsafe { libc::pthread_barrier_init(barrier(), ptr::null(), 2) };
    // SAFETY: initialised.
    let wait = move || unsafe { libc::pthread_barrier_wait(barrier()) };
    let waiter = thread::spawn(move || {
        wait();
    });
    waits(&waiter, lock(LockKind::Barrier, at(barrier())));
    wait();
    waiter.join().unwrap();
}

#[test]
fn who_comes_second_to_a_once_waits_for_it() {
    unsafe extern "C" {
        fn pthread_once(control: *mut i32, routine: extern "C" fn()) -> i32;
    }
    extern "C" fn routine() {
        thread::park();
    }
    static ONCE: Shared<i32> = Shared::new(0);
    // SAFETY: a `pthread_once_t`.
    let call = || unsafe {
        pthread_once(ONCE.get(), routine);
    };
    let first = thread::spawn(call);
    waits(&first, |wait| *wait == Wait::Park);
    let second = thread::spawn(call);
    waits(&second, lock(LockKind::Once, at(ONCE.get())));
    first.thread().unpark();
    first.join().unwrap();
    second.join().unwrap();
}

#[test]
fn who_is_moved_to_another_word_waits_for_that() {
    static WORDS: [core::sync::atomic::AtomicU32; 2] =
        [const { core::sync::atomic::AtomicU32::new(0) }; 2];
    let private = libc::FUTEX_PRIVATE_FLAG;
    let (from, to) = (WORDS[0].as_ptr(), WORDS[1].as_ptr());
    let waiter = thread::spawn(move || {
        let word = WORDS[0].as_ptr();
        // SAFETY: the word is static.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT | private, 0, 0) };
    });
    waits(&waiter, lock(LockKind::Futex, at(from)));
    // SAFETY: the word is static.
    let moved = unsafe {
        libc::syscall(
            libc::SYS_futex,
            from,
            libc::FUTEX_CMP_REQUEUE | private,
            0,
            1,
            to,
            0,
        )
    };
    assert_eq!(moved, 1);
    waits(&waiter, lock(LockKind::Futex, at(to)));
    // SAFETY: the word is static.
    unsafe { libc::syscall(libc::SYS_futex, to, libc::FUTEX_WAKE | private, 1) };
    waiter.join().unwrap();
}
