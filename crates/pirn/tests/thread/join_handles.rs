//! Waiting for a virtual thread's end in other ways than `join`: with a timeout, until an
//! interrupt, as a future.

use std::future::{IntoFuture, poll_fn};
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::common::child::isolated;
use crate::common::{crowd, on_virtual, watched};
use pirn::thread::{self, JoinFuture, JoinHandle};
use pirn::{block_on, block_on_interruptible};

/// A timeout that must not come.
const NEVER: Duration = Duration::from_secs(3600);

/// Returns a thread that ends when the sender is used or dropped.
fn held<T: Send + 'static>(value: T) -> (mpsc::Sender<()>, JoinHandle<T>) {
    let (release, released) = mpsc::channel();
    let handle = thread::spawn(move || {
        let _ = released.recv();
        value
    });
    (release, handle)
}

/// Counts its wakes, and can be waited for.
#[derive(Default)]
struct Wakes(Mutex<usize>, Condvar);

impl Wakes {
    fn new() -> (Arc<Wakes>, Waker) {
        let wakes = Arc::new(Wakes::default());
        (Arc::clone(&wakes), Waker::from(wakes))
    }

    fn count(&self) -> usize {
        *self.0.lock().unwrap()
    }

    fn wait(&self) {
        let count = self.0.lock().unwrap();
        drop(self.1.wait_while(count, |count| *count == 0).unwrap());
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }
}

fn poll<T>(future: &mut JoinFuture<T>, waker: &Waker) -> Poll<thread::Result<T>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

#[watched]
fn a_timeout_gives_the_handle_back() {
    crowd(|i| {
        let (release, mut handle) = held(i);
        for timeout in [Duration::ZERO, Duration::from_millis(2), Duration::ZERO] {
            let start = Instant::now();
            handle = handle.join_timeout(timeout).unwrap_err();
            assert!(start.elapsed() >= timeout);
            assert!(!handle.is_finished());
        }
        drop(release);
        assert_eq!(handle.join().unwrap(), i);
    });
}

#[watched]
fn the_result_comes_before_the_timeout() {
    crowd(|i| {
        let handle = thread::spawn(move || {
            thread::yield_now();
            i
        });
        assert_eq!(handle.join_timeout(NEVER).unwrap().unwrap(), i);
        // A timeout of centuries.
        let handle = thread::spawn(move || resume_unwind(Box::new(i)));
        let result: thread::Result<()> = handle.join_timeout(Duration::MAX).unwrap();
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&i));
    });
}

#[watched]
fn a_finished_thread_needs_no_time() {
    let handle = thread::spawn(|| 7);
    while !handle.is_finished() {
        thread::yield_now();
    }
    assert_eq!(handle.join_timeout(Duration::ZERO).unwrap().unwrap(), 7);
}

/// The deadline and the end come together, repeatedly: each time the handle or the result is there.
#[watched]
fn timeouts_race_with_ends() {
    let race = |seed: usize| {
        let mut rng = crate::common::Rng::new(seed as u64);
        for round in 0..300 {
            let (work, limit) = (rng.micros(100), rng.micros(100));
            let handle = thread::spawn(move || {
                thread::sleep(work);
                Box::new(round)
            });
            let result = handle.join_timeout(limit).unwrap_or_else(JoinHandle::join);
            assert_eq!(*result.unwrap(), round);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| race(1));
        thread::scope(|virtually| {
            for seed in 2..10 {
                virtually.spawn(move || race(seed));
            }
        });
    });
}

