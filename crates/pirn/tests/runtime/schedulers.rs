//! Custom schedulers: virtual threads run on the thread that calls `Runnable::run`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::common::{many, on_virtual, sys, watched};
use pirn::thread::{self, Builder, JoinHandle};
use pirn::{Runnable, Scheduler};

/// Sends every thread to the receiver.
struct ToReceiver(Mutex<mpsc::Sender<Runnable>>);

impl ToReceiver {
    fn new() -> (Arc<ToReceiver>, mpsc::Receiver<Runnable>) {
        let (sender, receiver) = mpsc::channel();
        (Arc::new(ToReceiver(Mutex::new(sender))), receiver)
    }
}

impl Scheduler for ToReceiver {
    fn schedule(&self, thread: Runnable) {
        // Without a receiver the thread is abandoned.
        let _ = self.0.lock().unwrap().send(thread);
    }
}

/// Runs threads from the receiver until the thread of `handle` has ended, and returns its result.
fn drive<T>(receiver: &mpsc::Receiver<Runnable>, handle: JoinHandle<T>) -> thread::Result<T> {
    while !handle.is_finished() {
        receiver.recv().unwrap().run();
    }
    handle.join()
}

/// Returns the number of the OS thread that runs this.
fn os_thread() -> i64 {
    // SAFETY: touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

#[watched]
fn a_thread_runs_where_it_is_run() {
    let (scheduler, receiver) = ToReceiver::new();
    let builder = Builder::new().scheduler(scheduler);
    let handle = builder
        .spawn(|| {
            let before = os_thread();
            thread::yield_now();
            thread::sleep(Duration::from_millis(1));
            (before, os_thread(), thread::current().is_virtual())
        })
        .unwrap();
    let here = os_thread();
    assert_eq!(drive(&receiver, handle).unwrap(), (here, here, true));
    assert!(!thread::current().is_virtual());
}

#[watched]
fn nothing_runs_before_it_is_run() {
    let (scheduler, receiver) = ToReceiver::new();
    let builder = Builder::new().name("later".into()).scheduler(scheduler);
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let handle = builder.spawn(move || counted.fetch_add(1, SeqCst)).unwrap();
    let runnable = receiver.recv().unwrap();
    assert_eq!(runnable.thread().name(), Some("later"));
    assert_eq!((ran.load(SeqCst), handle.is_finished()), (0, false));
    runnable.run();
    assert_eq!(ran.load(SeqCst), 1);
    handle.join().unwrap();
}

#[watched]
fn every_wake_up_comes_to_the_scheduler() {
    let (scheduler, receiver) = ToReceiver::new();
    let builder = Builder::new().scheduler(scheduler);
    let (mut reader, mut writer) = io::pipe().unwrap();
    let mutex = Arc::new(Mutex::new(()));
    let inner = Arc::clone(&mutex);
    let here = os_thread();
    let guard = mutex.lock().unwrap();
    let handle = builder
        .spawn(move || {
            let mut places = Vec::new();
            thread::park();
            places.push(os_thread());
            reader.read_exact(&mut [0]).unwrap();
            places.push(os_thread());
            drop(inner.lock().unwrap());
            places.push(os_thread());
            std::thread::sleep(Duration::from_millis(1));
            places.push(os_thread());
            std::fs::metadata("/").unwrap();
            places.push(os_thread());
            places
        })
        .unwrap();
    let waking = {
        let thread = handle.thread().clone();
        thread::spawn(move || {
            thread.unpark();
            writer.write_all(b"x").unwrap();
        })
    };
    receiver.recv().unwrap().run();
    drop(guard);
    let places = drive(&receiver, handle).unwrap();
    assert_eq!(places, [here; 5]);
    waking.join().unwrap();
}

/// Gives each turn of a thread to the next of several platform threads, so that threads migrate at
/// every chance.
struct RoundRobin {
    queues: Vec<Mutex<mpsc::Sender<Runnable>>>,
    next: AtomicUsize,
}

impl RoundRobin {
    fn new(count: usize) -> Arc<RoundRobin> {
        let queue = |_| {
            let (sender, receiver) = mpsc::channel::<Runnable>();
            std::thread::spawn(move || receiver.into_iter().for_each(Runnable::run));
            Mutex::new(sender)
        };
        Arc::new(RoundRobin {
            queues: (0..count).map(queue).collect(),
            next: AtomicUsize::new(0),
        })
    }
}

impl Scheduler for RoundRobin {
    fn schedule(&self, thread: Runnable) {
        let place = self.next.fetch_add(1, SeqCst) % self.queues.len();
        self.queues[place].lock().unwrap().send(thread).unwrap();
    }
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

#[watched]
fn what_belongs_to_a_thread_migrates_with_it() {
    // A single thread on two platform threads changes place at every switch.
    let scheduler = RoundRobin::new(2);
    let builder = Builder::new().scheduler(scheduler);
    let handle = builder
        .spawn(|| {
            NUMBER.set(7);
            let id = std::thread::current().id();
            let address = NUMBER.with(|number| std::ptr::from_ref(number).addr());
            for _ in 0..100 {
                let before = os_thread();
                sys::set_errno(libc::EXDEV);
                thread::yield_now();
                assert_ne!(os_thread(), before);
                assert_eq!(sys::errno(), libc::EXDEV);
                assert_eq!(NUMBER.get(), 7);
                assert_eq!(
                    NUMBER.with(|number| std::ptr::from_ref(number).addr()),
                    address
                );
                assert_eq!(std::thread::current().id(), id);
                let caught = catch_unwind(|| {
                    thread::yield_now();
                    std::panic::resume_unwind(Box::new(5_u8));
                });
                assert_eq!(caught.unwrap_err().downcast_ref(), Some(&5_u8));
            }
        })
        .unwrap();
    handle.join().unwrap();
}

#[watched]
fn a_crowd_runs_on_a_pool_of_the_users() {
    let builder = Builder::new().scheduler(RoundRobin::new(3));
    let total = Mutex::new(0);
    thread::scope(|scope| {
        for i in 0..many() {
            let total = &total;
            let spawned = builder.clone().spawn_scoped(scope, move || {
                for _ in 0..5 {
                    let mut total = total.lock().unwrap();
                    thread::yield_now();
                    *total += i;
                }
            });
            drop(spawned.unwrap());
        }
    });
    assert_eq!(total.into_inner().unwrap(), 5 * many() * (many() - 1) / 2);
}

/// Runs the newest first, when told to.
#[derive(Default)]
struct Stack(Mutex<VecDeque<Runnable>>);

impl Scheduler for Stack {
    fn schedule(&self, thread: Runnable) {
        self.0.lock().unwrap().push_front(thread);
    }
}

impl Stack {
    fn run_all(&self) {
        loop {
            let Some(next) = self.0.lock().unwrap().pop_front() else {
                return;
            };
            next.run();
        }
    }
}

#[watched]
fn the_scheduler_decides_the_order() {
    let (scheduler, order) = (Arc::new(Stack::default()), Arc::new(Mutex::new(Vec::new())));
    let builder = Builder::new().scheduler(scheduler.clone());
    for i in 0..5 {
        let order = Arc::clone(&order);
        let spawned = builder.clone().spawn(move || order.lock().unwrap().push(i));
        drop(spawned.unwrap());
    }
    scheduler.run_all();
    assert_eq!(*order.lock().unwrap(), [4, 3, 2, 1, 0]);
}

#[watched]
fn threads_of_different_schedulers_talk() {
    let (scheduler, receiver) = ToReceiver::new();
    let builder = Builder::new().scheduler(scheduler);
    let (ping, pings) = mpsc::sync_channel(0);
    let (pong, pongs) = mpsc::sync_channel(0);
    let here = builder
        .spawn(move || {
            pings
                .into_iter()
                .for_each(|ball: i32| pong.send(ball).unwrap())
        })
        .unwrap();
    let there = thread::spawn(move || {
        for ball in 0..1000 {
            ping.send(ball).unwrap();
            assert_eq!(pongs.recv(), Ok(ball));
        }
    });
    drive(&receiver, here).unwrap();
    there.join().unwrap();
}

/// Lets others run while it holds its lock.
struct Courteous(ToReceiver);

impl Scheduler for Courteous {
    fn schedule(&self, thread: Runnable) {
        let sender = self.0.0.lock().unwrap();
        thread::yield_now();
        std::thread::sleep(Duration::from_micros(10));
        let _ = sender.send(thread);
    }
}

#[watched]
fn a_scheduler_is_not_unmounted_in_the_middle() {
    // `schedule` is called on the thread that wakes another. If that thread were unmounted in it,
    // it would have to be scheduled itself, by a scheduler whose lock it holds.
    let (sender, receiver) = mpsc::channel();
    let builder = Builder::new().scheduler(Arc::new(Courteous(ToReceiver(Mutex::new(sender)))));
    let (ping, pings) = mpsc::channel();
    let (pong, pongs) = mpsc::channel();
    let echo = move || {
        pings
            .into_iter()
            .for_each(|ball: i32| pong.send(ball).unwrap())
    };
    let echo = builder.clone().spawn(echo).unwrap();
    let player = move || {
        for ball in 0..20 {
            ping.send(ball).unwrap();
            assert_eq!(pongs.recv(), Ok(ball));
        }
    };
    let player = builder.spawn(player).unwrap();
    drive(&receiver, player).unwrap();
    drive(&receiver, echo).unwrap();
}

#[watched]
fn an_abandoned_thread_ends_in_an_error() {
    let (scheduler, receiver) = ToReceiver::new();
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let handle = Builder::new()
        .scheduler(scheduler)
        .spawn(move || drop(held))
        .unwrap();
    drop(receiver.recv().unwrap());
    assert!(handle.join().is_err());
    // Its captures are dropped.
    assert_eq!(Arc::strong_count(&token), 1);
}

#[watched]
fn a_virtual_thread_carries_no_other() {
    let (scheduler, receiver) = ToReceiver::new();
    let handle = Builder::new().scheduler(scheduler).spawn(|| 7).unwrap();
    let runnable = receiver.recv().unwrap();
    let refused = on_virtual(|| catch_unwind(AssertUnwindSafe(|| runnable.run())).is_err());
    assert!(refused);
    assert!(handle.join().is_err());
}

#[watched]
fn a_panic_stays_in_its_thread() {
    let (scheduler, receiver) = ToReceiver::new();
    let builder = Builder::new().scheduler(scheduler);
    let handle = builder.spawn(|| std::panic::panic_any(3_u8)).unwrap();
    let payload = drive(&receiver, handle).unwrap_err();
    assert_eq!(payload.downcast_ref::<u8>(), Some(&3));
    assert!(!std::thread::panicking());
}

/// Runs a thread as soon as it becomes runnable, on the thread that woke it.
struct Inline;

impl Scheduler for Inline {
    fn schedule(&self, thread: Runnable) {
        thread.run();
    }
}

#[watched]
fn a_scheduler_may_run_threads_in_place() {
    let builder = Builder::new().scheduler(Arc::new(Inline));
    let inner = builder.clone();
    let outer = builder.spawn(move || {
        let nested = inner.clone().spawn(move || {
            let innermost = inner.spawn(|| 1).unwrap();
            innermost.join().unwrap() + 1
        });
        nested.unwrap().join().unwrap() + 1
    });
    assert_eq!(outer.unwrap().join().unwrap(), 3);
}

#[watched]
fn a_scope_counts_an_abandoned_thread_once() {
    struct Dropper;
    impl Scheduler for Dropper {
        fn schedule(&self, thread: Runnable) {
            drop(thread);
        }
    }
    let builder = Builder::new().scheduler(Arc::new(Dropper));
    // Joined by hand: the scope ends well.
    thread::scope(|s| {
        let handle = builder.clone().spawn_scoped(s, || ()).unwrap();
        assert!(handle.join().is_err());
    });
    // Not joined: the scope reports the panic.
    let told = catch_unwind(AssertUnwindSafe(|| {
        thread::scope(|s| drop(builder.clone().spawn_scoped(s, || ()).unwrap()));
    }));
    assert!(told.is_err());
}

#[watched]
fn debug_names_the_platform_thread_that_carries() {
    let carrier = std::thread::Builder::new().name("weaver".into());
    let carried = carrier.spawn(|| {
        let (scheduler, receiver) = ToReceiver::new();
        let builder = Builder::new().scheduler(scheduler);
        let handle = builder
            .spawn(|| format!("{:?}", thread::current()))
            .unwrap();
        drive(&receiver, handle).unwrap()
    });
    let shown = carried.unwrap().join().unwrap();
    assert!(shown.ends_with("/running@weaver"), "{shown}");
}
