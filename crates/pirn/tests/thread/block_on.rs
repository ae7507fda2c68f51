//! `block_on`: a thread runs a future, and parks while it is pending.

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::child::isolated;
use crate::common::{crowd, on_virtual, virtual_crowd, watched};
use pirn::thread::{self, Interrupted};
use pirn::{block_on, block_on_interruptible};

/// A channel for one value, as in async code.
struct Oneshot<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Oneshot<T> {
    fn new() -> Oneshot<T> {
        Oneshot(Arc::new(Mutex::new((None, None))))
    }

    fn send(&self, value: T) {
        let waker = {
            let mut state = self.0.lock().unwrap();
            state.0 = Some(value);
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns whether an executor has polled it and waits.
    fn is_awaited(&self) -> bool {
        self.0.lock().unwrap().1.is_some()
    }
}

impl<T> Clone for Oneshot<T> {
    fn clone(&self) -> Oneshot<T> {
        Oneshot(Arc::clone(&self.0))
    }
}

impl<T> Future for Oneshot<T> {
    type Output = T;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.lock().unwrap();
        match state.0.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Returns a future that wakes itself, `rounds` times.
fn rewoken(rounds: usize) -> impl Future<Output = usize> {
    let mut polls = 0;
    poll_fn(move |context| {
        polls += 1;
        if polls > rounds {
            return Poll::Ready(polls);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Sets a flag when it is dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[watched]
fn ready_and_self_waking_futures() {
    crowd(|i| {
        assert_eq!(block_on(ready(i)), i);
        assert_eq!(block_on(rewoken(100)), 101);
        assert_eq!(block_on_interruptible(rewoken(3)), Ok(4));
    });
}

#[watched]
fn a_wake_may_come_from_every_kind_of_thread() {
    fn send_to_waiting(sender: &Oneshot<i32>) {
        while !sender.is_awaited() {
            thread::yield_now();
        }
        sender.send(7);
    }
    let exchange = || {
        let oneshot = Oneshot::new();
        let sender = oneshot.clone();
        let waking = thread::spawn(move || send_to_waiting(&sender));
        assert_eq!(block_on(oneshot), 7);
        waking.join().unwrap();

        let oneshot = Oneshot::new();
        let sender = oneshot.clone();
        let waking = std::thread::spawn(move || send_to_waiting(&sender));
        assert_eq!(block_on(oneshot), 7);
        waking.join().unwrap();
    };
    exchange();
    on_virtual(exchange);
}

/// Each wake is one of many that come together; the last one must not be lost.
#[watched]
fn many_wakers_from_many_threads() {
    const WAKERS: usize = 8;
    const ROUNDS: usize = 200;
    let race = || {
        let (wakers, inbox): (Vec<_>, Vec<_>) = (0..WAKERS).map(|_| mpsc::channel()).unzip();
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (i, inbox) in inbox.into_iter().enumerate() {
                let count = &count;
                let work = move || {
                    for waker in inbox {
                        let waker: Waker = waker;
                        count.fetch_add(1, SeqCst);
                        waker.wake_by_ref();
                        waker.wake();
                    }
                };
                if i % 2 == 0 {
                    scope.spawn(work);
                } else {
                    scope.spawn(move || thread::scope(|virtually| drop(virtually.spawn(work))));
                }
            }
            for round in 1..=ROUNDS {
                let mut begun = false;
                block_on(poll_fn(|context| {
                    if !std::mem::replace(&mut begun, true) {
                        for sender in &wakers {
                            sender.send(context.waker().clone()).unwrap();
                        }
                    }
                    match count.load(SeqCst) == round * WAKERS {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                }));
            }
            drop(wakers);
        });
    };
    race();
    on_virtual(race);
}

#[watched]
fn ten_thousand_threads_await_a_oneshot_each() {
    const THREADS: usize = 10_000;
    let oneshots: Vec<_> = (0..THREADS).map(|_| Oneshot::new()).collect();
    let waiting: Vec<_> = oneshots
        .iter()
        .map(|oneshot| {
            let oneshot = oneshot.clone();
            thread::spawn(|| block_on(oneshot))
        })
        .collect();
    for oneshot in &oneshots {
        while !oneshot.is_awaited() {
            thread::yield_now();
        }
    }
    for (i, oneshot) in oneshots.iter().enumerate() {
        oneshot.send(i);
    }
    for (i, handle) in waiting.into_iter().enumerate() {
        assert_eq!(handle.join().unwrap(), i);
    }
}

#[watched]
fn calls_nest() {
    crowd(|i| {
        let outer = async {
            rewoken(2).await;
            let inner = block_on(async { rewoken(3).await + block_on(rewoken(1)) });
            rewoken(2).await;
            inner + i
        };
        assert_eq!(block_on(outer), 6 + i);
    });
}

/// An inner call must not use up the outer one's wake.
#[watched]
fn a_nested_call_leaves_the_outer_wake_alone() {
    on_virtual(|| {
        let mut polls = 0;
        block_on(poll_fn(|context| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            block_on(thread::spawn(thread::yield_now)).unwrap();
            Poll::Pending
        }));
    });
}

#[watched]
fn the_park_permit_is_neither_taken_nor_given() {
    let body = || {
        // Not taken: the permit is still there afterwards.
        thread::current().unpark();
        let oneshot = Oneshot::new();
        let sender = oneshot.clone();
        let waking = thread::spawn(move || {
            while !sender.is_awaited() {
                thread::yield_now();
            }
            sender.send(());
        });
        block_on(oneshot);
        thread::park();
        waking.join().unwrap();
        // Not given: this one ends at its timeout.
        block_on(rewoken(10));
        let limit = Duration::from_millis(20);
        let start = std::time::Instant::now();
        thread::park_timeout(limit);
        assert!(start.elapsed() >= limit);
    };
    on_virtual(body);
}

#[watched]
fn an_interrupt_ends_the_wait_and_drops_the_future() {
    let body = || {
        let (sender, started) = mpsc::channel();
        let waiting = move || {
            let dropped = Arc::new(AtomicBool::new(false));
            let guard = OnDrop(Arc::clone(&dropped));
            let polled = Cell::new(false);
            let never = async {
                let _guard = guard;
                poll_fn(|_| {
                    if !polled.replace(true) {
                        sender.send(thread::current()).unwrap();
                    }
                    Poll::<()>::Pending
                })
                .await;
            };
            assert_eq!(block_on_interruptible(never), Err(Interrupted));
            assert!(dropped.load(SeqCst));
            assert!(thread::take_interrupt(), "the flag is still set");
        };
        (waiting, started)
    };
    let (waiting, started) = body();
    let handle = thread::spawn(waiting);
    started.recv().unwrap().interrupt();
    handle.join().unwrap();

    let (waiting, started) = body();
    let handle = std::thread::spawn(waiting);
    started.recv().unwrap().interrupt();
    handle.join().unwrap();
}

#[watched]
fn an_interrupted_thread_takes_what_is_ready() {
    virtual_crowd(|i| {
        thread::current().interrupt();
        assert_eq!(block_on_interruptible(ready(i)), Ok(i));
        assert_eq!(block_on_interruptible(pending::<()>()), Err(Interrupted));
        // A wake is there, so it does not wait.
        assert_eq!(block_on_interruptible(rewoken(5)), Ok(6));
        assert!(thread::take_interrupt());
        assert_eq!(block_on_interruptible(rewoken(5)), Ok(6));
    });
}

/// It also does not spin meanwhile: the polls are counted.
#[watched]
fn block_on_hears_no_interrupt() {
    let oneshot = Oneshot::new();
    let mut inner = oneshot.clone();
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let waiting = thread::spawn(move || {
        thread::current().interrupt();
        block_on(poll_fn(|context| {
            counted.fetch_add(1, SeqCst);
            Pin::new(&mut inner).poll(context)
        }))
    });
    while !oneshot.is_awaited() {
        thread::yield_now();
    }
    for _ in 0..100 {
        waiting.thread().interrupt();
        thread::yield_now();
    }
    oneshot.send("weft");
    assert_eq!(waiting.join().unwrap(), "weft");
    assert_eq!(polls.load(SeqCst), 2);
}

#[watched]
fn a_panic_in_a_poll_goes_through() {
    let panics = || {
        let dropped = Arc::new(AtomicBool::new(false));
        let guard = OnDrop(Arc::clone(&dropped));
        let future = async move {
            let _guard = guard;
            rewoken(1).await;
            resume_unwind(Box::new("torn"));
        };
        let caught = catch_unwind(AssertUnwindSafe(|| block_on(future)));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"torn"));
        assert!(dropped.load(SeqCst));
        assert_eq!(block_on(rewoken(1)), 2);
    };
    panics();
    on_virtual(panics);
}

#[watched]
fn wakers_outlive_the_call() {
    crowd(|_| {
        let mut late = None;
        block_on(poll_fn(|context| {
            late = Some(context.waker().clone());
            Poll::Ready(())
        }));
        let late = late.unwrap();
        late.wake_by_ref();
        let waking = thread::spawn(move || late.wake());
        assert_eq!(block_on(rewoken(1)), 2);
        waking.join().unwrap();
    });
}

/// The waker is the same in each poll, and nothing is allocated for it.
#[watched]
fn polls_have_one_waker() {
    let mut first: Option<Waker> = None;
    let mut polls = 0;
    block_on(poll_fn(|context| {
        let waker = context.waker();
        assert!(first.get_or_insert_with(|| waker.clone()).will_wake(waker));
        polls += 1;
        waker.wake_by_ref();
        match polls {
            100 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }));
}

/// On one carrier: a future that asks to be polled again lets the thread run that it waits for.
#[watched]
fn a_future_that_wakes_itself_gives_way() {
    // Without spare carriers, which would run when a thread keeps its own.
    let one = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];
    isolated(&one, || {
        on_virtual(|| {
            let flag = Arc::new(AtomicBool::new(false));
            let set = Arc::clone(&flag);
            let setting = thread::spawn(move || set.store(true, SeqCst));
            block_on(poll_fn(|context| match flag.load(SeqCst) {
                true => Poll::Ready(()),
                false => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            }));
            setting.join().unwrap();
        });
    });
}