#[watched]
fn an_interrupt_ends_a_join_and_gives_the_handle_back() {
    let (sender, joining) = mpsc::channel();
    let join = move || {
        let (release, handle) = held(7);
        sender.send(thread::current()).unwrap();
        let handle = handle.join_interruptible().unwrap_err();
        assert!(thread::is_interrupted());
        let handle = handle.join_interruptible().unwrap_err();
        assert!(thread::take_interrupt());
        drop(release);
        assert_eq!(handle.join_interruptible().unwrap().unwrap(), 7);
    };
    let on_platform = std::thread::spawn(join.clone());
    joining.recv().unwrap().interrupt();
    on_platform.join().unwrap();
    let on_virtual = thread::spawn(join);
    joining.recv().unwrap().interrupt();
    on_virtual.join().unwrap();
}

#[watched]
fn an_interrupted_thread_joins_what_has_ended() {
    on_virtual(|| {
        let handle = thread::spawn(|| 7);
        while !handle.is_finished() {
            thread::yield_now();
        }
        thread::current().interrupt();
        assert_eq!(handle.join_interruptible().unwrap().unwrap(), 7);
    });
}

#[watched]
fn a_timed_join_hears_no_interrupt() {
    on_virtual(|| {
        thread::current().interrupt();
        let start = Instant::now();
        let (_release, handle) = held(());
        handle.join_timeout(Duration::from_millis(5)).unwrap_err();
        assert!(start.elapsed() >= Duration::from_millis(5));
    });
}

#[watched]
fn results_and_panics_come_through_the_future() {
    crowd(|i| {
        let (release, value) = held(i);
        let panic = thread::spawn(move || resume_unwind(Box::new(i)));
        let ended = thread::spawn(|| "ended");
        let sum = block_on(async {
            assert_eq!(ended.await.unwrap(), "ended");
            let result: thread::Result<()> = panic.await;
            let payload = *result.unwrap_err().downcast::<usize>().unwrap();
            drop(release);
            payload + value.await.unwrap()
        });
        assert_eq!(sum, 2 * i);
    });
}

#[watched]
fn thread_locals_are_destroyed_when_the_future_is_ready() {
    struct OnExit(Arc<AtomicBool>);
    impl Drop for OnExit {
        fn drop(&mut self) {
            thread::yield_now();
            self.0.store(true, SeqCst);
        }
    }
    thread_local!(static LOCAL: std::cell::RefCell<Option<OnExit>> = const { std::cell::RefCell::new(None) });
    crowd(|_| {
        let gone = Arc::new(AtomicBool::new(false));
        let guard = OnExit(Arc::clone(&gone));
        let handle = thread::spawn(|| LOCAL.set(Some(guard)));
        block_on(handle).unwrap();
        assert!(gone.load(SeqCst));
    });
}

#[watched]
fn only_the_last_waker_is_woken() {
    let (release, handle) = held(7);
    let mut future = handle.into_future();
    let ((first, old), (last, new)) = (Wakes::new(), Wakes::new());
    assert!(poll(&mut future, &old).is_pending());
    assert!(poll(&mut future, &old).is_pending());
    assert!(poll(&mut future, &new).is_pending());
    assert_eq!(Arc::strong_count(&first), 2, "the future keeps the old one");
    drop(release);
    last.wait();
    assert!(poll(&mut future, &old).map(Result::unwrap) == Poll::Ready(7));
    assert_eq!((first.count(), last.count()), (0, 1));
    drop((future, new));
    while Arc::strong_count(&last) != 1 {
        thread::yield_now(); // The ending thread is about to drop it.
    }
}

#[watched]
#[should_panic(expected = "polled after it had given its output")]
fn polling_again_panics() {
    let mut future = pin!(thread::spawn(|| ()).into_future());
    block_on(future.as_mut()).unwrap();
    let _ = block_on(future.as_mut());
}

#[watched]
fn a_dropped_future_detaches_the_thread() {
    let (wakes, waker) = Wakes::new();
    let (sender, receiver) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let mut future = thread::spawn(move || {
        let _ = released.recv();
        sender.send(7).unwrap();
    })
    .into_future();
    assert!(poll(&mut future, &waker).is_pending());
    drop((future, waker));
    assert_eq!(Arc::strong_count(&wakes), 1, "the cell keeps the waker");
    drop(release);
    assert_eq!(receiver.recv(), Ok(7));
    assert_eq!(wakes.count(), 0);
}

