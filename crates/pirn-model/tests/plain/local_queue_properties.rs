//! The local queue against a `VecDeque`, operation by operation, in one thread.

use core::ptr::NonNull;
use std::collections::VecDeque;

use proptest::prelude::*;

use crate::local_queue::LocalQueue;
use crate::proptest_config;

const CAP: usize = 8;

/// An operation on queue `0` or `1`.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Push(usize),
    Pop(usize),
    TakeHalf(usize),
    /// Steals from the other queue into this one.
    Steal(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let queue = 0..2usize;
    prop_oneof![
        4 => queue.clone().prop_map(Operation::Push),
        2 => queue.clone().prop_map(Operation::Pop),
        1 => queue.clone().prop_map(Operation::TakeHalf),
        1 => queue.prop_map(Operation::Steal),
    ]
}

/// A queue under test beside its reference. Items are boxed, so that a sanitizer sees an item that
/// is lost or taken twice.
#[derive(Default)]
struct Pair {
    queue: LocalQueue<u32, CAP>,
    reference: VecDeque<u32>,
}

impl Pair {
    fn push(&mut self, value: u32) {
        let item = NonNull::from(Box::leak(Box::new(value)));
        // SAFETY: `&mut self`: nobody else uses the queue, so this is its owner.
        match unsafe { self.queue.push_back(item) } {
            Ok(()) => self.reference.push_back(value),
            Err(same) => {
                assert_eq!(same, item);
                assert_eq!(self.reference.len(), CAP, "not full");
                open(same);
            }
        }
        assert!(self.reference.len() <= CAP);
    }

    fn pop(&mut self) {
        // SAFETY: as in `push`.
        let popped = unsafe { self.queue.pop() }.map(open);
        assert_eq!(popped, self.reference.pop_front());
    }

    fn take_half(&mut self) {
        let n = self.reference.len().div_ceil(2);
        let mut taken = Vec::new();
        // SAFETY: as in `push`, and the closure leaves the queue alone.
        let count = unsafe { self.queue.take_half(|item| taken.push(open(item))) };
        assert_eq!(count, n);
        assert!(self.reference.drain(..n).eq(taken));
    }

    fn steal_from(&mut self, victim: &mut Self) {
        let room = CAP - self.reference.len();
        let n = victim.reference.len().div_ceil(2).min(room + 1);
        // SAFETY: as in `push`.
        let stolen = unsafe { victim.queue.steal_into(&self.queue) }.map(open);
        let mut expected = victim.reference.drain(..n);
        assert_eq!(stolen, expected.next());
        self.reference.extend(expected);
    }

    fn check_length(&self) {
        assert_eq!(self.queue.len(), self.reference.len());
        assert_eq!(self.queue.is_empty(), self.reference.is_empty());
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
        let mut pairs = [Pair::default(), Pair::default()];
        for (value, operation) in operations.into_iter().enumerate() {
            let [first, second] = &mut pairs;
            match operation {
                Operation::Push(queue) => pairs[queue].push(value as u32),
                Operation::Pop(queue) => pairs[queue].pop(),
                Operation::TakeHalf(queue) => pairs[queue].take_half(),
                Operation::Steal(0) => first.steal_from(second),
                Operation::Steal(_) => second.steal_from(first),
            }
            pairs.iter().for_each(Pair::check_length);
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
        unsafe { queue.push_back(item) }.unwrap();
    }
    assert_eq!(queue.len(), 256);
    // SAFETY: as above.
    assert_eq!(unsafe { queue.push_back(item) }, Err(item));
}
