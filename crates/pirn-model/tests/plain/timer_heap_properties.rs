//! The timer heap against a `BTreeMap` from (deadline, timer) to nothing.

use core::ptr::NonNull;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::proptest_config;
use crate::timer_heap::{TimerHeap, TimerNode};

/// The most operations, or timers, of a case. Few under Miri, as in `proptest_config`.
const MOST: usize = if cfg!(miri) { 40 } else { 300 };

/// The struct around a node.
#[repr(C)]
struct Timer {
    node: TimerNode,
    id: usize,
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64),
    /// Removes a timer that is queued, has fired or was removed.
    Remove(Index),
    PopDue(u64),
}

fn operation(deadlines: u64) -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..deadlines).prop_map(Operation::Insert),
        1 => any::<Index>().prop_map(Operation::Remove),
        1 => (0..deadlines).prop_map(Operation::PopDue),
    ]
}

/// A heap under test beside its reference, with all timers that were ever in it.
#[derive(Default)]
struct Pair {
    heap: TimerHeap,
    reference: BTreeSet<(u64, usize)>,
    /// Each with its deadline. Pointers from `Box::leak`, freed at the end.
    timers: Vec<(NonNull<Timer>, u64)>,
}

impl Pair {
    fn insert(&mut self, deadline: u64) {
        let id = self.timers.len();
        let node = TimerNode::default();
        let timer = NonNull::from(Box::leak(Box::new(Timer { node, id })));
        self.timers.push((timer, deadline));
        // SAFETY: the node is new, and stays where it is as long as the heap.
        unsafe { self.heap.insert(deadline, timer.cast()) }.unwrap();
        assert!(self.reference.insert((deadline, id)));
    }

    fn remove(&mut self, id: usize) {
        let (timer, deadline) = self.timers[id];
        // SAFETY: timers are valid as long as the heap.
        let removed = unsafe { self.heap.remove(timer.cast()) };
        assert_eq!(removed, self.reference.remove(&(deadline, id)));
    }

    /// Pops the timers that are due. Returns how many there were.
    fn pop_due(&mut self, now: u64) -> usize {
        let mut popped = 0;
        while let Some(node) = self.heap.pop_due(now) {
            // SAFETY: all nodes in the heap are the first fields of timers, which are valid.
            let id = unsafe { node.cast::<Timer>().as_ref() }.id;
            let (_, deadline) = self.timers[id];
            assert_eq!(self.reference.first().unwrap().0, deadline, "not the first");
            assert!(deadline <= now, "not due");
            assert!(self.reference.remove(&(deadline, id)));
            popped += 1;
        }
        let next = self.reference.first().map(|first| first.0);
        assert!(next.is_none_or(|next| next > now), "still due: {next:?}");
        popped
    }

    fn check_next(&self) {
        let next = self.reference.first().map(|first| first.0);
        assert_eq!(self.heap.next_deadline(), next);
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for &(timer, _) in &self.timers {
            // SAFETY: from `Box::leak` in `insert`; the heap is not used any more.
            drop(unsafe { Box::from_raw(timer.as_ptr()) });
        }
    }
}

fn run(operations: Vec<Operation>) {
    let mut pair = Pair::default();
    for operation in operations {
        match operation {
            Operation::Insert(deadline) => pair.insert(deadline),
            Operation::Remove(_) if pair.timers.is_empty() => {}
            Operation::Remove(index) => pair.remove(index.index(pair.timers.len())),
            Operation::PopDue(now) => {
                pair.pop_due(now);
            }
        }
        pair.check_next();
    }
    pair.pop_due(u64::MAX);
    pair.check_next();
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn behaves_as_a_sorted_set(operations in prop::collection::vec(operation(1 << 40), 0..MOST)) {
        run(operations);
    }

    /// Few different deadlines, so that most occur more than once.
    #[test]
    fn equal_deadlines_are_told_apart(operations in prop::collection::vec(operation(4), 0..MOST)) {
        run(operations);
    }

    #[test]
    fn all_can_be_removed_in_any_order(
        (deadlines, order) in prop::collection::vec(0..1000u64, 0..MOST).prop_flat_map(|deadlines| {
            let order = Vec::from_iter(0..deadlines.len());
            (Just(deadlines), Just(order).prop_shuffle())
        })
    ) {
        let mut pair = Pair::default();
        deadlines.into_iter().for_each(|deadline| pair.insert(deadline));
        for id in order {
            pair.remove(id);
            pair.remove(id);
            pair.check_next();
        }
        prop_assert_eq!(pair.pop_due(u64::MAX), 0);
    }
}

#[test]
fn a_node_can_be_inserted_again() {
    let node = TimerNode::new();
    let node = NonNull::from(&node);
    let mut heap = TimerHeap::new();
    for deadline in [5, u64::MAX, 0] {
        // SAFETY: the node outlives the heap's use, and is in no heap here.
        unsafe { heap.insert(deadline, node) }.unwrap();
        assert_eq!(heap.next_deadline(), Some(deadline));
        assert_eq!(heap.pop_due(deadline), Some(node));
        assert_eq!(heap.pop_due(u64::MAX), None);
    }
}

#[test]
fn a_node_is_not_removed_from_another_heap() {
    let nodes = [TimerNode::new(), TimerNode::new()];
    let [first, second] = nodes.each_ref().map(NonNull::from);
    let mut heaps = [TimerHeap::new(), TimerHeap::new()];
    // SAFETY: the nodes outlive the heaps' use, and are each in one heap.
    unsafe {
        heaps[0].insert(1, first).unwrap();
        heaps[1].insert(2, second).unwrap();
        assert!(!heaps[1].remove(first));
        assert_eq!(heaps[1].next_deadline(), Some(2));
        assert!(heaps[0].remove(first));
    }
}