#[watched]
fn an_interrupted_await_does_not_stop_the_thread() {
    let (sender, receiver) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let outer = thread::spawn(move || {
        let inner = thread::spawn(move || {
            let _ = released.recv();
            sender.send(thread::is_interrupted()).unwrap();
        });
        block_on_interruptible(inner).is_err()
    });
    outer.thread().interrupt();
    assert!(outer.join().unwrap());
    drop(release);
    assert!(!receiver.recv().unwrap());
}

/// The future moves between threads, as tasks do, each polling with a waker of its own.
#[watched]
fn a_future_migrates_between_polls() {
    for round in 0..200 {
        let start = Arc::new(Barrier::new(2));
        let ending = Arc::clone(&start);
        let handle = thread::spawn(move || {
            ending.wait();
            round
        });
        let mut future = handle.into_future();
        start.wait();
        let result = loop {
            let (wakes, waker) = Wakes::new();
            let (same, polled) = std::thread::spawn(move || {
                let polled = poll(&mut future, &waker);
                (future, polled)
            })
            .join()
            .unwrap();
            future = same;
            match polled {
                Poll::Ready(result) => break result,
                Poll::Pending if round % 2 == 0 => wakes.wait(),
                Poll::Pending => {} // polled again for no reason
            }
        };
        assert_eq!(result.unwrap(), round);
    }
}

/// A waker may block: it runs on the ending thread's own stack.
#[watched]
fn a_waker_may_park() {
    isolated(&[("PIRN_PARALLELISM", "1")], || {
        struct Parks(Mutex<mpsc::Receiver<()>>, mpsc::Sender<&'static str>);
        impl Wake for Parks {
            fn wake(self: Arc<Self>) {
                self.1.send("begun").unwrap();
                self.0.lock().unwrap().recv().unwrap();
                thread::sleep(Duration::from_micros(10));
                self.1.send("done").unwrap();
            }
        }
        on_virtual(|| {
            let (go, going) = mpsc::channel();
            let (sender, waking) = mpsc::channel();
            let waker = Waker::from(Arc::new(Parks(Mutex::new(going), sender)));
            let (release, handle) = held(7);
            let mut future = handle.into_future();
            assert!(poll(&mut future, &waker).is_pending());
            drop((release, waker));
            // On the only carrier: if the waker kept it, this thread would not go on.
            assert_eq!(waking.recv(), Ok("begun"));
            assert!(poll(&mut future, Waker::noop()).map(Result::unwrap) == Poll::Ready(7));
            go.send(()).unwrap();
            assert_eq!(waking.recv(), Ok("done"));
        });
    });
}

/// A result that counts its instances, and is dropped once: a second drop would free its box twice.
struct Counted(Arc<AtomicUsize>, Box<u64>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Counted {
        alive.fetch_add(1, SeqCst);
        Counted(Arc::clone(alive), Box::new(0x5eed))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(*self.1, 0x5eed);
        assert_ne!(self.0.fetch_sub(1, SeqCst), 0, "dropped twice");
    }
}

/// Drops futures, polled or not, while their threads end.
fn race_drops_with_ends() {
    const ROUNDS: usize = 10_000;
    let alive = Arc::new(AtomicUsize::new(0));
    let (wakes, waker) = Wakes::new();
    let mut rng = crate::common::Rng::new(7);
    for _ in 0..ROUNDS {
        let counted = Arc::clone(&alive);
        let go = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&go);
        let handle = thread::spawn(move || {
            let result = Counted::new(&counted);
            gone.store(true, SeqCst);
            result
        });
        let mut future = handle.into_future();
        let polls = rng.below(3);
        let early = (0..polls).find_map(|_| match poll(&mut future, &waker) {
            Poll::Ready(result) => Some(result.unwrap()),
            Poll::Pending => None,
        });
        while rng.below(2) == 0 && !go.load(SeqCst) {
            thread::yield_now();
        }
        drop(future);
        drop(early);
    }
    drop(waker);
    // Their handles are gone: wait until each has dropped its result and its waker.
    while alive.load(SeqCst) != 0 || Arc::strong_count(&alive) != 1 {
        thread::yield_now();
    }
    while Arc::strong_count(&wakes) != 1 {
        thread::yield_now();
    }
}

