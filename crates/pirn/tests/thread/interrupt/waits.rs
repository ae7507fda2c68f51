//! Interruption of sleeping, parking and waiting for other threads. (Input and output: `io.rs`.)

use std::cell::UnsafeCell;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, io};

use super::fixture::{AN_HOUR, interrupted};
use crate::common::{on_virtual, until_it_waits, waits, watched};
use pirn::thread::is_interrupt;
use pirn::thread::{self, Builder, Interrupted};
use pirn::{Runnable, Scheduler};

#[watched]
fn interruptible_waits_say_so() {
    let all = [
        interrupted(|| thread::sleep_interruptible(AN_HOUR)),
        interrupted(|| thread::sleep_interruptible(Duration::MAX)),
        interrupted(thread::park_interruptible),
        interrupted(|| thread::park_timeout_interruptible(AN_HOUR)),
    ];
    assert_eq!(all, [[Err(Interrupted); 2]; 4]);
}

#[watched]
fn an_interruptible_wait_that_is_not_interrupted_is_like_any_other() {
    on_virtual(|| {
        let begin = Instant::now();
        assert_eq!(
            thread::sleep_interruptible(Duration::from_millis(2)),
            Ok(())
        );
        assert!(begin.elapsed() >= Duration::from_millis(2));
        thread::current().unpark();
        assert_eq!(thread::park_interruptible(), Ok(()));
        assert_eq!(thread::sleep_interruptible(Duration::ZERO), Ok(()));
        assert!(!thread::is_interrupted());
    });
}

/// Asserts that a wait that cannot fail ends once per interrupt, so that a loop around it does
/// not spin.
fn ends_once(wait: impl Fn() + Sync) {
    interrupted(&wait);
    let (calls, last) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            while !last.load(SeqCst) {
                wait();
                calls.fetch_add(1, SeqCst);
            }
        });
        for round in 0..3 {
            until_it_waits(waiter.thread());
            assert_eq!(calls.load(SeqCst), round);
            last.store(round == 2, SeqCst);
            waiter.thread().interrupt();
            while calls.load(SeqCst) == round {
                thread::yield_now();
            }
        }
        waiter.join().unwrap();
    });
    assert_eq!(calls.into_inner(), 3);
}

#[watched]
fn sleeps_end_once() {
    ends_once(|| std::thread::sleep(AN_HOUR));
    ends_once(|| thread::sleep(AN_HOUR));
    ends_once(|| thread::sleep(Duration::MAX));
    ends_once(|| thread::sleep_until(Instant::now() + AN_HOUR));
}

#[watched]
fn parks_end_once() {
    ends_once(thread::park);
    ends_once(|| thread::park_timeout(AN_HOUR));
}

#[watched]
fn condition_variables_wake_spuriously_once() {
    let (mutex, condition) = (Mutex::new(()), Condvar::new());
    ends_once(|| drop(condition.wait(mutex.lock().unwrap()).unwrap()));
    ends_once(|| {
        let waited = condition.wait_timeout(mutex.lock().unwrap(), AN_HOUR);
        assert!(!waited.unwrap().1.timed_out());
    });
}

/// A mutex and a condition variable of libc.
struct Pthread {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    condition: UnsafeCell<libc::pthread_cond_t>,
}

// SAFETY: they are made to be shared.
unsafe impl Sync for Pthread {}

impl Pthread {
    const fn new() -> Pthread {
        Pthread {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            condition: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
        }
    }

    fn lock(&self) {
        // SAFETY: initialised.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.mutex.get()) }, 0);
    }

    fn unlock(&self) {
        // SAFETY: initialised, and the callers hold it.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.mutex.get()) }, 0);
    }

    fn wait(&self) {
        let (condition, mutex) = (self.condition.get(), self.mutex.get());
        self.lock();
        // SAFETY: initialised, and the mutex is held.
        assert_eq!(unsafe { libc::pthread_cond_wait(condition, mutex) }, 0);
        self.unlock();
    }
}

#[watched]
fn condition_variables_of_libc_wake_spuriously_once() {
    let pthread = Pthread::new();
    ends_once(|| pthread.wait());
}

/// Asserts that a wait goes on after an interrupt, and sleeps meanwhile, until `release`. If
/// `early`, the interrupt comes before the wait.
fn goes_on(early: bool, wait: impl FnOnce() + Send, release: impl FnOnce()) {
    thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            if early {
                thread::current().interrupt();
            }
            wait();
            assert!(thread::is_interrupted(), "the flag stays");
        });
        until_it_waits(waiter.thread());
        if !early {
            waiter.thread().interrupt();
            until_it_waits(waiter.thread()); // It may wake once, and wait again.
        }
        for _ in 0..2000 {
            assert!(waits(waiter.thread()), "{:?} spins", waiter.thread());
            thread::yield_now();
        }
        release();
        waiter.join().unwrap();
    });
}

