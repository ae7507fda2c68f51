//! pthreads called directly: locks with an owner that migrates, and waiting that parks.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::sys::check;
use crate::common::{
    block_then, crowd, crowd_size, many, migrate, most_carriers, on_virtual, watched,
};
use libc::{EBUSY, EDEADLK, EPERM, ETIMEDOUT};
use pirn::thread;

/// A pthread object that its own functions synchronise.
struct Raw<T>(UnsafeCell<T>);

// SAFETY: only the pthread functions, which are made for it, touch the contents.
unsafe impl<T> Sync for Raw<T> {}

impl<T> Raw<T> {
    fn new(value: T) -> Raw<T> {
        Raw(UnsafeCell::new(value))
    }

    fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Returns a mutex of the given kind, boxed so that it stays where it is.
fn mutex(kind: i32) -> Box<Raw<libc::pthread_mutex_t>> {
    let mutex = Box::new(Raw::new(libc::PTHREAD_MUTEX_INITIALIZER));
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: both are initialised here before use.
    unsafe {
        assert_eq!(libc::pthread_mutexattr_init(attributes.as_mut_ptr()), 0);
        assert_eq!(
            libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), kind),
            0
        );
        assert_eq!(
            libc::pthread_mutex_init(mutex.get(), attributes.as_ptr()),
            0
        );
    }
    mutex
}

/// Calls a pthread function with an object of the tests.
macro_rules! call {
    ($function:ident, $object:expr $(, $argument:expr)*) => {
        // SAFETY: the object is initialised and outlives its users.
        unsafe { libc::$function($object.get() $(, $argument)*) }
    };
}

#[watched]
fn a_recursive_mutex_knows_its_owner_across_carriers() {
    let mutex = mutex(libc::PTHREAD_MUTEX_RECURSIVE);
    let inside = AtomicUsize::new(0);
    crowd(|_| {
        assert_eq!(call!(pthread_mutex_lock, mutex), 0);
        assert_eq!(inside.fetch_add(1, SeqCst), 0);
        migrate();
        assert_eq!(call!(pthread_mutex_lock, mutex), 0);
        assert_eq!(call!(pthread_mutex_trylock, mutex), 0);
        migrate();
        for depth in (0..3).rev() {
            if depth == 0 {
                inside.fetch_sub(1, SeqCst);
            }
            assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
            migrate();
        }
        // Not the owner any more.
        assert_eq!(call!(pthread_mutex_unlock, mutex), EPERM);
    });
}

#[watched]
fn an_error_checking_mutex_knows_its_owner_across_carriers() {
    let mutex = mutex(libc::PTHREAD_MUTEX_ERRORCHECK);
    crowd(|_| {
        assert_eq!(call!(pthread_mutex_unlock, mutex), EPERM);
        assert_eq!(call!(pthread_mutex_lock, mutex), 0);
        migrate();
        assert_eq!(call!(pthread_mutex_lock, mutex), EDEADLK);
        migrate();
        assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
    });
}

#[watched]
fn a_neighbour_on_the_same_carrier_is_not_the_owner() {
    for kind in [
        libc::PTHREAD_MUTEX_RECURSIVE,
        libc::PTHREAD_MUTEX_ERRORCHECK,
    ] {
        let mutex = mutex(kind);
        on_virtual(move || {
            assert_eq!(call!(pthread_mutex_lock, mutex), 0);
            thread::scope(|scope| {
                for _ in 0..many() {
                    scope.spawn(|| {
                        assert_eq!(call!(pthread_mutex_trylock, mutex), EBUSY);
                        assert_eq!(call!(pthread_mutex_unlock, mutex), EPERM);
                    });
                }
            });
            assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
        });
    }
}

#[watched]
fn a_contended_mutex_parks() {
    let mutex = mutex(libc::PTHREAD_MUTEX_NORMAL);
    let counter = AtomicUsize::new(0);
    // A platform thread holds it until all the others wait.
    assert_eq!(call!(pthread_mutex_lock, mutex), 0);
    let waiting = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (waiting, counter, mutex) = (&waiting, &counter, &mutex);
        let everybody = scope.spawn(move || {
            crowd(|_| {
                waiting.fetch_add(1, SeqCst);
                assert_eq!(call!(pthread_mutex_lock, mutex), 0);
                let seen = counter.load(SeqCst);
                thread::yield_now();
                counter.store(seen + 1, SeqCst);
                assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
            });
        });
        while waiting.load(SeqCst) < crowd_size() {
            std::thread::yield_now();
        }
        assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
        everybody.join().unwrap();
    });
    assert_eq!(counter.into_inner(), crowd_size());
}

#[watched]
fn a_timed_lock_times_out() {
    let mutex = mutex(libc::PTHREAD_MUTEX_NORMAL);
    assert_eq!(call!(pthread_mutex_lock, mutex), 0);
    crowd(|_| {
        let deadline = crate::common::sys::timespec(realtime() + Duration::from_millis(20));
        assert_eq!(call!(pthread_mutex_timedlock, mutex, &deadline), ETIMEDOUT);
    });
    assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
}