#[watched]
fn dropped_while_ending_on_1_carrier() {
    isolated(&[("PIRN_PARALLELISM", "1")], || {
        race_drops_with_ends();
        on_virtual(race_drops_with_ends);
    });
}

#[watched]
fn dropped_while_ending_on_2_carriers() {
    isolated(&[("PIRN_PARALLELISM", "2")], || {
        race_drops_with_ends();
        on_virtual(race_drops_with_ends);
    });
}

#[watched]
fn dropped_while_ending_on_8_carriers() {
    isolated(&[("PIRN_PARALLELISM", "8")], || {
        race_drops_with_ends();
        on_virtual(race_drops_with_ends);
    });
}

/// Several threads' ends, awaited by one future: each wakes it.
#[watched]
fn one_task_awaits_many_threads() {
    let await_all = || {
        let handles: Vec<_> = (0..1000)
            .map(|i| {
                thread::spawn(move || {
                    if i % 3 == 0 {
                        thread::yield_now();
                    }
                    i
                })
            })
            .collect();
        let mut pending: Vec<_> = handles.into_iter().map(JoinHandle::into_future).collect();
        let mut sum = 0;
        block_on(poll_fn(|context| {
            pending.retain_mut(|future| match Pin::new(future).poll(context) {
                Poll::Ready(result) => {
                    sum += result.unwrap();
                    false
                }
                Poll::Pending => true,
            });
            match pending.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
        assert_eq!(sum, 499_500);
    };
    await_all();
    on_virtual(await_all);
}

/// Returns the message of a panicked thread.
fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    payload.downcast_ref::<String>().expect("formatted")
}

#[watched]
fn joining_oneself_panics_as_in_std() {
    type Own = fn(JoinHandle<()>);
    let ways: [Own; 3] = [
        |own| own.join().unwrap(),
        |own| own.join_timeout(NEVER).unwrap().unwrap(),
        |own| own.join_interruptible().unwrap().unwrap(),
    ];
    for join in ways {
        let (pass, passed) = mpsc::channel::<JoinHandle<()>>();
        let (tell, told) = mpsc::channel();
        let handle = thread::spawn(move || {
            let own = passed.recv().unwrap();
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| join(own)));
            tell.send(panic.unwrap_err()).unwrap();
        });
        pass.send(handle).unwrap();
        let payload = told.recv().unwrap();
        assert_eq!(message(&*payload), std_message_of_joining_oneself());
    }
}

/// Returns `std`'s message when a platform thread joins itself.
fn std_message_of_joining_oneself() -> String {
    let (pass, passed) = mpsc::channel::<std::thread::JoinHandle<()>>();
    let (tell, told) = mpsc::channel();
    let handle = std::thread::spawn(move || {
        let own = passed.recv().unwrap();
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| own.join()));
        tell.send(panic.unwrap_err()).unwrap();
    });
    pass.send(handle).unwrap();
    message(&*told.recv().unwrap()).to_owned()
}

#[watched]
fn joining_oneself_by_pthread_is_a_deadlock() {
    let join = || {
        // SAFETY: the running thread; joining it is refused.
        unsafe { libc::pthread_join(libc::pthread_self(), std::ptr::null_mut()) }
    };
    assert_eq!(on_virtual(join), libc::EDEADLK);
    assert_eq!(std::thread::spawn(join).join().unwrap(), libc::EDEADLK);
}