#[watched]
fn locks_are_waited_for() {
    for early in [false, true] {
        let (mutex, rw) = (Mutex::new(()), RwLock::new(()));
        let guard = mutex.lock().unwrap();
        goes_on(early, || drop(mutex.lock().unwrap()), || drop(guard));
        let guard = rw.write().unwrap();
        goes_on(early, || drop(rw.read().unwrap()), || drop(guard));
        let guard = rw.read().unwrap();
        goes_on(early, || drop(rw.write().unwrap()), || drop(guard));
        let pthread = Pthread::new();
        pthread.lock();
        let wait = || {
            pthread.lock();
            pthread.unlock();
        };
        goes_on(early, wait, || pthread.unlock());
    }
}

#[watched]
fn channels_are_waited_for() {
    for early in [false, true] {
        let (sender, receiver) = mpsc::channel();
        let wait = move || assert_eq!(receiver.recv(), Ok(1));
        goes_on(early, wait, || sender.send(1).unwrap());
        let (sender, receiver) = mpsc::channel();
        let wait = move || assert_eq!(receiver.recv_timeout(AN_HOUR), Ok(1));
        goes_on(early, wait, || sender.send(1).unwrap());
        let (sender, receiver) = mpsc::sync_channel(0);
        let wait = move || sender.send(1).unwrap();
        goes_on(early, wait, || assert_eq!(receiver.recv(), Ok(1)));
    }
}

#[watched]
fn threads_are_waited_for() {
    for early in [false, true] {
        let child = || {
            let (sender, receiver) = mpsc::channel();
            (sender, move || receiver.recv().unwrap())
        };
        let (sender, body) = child();
        let handle = thread::spawn(body);
        goes_on(
            early,
            || handle.join().unwrap(),
            || sender.send(()).unwrap(),
        );
        let (sender, body) = child();
        let wait = || {
            thread::scope(|scope| drop(scope.spawn(body)));
        };
        goes_on(early, wait, || sender.send(()).unwrap());
        let (sender, body) = child();
        let wait = || {
            std::thread::scope(|scope| drop(scope.spawn(body)));
        };
        goes_on(early, wait, || sender.send(()).unwrap());
        let barrier = Barrier::new(2);
        let wait = || {
            barrier.wait();
        };
        goes_on(early, wait, || {
            barrier.wait();
        });
    }
}

#[watched]
fn the_park_of_std_is_waited_for() {
    for early in [false, true] {
        let (sender, receiver) = mpsc::channel();
        let wait = move || {
            sender.send(std::thread::current()).unwrap();
            std::thread::park();
        };
        goes_on(early, wait, || receiver.recv().unwrap().unpark());
    }
}

#[watched]
fn conditions_are_waited_for() {
    for early in [false, true] {
        let (ready, changed) = (Mutex::new(false), Condvar::new());
        let wait = || {
            drop(changed.wait_while(ready.lock().unwrap(), |ready| !*ready));
        };
        goes_on(early, wait, || {
            *ready.lock().unwrap() = true;
            changed.notify_one();
        });
    }
}

/// Keeps the threads until they are taken.
#[derive(Default)]
struct Later(Mutex<Vec<Runnable>>);

impl Scheduler for Later {
    fn schedule(&self, runnable: Runnable) {
        self.0.lock().unwrap().push(runnable);
    }
}

impl Later {
    /// Runs one thread until it waits or ends.
    fn run_one(&self) {
        let next = self.0.lock().unwrap().pop();
        next.expect("a thread to run").run();
    }
}

#[watched]
fn a_thread_that_has_not_started_finds_the_flag() {
    let later = Arc::new(Later::default());
    let builder = Builder::new().scheduler(later.clone());
    let body = || {
        (
            thread::is_interrupted(),
            thread::sleep_interruptible(AN_HOUR),
        )
    };
    let handle = builder.spawn(body).unwrap();
    handle.thread().interrupt();
    later.run_one();
    assert!(handle.is_finished(), "it has not waited");
    assert_eq!(handle.join().unwrap(), (true, Err(Interrupted)));
}

#[watched]
fn a_thread_of_another_scheduler_is_handed_to_it() {
    let later = Arc::new(Later::default());
    let builder = Builder::new().scheduler(later.clone());
    let handle = builder
        .spawn(|| thread::sleep_interruptible(AN_HOUR))
        .unwrap();
    later.run_one();
    assert!(waits(handle.thread()));
    handle.thread().interrupt();
    later.run_one();
    assert_eq!(handle.join().unwrap(), Err(Interrupted));
}

#[watched]
fn a_thread_that_has_ended_does_not_mind() {
    let handle = thread::spawn(|| 1);
    let ended = handle.thread().clone();
    assert_eq!(handle.join().unwrap(), 1);
    for _ in 0..2 {
        ended.interrupt();
        assert!(ended.is_interrupted());
    }
}