fn realtime() -> Duration {
    std::time::UNIX_EPOCH.elapsed().unwrap()
}

#[watched]
fn a_read_write_lock_shares_and_excludes() {
    let lock = Raw::new(libc::PTHREAD_RWLOCK_INITIALIZER);
    let all_inside = Barrier::new(crowd_size());
    let value = AtomicUsize::new(0);
    crowd(|_| {
        assert_eq!(call!(pthread_rwlock_rdlock, lock), 0);
        all_inside.wait();
        assert_eq!(call!(pthread_rwlock_trywrlock, lock), EBUSY);
        migrate();
        assert_eq!(call!(pthread_rwlock_unlock, lock), 0);

        assert_eq!(call!(pthread_rwlock_wrlock, lock), 0);
        let seen = value.load(SeqCst);
        migrate();
        // The owner is known by its id, which must not have changed.
        assert_eq!(call!(pthread_rwlock_rdlock, lock), EDEADLK);
        value.store(seen + 1, SeqCst);
        assert_eq!(call!(pthread_rwlock_unlock, lock), 0);
    });
    assert_eq!(value.into_inner(), crowd_size());
}

#[watched]
fn a_condition_variable_parks() {
    let mutex = mutex(libc::PTHREAD_MUTEX_NORMAL);
    let condition = Raw::new(libc::PTHREAD_COND_INITIALIZER);
    let permits = AtomicUsize::new(0);
    block_then(
        many(),
        |_| {
            assert_eq!(call!(pthread_mutex_lock, mutex), 0);
            while permits.load(SeqCst) == 0 {
                assert_eq!(call!(pthread_cond_wait, condition, mutex.get()), 0);
            }
            permits.fetch_sub(1, SeqCst);
            assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
        },
        || {
            for i in 0..many() {
                assert_eq!(call!(pthread_mutex_lock, mutex), 0);
                permits.fetch_add(1, SeqCst);
                assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
                if i + 1 == many() {
                    assert_eq!(call!(pthread_cond_broadcast, condition), 0);
                } else {
                    assert_eq!(call!(pthread_cond_signal, condition), 0);
                }
            }
        },
    );
}

#[watched]
fn a_condition_variable_times_out() {
    let mutex = mutex(libc::PTHREAD_MUTEX_NORMAL);
    let condition = Raw::new(libc::PTHREAD_COND_INITIALIZER);
    crowd(|_| {
        let until = realtime() + Duration::from_millis(20);
        let deadline = crate::common::sys::timespec(until);
        assert_eq!(call!(pthread_mutex_lock, mutex), 0);
        while call!(pthread_cond_timedwait, condition, mutex.get(), &deadline) == 0 {}
        assert!(realtime() >= until);
        assert_eq!(call!(pthread_mutex_unlock, mutex), 0);
    });
}

#[watched]
fn a_semaphore_parks() {
    // SAFETY: all-zero memory is about to be initialised by `sem_init`.
    let semaphore: Raw<libc::sem_t> = Raw::new(unsafe { std::mem::zeroed() });
    check(call!(sem_init, semaphore, 0, 0)).unwrap();
    block_then(
        many(),
        |_| assert_eq!(call!(sem_wait, semaphore), 0),
        || {
            for _ in 0..many() {
                assert_eq!(call!(sem_post, semaphore), 0);
            }
        },
    );
    let error = check(call!(sem_trywait, semaphore)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
}

#[watched]
fn a_pthread_barrier_opens() {
    // SAFETY: all-zero memory is about to be initialised by `pthread_barrier_init`.
    let barrier: Raw<libc::pthread_barrier_t> = Raw::new(unsafe { std::mem::zeroed() });
    let size = crowd_size() as u32;
    assert_eq!(call!(pthread_barrier_init, barrier, ptr::null(), size), 0);
    let serial = AtomicUsize::new(0);
    crowd(|_| {
        for _ in 0..3 {
            if call!(pthread_barrier_wait, barrier) == libc::PTHREAD_BARRIER_SERIAL_THREAD {
                serial.fetch_add(1, SeqCst);
            }
        }
    });
    assert_eq!(serial.into_inner(), 3);
}

extern "C" fn wait_at_barrier(barrier: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the creator passes a `Barrier` that outlives the thread.
    unsafe { &*barrier.cast::<Barrier>() }.wait();
    barrier
}

#[watched]
fn pthread_join_parks() {
    let count = 4 * most_carriers();
    let barrier = Barrier::new(count + 1);
    let argument = (&raw const barrier).cast_mut().cast();
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let mut id = 0;
            // SAFETY: the barrier outlives the threads, which are joined below.
            let error =
                unsafe { libc::pthread_create(&mut id, ptr::null(), wait_at_barrier, argument) };
            assert_eq!(error, 0);
            id
        })
        .collect();
    block_then(
        count,
        |i| {
            let mut value = ptr::null_mut();
            // SAFETY: each thread is joined once.
            assert_eq!(unsafe { libc::pthread_join(threads[i], &mut value) }, 0);
            assert_eq!(value.cast_const().cast(), &raw const barrier);
        },
        || {
            barrier.wait();
        },
    );
}
