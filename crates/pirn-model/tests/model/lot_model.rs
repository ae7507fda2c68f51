//! The count of a bucket of the parking lot: a wake leaves no thread asleep that has not seen the
//! word.

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, Release},
};
use loom::thread;

use crate::check;
use crate::lock::Lock;
use crate::lot_count;

struct World {
    word: AtomicU32,
    count: AtomicU32,
    /// The number of threads in the queue.
    queue: Lock<usize>,
}

impl World {
    /// Waits for as long as the word is 0.
    fn park(&self) {
        let mut queue = self.queue.lock();
        lot_count::join(&self.count);
        if self.word.load(Relaxed) == 0 {
            *queue += 1;
        } else {
            lot_count::leave(&self.count, 1);
        }
    }

    /// Wakes up to `most` threads, after a plain store to the word.
    fn store_and_wake(&self, most: usize) {
        self.word.store(1, Relaxed);
        self.wake_if(lot_count::any(&self.count), most);
    }

    /// Wakes a thread after libc's unlock.
    fn unlock_and_wake(&self) {
        self.word.swap(1, Release);
        self.wake_if(lot_count::any_after_unlock(&self.count), 1);
    }

    fn wake_if(&self, any: bool, most: usize) {
        if any {
            let mut queue = self.queue.lock();
            let woken = lot_count::bound(&self.count, most).min(*queue);
            *queue -= woken;
            lot_count::leave(&self.count, woken as u32);
        }
    }
}

/// Lets threads arrive while another wakes all, with some that have arrived before.
fn wake_of_all(before: usize, arriving: usize) {
    check(3, move || {
        let world = Arc::new(World {
            word: AtomicU32::new(0),
            count: AtomicU32::new(0),
            queue: Lock::new(0),
        });
        (0..before).for_each(|_| world.park());
        let arriving: Vec<_> = (0..arriving)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || world.park())
            })
            .collect();
        world.store_and_wake(usize::MAX);
        for thread in arriving {
            thread.join().unwrap();
        }
        assert_eq!(*world.queue.lock(), 0, "asleep for ever");
        assert_eq!(world.count.load(Relaxed), 0);
    });
}

#[test]
fn a_wake_misses_nobody_who_arrives_first() {
    wake_of_all(0, 1);
    wake_of_all(0, 2);
}

#[test]
fn a_wake_of_all_wakes_who_arrives_beside_others() {
    wake_of_all(1, 1);
    wake_of_all(1, 2);
}

#[test]
fn an_unlock_of_libcs_misses_nobody_who_arrives_first() {
    check(3, || {
        let world = Arc::new(World {
            word: AtomicU32::new(0),
            count: AtomicU32::new(0),
            queue: Lock::new(0),
        });
        let waiter = {
            let world = world.clone();
            thread::spawn(move || world.park())
        };
        world.unlock_and_wake();
        waiter.join().unwrap();
        assert_eq!(*world.queue.lock(), 0, "asleep for ever");
    });
}
