//! The timer heap's memory: it is given back, and a lack of memory breaks nothing.
//!
//! The test has an allocator of its own, which counts and can be told to fail. Both are per thread,
//! so that the tests do not affect each other.

#[path = "common/glibc.rs"]
mod glibc;
#[path = "../../pirn-rt/src/own_vec.rs"]
mod own_vec;
#[path = "../../pirn-rt/src/primitives.rs"]
#[allow(dead_code, unused_imports)] // The runtime uses more of them than the timer heap does.
mod primitives;
#[path = "../../pirn-rt/src/reactor/heap.rs"]
mod timer_heap;

use core::ptr::{self, NonNull};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use timer_heap::{TimerHeap, TimerNode};

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

struct CountingAllocator;

// SAFETY: it is the system's allocator, or returns null, as an allocator may. `realloc` is the
// default, in terms of these.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if EXHAUSTED.get() {
            return ptr::null_mut();
        }
        ALLOCATED.set(ALLOCATED.get().wrapping_add(layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.set(ALLOCATED.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Returns the bytes that this thread has allocated and not freed.
fn allocated() -> usize {
    ALLOCATED.get()
}

/// Calls `f` while there is no memory for this thread.
fn exhausted<R>(f: impl FnOnce() -> R) -> R {
    EXHAUSTED.set(true);
    let result = f();
    EXHAUSTED.set(false);
    result
}

/// The memory that may stay: it is not worth giving back for so few timers, each of which has an
/// entry, a place and a node.
const SMALL: usize = 64 * (16 + 4 + 8);

const MANY: usize = if cfg!(miri) { 1000 } else { 1_000_000 };

/// Returns deadlines in no order.
fn deadline(i: usize) -> u64 {
    (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn nodes(n: usize) -> Vec<TimerNode> {
    (0..n).map(|_| TimerNode::new()).collect()
}

/// Returns a heap that contains `nodes`.
fn filled(nodes: &[TimerNode]) -> TimerHeap {
    let mut heap = TimerHeap::new();
    for (i, node) in nodes.iter().enumerate() {
        // SAFETY: each test has its nodes longer than its heap, and inserts them once.
        unsafe { heap.insert(deadline(i), NonNull::from(node)) }.unwrap();
    }
    heap
}

/// Cancels the timers of `nodes`.
fn remove_all(heap: &mut TimerHeap, nodes: &[TimerNode]) {
    for node in nodes {
        // SAFETY: the nodes are valid.
        assert!(unsafe { heap.remove(NonNull::from(node)) });
    }
}

#[test]
fn memory_is_given_back_on_removal() {
    let nodes = nodes(MANY);
    let before = allocated();
    let mut heap = filled(&nodes);
    let full = allocated() - before;
    assert!(full >= MANY * 16);
    remove_all(&mut heap, &nodes[..MANY * 9 / 10]);
    assert!(allocated() - before <= full / 2);
    remove_all(&mut heap, &nodes[MANY * 9 / 10..]);
    assert!(allocated() - before <= SMALL);
}

#[test]
fn memory_is_given_back_on_expiry() {
    let nodes = nodes(MANY);
    let before = allocated();
    let mut heap = filled(&nodes);
    let mut last = 0;
    for _ in 0..MANY {
        let next = heap.next_deadline().unwrap();
        assert!(next >= last, "out of order");
        assert!(heap.pop_due(next).is_some());
        last = next;
    }
    assert_eq!(heap.next_deadline(), None);
    assert!(allocated() - before <= SMALL);
}

#[test]
fn insert_without_memory_is_an_error() {
    let nodes = nodes(1000);
    let mut heap = TimerHeap::new();
    let mut refused = 0;
    for (i, node) in nodes.iter().enumerate() {
        let node = NonNull::from(node);
        // SAFETY: the nodes outlive the heap, and a refused one is not in it.
        if exhausted(|| unsafe { heap.insert(deadline(i), node) }).is_err() {
            refused += 1;
            // SAFETY: the nodes outlive the heap, and a refused one is not in it.
            unsafe {
                assert!(!heap.remove(node), "in the heap nevertheless");
                heap.insert(deadline(i), node).unwrap();
            }
        }
    }
    assert!((1..100).contains(&refused), "{refused} of 1000 refused");
    remove_all(&mut heap, &nodes);
}

#[test]
fn removal_needs_no_memory() {
    let nodes = nodes(1000);
    let before = allocated();
    let mut heap = filled(&nodes);
    let full = allocated();
    exhausted(|| remove_all(&mut heap, &nodes[..999]));
    assert_eq!(allocated(), full, "nothing could be given back");
    remove_all(&mut heap, &nodes[999..]);
    assert!(allocated() - before < full - before, "made up for later");
}
