//! The local queue against a `VecDeque`, operation by operation, in one thread.

use core::ptr::NonNull;
use std::collections::VecDeque;

use proptest::prelude::*;

use crate::local_queue::{LocalQueue, RingSlot};
use crate::proptest_config;

const CAP: usize = 8;
/// What the queue grows to.
const MOST: usize = 32;

/// An operation on queue `0` or `1`.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Push(usize),
    Pop(usize),
    Shrink(usize),
    /// Steals from the other queue into this one.
    Steal(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let queue = 0..2usize;
    prop_oneof![
        6 => queue.clone().prop_map(Operation::Push),
        2 => queue.clone().prop_map(Operation::Pop),
        1 => queue.clone().prop_map(Operation::Shrink),
        1 => queue.prop_map(Operation::Steal),
    ]
}

/// A queue under test beside its reference. Items are boxed, so that a sanitizer sees an item that
/// is lost or taken twice.
struct Pair {
    queue: LocalQueue<u32, CAP>,
    reference: VecDeque<u32>,
    /// The size of the ring.
    size: usize,
}

fn slots(most: usize) -> Box<[RingSlot<u32>]> {
    (0..2 * most).map(|_| RingSlot::new()).collect()
}

impl Pair {
    fn new() -> Pair {
        Pair {
            queue: LocalQueue::with_slots(slots(MOST)),
            reference: VecDeque::new(),
            size: CAP,
        }
    }

    fn push(&mut self, value: u32) {
        let item = NonNull::from(Box::leak(Box::new(value)));
        // SAFETY: `&mut self`: no other code uses the queue, so this is its owner.
        match unsafe { self.queue.push_back(item, value as usize + 1) } {
            Ok(len) => {
                self.reference.push_back(value);
                assert_eq!(len, self.reference.len());
            }
            Err(same) => {
                assert_eq!(same, item);
                assert_eq!(self.reference.len(), MOST, "not full");
                open(same);
            }
        }
        if self.reference.len() > self.size {
            self.size *= 4;
        }
        assert!(self.reference.len() <= MOST);
    }

    fn pop(&mut self) {
        // SAFETY: as in `push`.
        let popped = unsafe { self.queue.pop() }.map(open);
        assert_eq!(popped, self.reference.pop_front());
    }

    fn shrink(&mut self) {
        // SAFETY: as in `push`.
        unsafe { self.queue.shrink() };
        if self.reference.len() <= CAP / 2 {
            self.size = CAP;
        }
    }

    fn steal_from(&mut self, victim: &mut Self) {
        let room = self.size - self.reference.len();
        let n = victim.reference.len().div_ceil(2).min(room + 1);
        // SAFETY: as in `push`.
        let stolen = unsafe { victim.queue.steal_into(&self.queue) }.map(open);
        let mut expected = victim.reference.drain(..n);
        assert_eq!(stolen, expected.next());
        self.reference.extend(expected);
    }

    fn check_length(&self) {
        assert_eq!(self.queue.len(), self.reference.len());
        assert_eq!(self.queue.room(), MOST - self.reference.len());
        assert_eq!(self.queue.is_empty(), self.reference.is_empty());
    }

    /// Each item is seen ahead with its note, wherever it has moved meanwhile.
    fn check_view_ahead(&self) {
        for (n, &value) in self.reference.iter().enumerate() {
            let (item, note) = self.queue.next_but(n as u32).expect("an item");
            // SAFETY: it is in the queue, which no other code uses.
            assert_eq!((unsafe { *item }, note), (value, value as usize + 1));
        }
        assert!(self.queue.next_but(self.reference.len() as u32).is_none());
    }
}

/// Takes an item out of its box.
fn open(item: NonNull<u32>) -> u32 {
    // SAFETY: all items come from `Box::leak` in `push`, and queues hand each out once.
    *unsafe { Box::from_raw(item.as_ptr()) }
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn behaves_as_a_bounded_deque(operations in prop::collection::vec(operation(), 0..200)) {
        let mut pairs = [Pair::new(), Pair::new()];
        for (value, operation) in operations.into_iter().enumerate() {
            let [first, second] = &mut pairs;
            match operation {
                Operation::Push(queue) => pairs[queue].push(value as u32),
                Operation::Pop(queue) => pairs[queue].pop(),
                Operation::Shrink(queue) => pairs[queue].shrink(),
                Operation::Steal(0) => first.steal_from(second),
                Operation::Steal(_) => second.steal_from(first),
            }
            pairs.iter().for_each(Pair::check_length);
            pairs.iter().for_each(Pair::check_view_ahead);
        }
        for pair in &mut pairs {
            while !pair.reference.is_empty() {
                pair.pop();
            }
            pair.pop();
        }
    }
}

#[test]
fn holds_as_many_as_it_says() {
    let queue = LocalQueue::<u32>::new();
    let item = NonNull::from(&7);
    for _ in 0..256 {
        // SAFETY: this test is the owner.
        unsafe { queue.push_back(item, 0) }.unwrap();
    }
    assert_eq!(queue.len(), 256);
    // SAFETY: this test is the owner.
    assert_eq!(unsafe { queue.push_back(item, 0) }, Err(item));
}

#[test]
fn a_thief_takes_no_more_than_128() {
    let [queue, dest] = [(); 2].map(|()| LocalQueue::<u32>::with_slots(slots(1024)));
    let item = NonNull::from(&7);
    for _ in 0..1024 {
        // SAFETY: this test is the owner.
        unsafe { queue.push_back(item, 0) }.unwrap();
    }
    // SAFETY: this test is the owner.
    assert_eq!(unsafe { queue.steal_into(&dest) }, Some(item));
    assert_eq!((queue.len(), dest.len()), (1024 - 128, 127));
}
