//! The local queue under real threads: an owner that pushes, pops, grows and shrinks, and stealers.

use core::ptr::NonNull;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pirn_testing::Watchdog;

use crate::local_queue::{LocalQueue, RingSlot};

const ITEMS: usize = if cfg!(miri) { 300 } else { 300_000 };
const STEALERS: usize = 3;
/// Small, so that it is often full or empty, and slots are reused soon.
const CAP: usize = 8;
/// What the queue grows to.
const MOST: usize = 128;

type Queue = LocalQueue<Item, CAP>;

/// An item counts how often it is taken. Its number is written before it is pushed, by a plain
/// store, so that a thread sanitizer sees a missing edge.
struct Item {
    number: usize,
    taken: AtomicUsize,
}

/// Records items in the order in which one thread gets them.
#[derive(Default)]
struct Taker {
    count: usize,
    last: Option<usize>,
}

impl Taker {
    fn take(&mut self, item: NonNull<Item>) {
        // SAFETY: `run` frees the items after all threads have ended.
        let item = unsafe { item.as_ref() };
        item.taken.fetch_add(1, Ordering::Relaxed);
        assert!(self.last < Some(item.number), "out of order");
        self.last = Some(item.number);
        self.count += 1;
    }
}

/// Pushes all items, pops one now and then, and most of them when the queue is full.
fn own(queue: &Queue) -> (Taker, Vec<NonNull<Item>>) {
    let mut taker = Taker::default();
    let mut all = Vec::with_capacity(ITEMS);
    for number in 0..ITEMS {
        let taken = AtomicUsize::new(0);
        let item = NonNull::from(Box::leak(Box::new(Item { number, taken })));
        all.push(item);
        // SAFETY: this thread alone owns `queue`.
        unsafe {
            while queue.push_back(item, 0).is_err() {
                while queue.len() > CAP / 2 {
                    queue.pop().into_iter().for_each(|item| taker.take(item));
                }
                queue.shrink();
            }
            if number % 3 == 0 {
                queue.pop().into_iter().for_each(|item| taker.take(item));
            }
        }
    }
    (taker, all)
}

/// Steals, and pops what it stole, until no more items can come.
fn steal(victim: &Queue, done: &AtomicBool) -> Taker {
    let queue = Queue::new();
    let mut taker = Taker::default();
    loop {
        // Read before the steal: if the owner is done and the queue is empty then, it stays empty.
        let last_look = done.load(Ordering::Acquire);
        // SAFETY: `queue` is this thread's own.
        let stolen = unsafe { victim.steal_into(&queue) };
        if stolen.is_none() && last_look {
            return taker;
        }
        stolen.into_iter().for_each(|item| taker.take(item));
        // SAFETY: `queue` is this thread's own.
        while let Some(item) = unsafe { queue.pop() } {
            taker.take(item);
        }
        if stolen.is_none() {
            thread::yield_now();
        }
    }
}

fn run() {
    let slots = (0..2 * MOST).map(|_| RingSlot::new());
    let queue = Queue::with_slots(slots.collect());
    let done = AtomicBool::new(false);
    let start = Barrier::new(STEALERS + 1);
    let (taken, items) = thread::scope(|scope| {
        let stealer = || {
            start.wait();
            steal(&queue, &done).count
        };
        let stealers: Vec<_> = (0..STEALERS).map(|_| scope.spawn(stealer)).collect();
        start.wait();
        let (owner, items) = own(&queue);
        done.store(true, Ordering::Release);
        let stolen: usize = stealers.into_iter().map(|s| s.join().unwrap()).sum();
        (owner.count + stolen, items)
    });
    assert_eq!(taken, ITEMS);
    for item in items {
        // SAFETY: from `Box::leak` in `own`, and all threads that took items have ended.
        let item = unsafe { Box::from_raw(item.as_ptr()) };
        assert_eq!(item.taken.into_inner(), 1, "item {}", item.number);
    }
}

#[test]
fn every_item_is_taken_once_and_in_order() {
    let _watchdog = Watchdog::start(Duration::from_secs(100), || {
        eprintln!("local_queue_stress hangs: a stealer or the owner does not get on");
    });
    run();
}