#[watched]
fn the_flag_is_cleared_by_asking_for_it() {
    let check = || {
        assert!(!thread::take_interrupt());
        thread::current().interrupt();
        assert!(thread::current().is_interrupted());
        assert_eq!(thread::sleep_interruptible(AN_HOUR), Err(Interrupted));
        assert!(thread::is_interrupted(), "looking leaves it");
        assert!(thread::take_interrupt());
        assert!(!thread::is_interrupted());
        let short = Duration::from_millis(1);
        assert_eq!(thread::sleep_interruptible(short), Ok(()));
        let begin = Instant::now();
        thread::sleep(short);
        assert!(begin.elapsed() >= short, "the interrupt is gone");
    };
    on_virtual(check);
    std::thread::spawn(check).join().unwrap();
}

#[watched]
fn virtual_threads_interrupt_each_other() {
    let sleeping = thread::spawn(|| thread::sleep_interruptible(AN_HOUR));
    let result = on_virtual(move || {
        sleeping.thread().interrupt();
        sleeping.join().unwrap()
    });
    assert_eq!(result, Err(Interrupted));
}

#[watched]
fn destructors_of_thread_locals_can_be_interrupted() {
    struct Late(mpsc::Sender<Result<(), Interrupted>>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.send(thread::sleep_interruptible(AN_HOUR)).unwrap();
        }
    }
    thread_local!(static LATE: UnsafeCell<Option<Late>> = const { UnsafeCell::new(None) });
    let (sender, receiver) = mpsc::channel();
    // SAFETY: the thread's own, and there is no other reference.
    let body = move || LATE.with(|late| unsafe { *late.get() = Some(Late(sender)) });
    let handle = thread::spawn(body);
    until_it_waits(handle.thread());
    handle.thread().interrupt();
    assert_eq!(receiver.recv().unwrap(), Err(Interrupted));
    handle.join().unwrap();
}

/// Interrupts a platform thread that has just begun `wait`, or is about to.
fn on_platform<T: Send + 'static>(wait: fn() -> T) -> T {
    let (sender, receiver) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        sender.send(thread::current()).unwrap();
        let result = wait();
        assert!(thread::take_interrupt());
        result
    });
    let thread = receiver.recv().unwrap();
    assert!(!thread.is_virtual());
    thread.interrupt();
    waiter.join().unwrap()
}

#[watched]
fn platform_threads_are_interrupted() {
    for _ in 0..100 {
        on_platform(thread::park);
        on_platform(|| thread::park_timeout(AN_HOUR));
        let all = [
            on_platform(|| thread::sleep_interruptible(AN_HOUR)),
            on_platform(thread::park_interruptible),
            on_platform(|| thread::park_timeout_interruptible(AN_HOUR)),
        ];
        assert_eq!(all, [Err(Interrupted); 3]);
    }
}

#[watched]
fn virtual_threads_interrupt_platform_threads_that_sleep() {
    let sleeping = thread::current();
    let waker = thread::spawn(move || sleeping.interrupt());
    assert_eq!(thread::sleep_interruptible(AN_HOUR), Err(Interrupted));
    waker.join().unwrap();
    assert!(thread::take_interrupt());
}

#[derive(Debug)]
struct Wrapped(Box<dyn Error + Send + Sync>);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request failed")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

#[watched]
fn an_interrupt_is_recognised_through_wrappers() {
    let canceled = || io::Error::from_raw_os_error(libc::ECANCELED);
    assert!(is_interrupt(&Interrupted));
    assert!(is_interrupt(&canceled()));
    assert!(is_interrupt(&io::Error::from(Interrupted)));
    assert!(is_interrupt(&io::Error::other(Interrupted)));
    assert!(is_interrupt(&io::Error::other(canceled())));
    assert!(is_interrupt(&io::Error::other(
        io::Error::other(canceled())
    )));
    assert!(is_interrupt(&Wrapped(canceled().into())));
    let deep = io::Error::other(Wrapped(io::Error::other(Wrapped(canceled().into())).into()));
    assert!(is_interrupt(&deep));
    let boxed: Box<dyn Error> = deep.into();
    assert!(is_interrupt(&*boxed));
    // Pointers to errors return the target's source, not the target itself.
    assert!(is_interrupt(&Wrapped(Box::new(Arc::new(canceled())))));
    assert!(is_interrupt(&Wrapped(Box::new(Box::new(canceled())))));
    assert!(is_interrupt(&Arc::new(io::Error::other(Interrupted))));

    let broken = || io::Error::from_raw_os_error(libc::EPIPE);
    assert!(!is_interrupt(&broken()));
    assert!(!is_interrupt(&io::Error::other(Wrapped(broken().into()))));
    assert!(!is_interrupt(&io::Error::from(io::ErrorKind::Interrupted)));
    assert!(!is_interrupt(&fmt::Error));
}

#[watched]
fn a_sleep_after_a_lock_hears_the_interrupt() {
    let mutex = Mutex::new(());
    let guard = mutex.lock().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            drop(mutex.lock().unwrap());
            std::thread::sleep(AN_HOUR);
        });
        until_it_waits(waiter.thread());
        waiter.thread().interrupt();
        until_it_waits(waiter.thread());
        drop(guard);
        waiter.join().unwrap();
    });
}
