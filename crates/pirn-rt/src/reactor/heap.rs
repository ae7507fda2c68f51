//! The timers' priority queue: a 4-ary min-heap of deadlines that knows each node's place.
//!
//! ```text
//!   entries   ┌───────────┬───────────┬───────────┬───
//!             │ 10 ns, #2 │ 25 ns, #0 │ 40 ns, #1 │      children of i: 4i+1 … 4i+4
//!             └───────────┴───────────┴───────────┴───   parent of i:   (i-1)/4
//!   places    ┌───────────┬───────────┬───────────┬───
//!             │ 1         │ 2         │ 0         │      where in the heap #0, #1, #2 are
//!   nodes     ├───────────┼───────────┼───────────┼───
//!             │ node      │ node      │ node      │      which nodes they are; a node knows its number
//!             └───────────┴───────────┴───────────┴───
//! ```
//!
//! The known place makes cancelling cheap: no search is needed, and a timer with a late deadline
//! lies near the bottom and moves little. Deadlines are kept in the entries, so that sifting
//! compares without following a pointer. Four children share about one cache line and halve the
//! depth of a binary heap (10 levels for a million timers). The places are not in the nodes
//! themselves: those are on the stacks of threads that have slept for long, and each move would
//! miss caches and TLB.
//!
//! The heap takes part in no protocol: its owner holds a lock around every call.

use core::ptr::NonNull;

use crate::own_vec::{NoMemory, OwnVec};
use crate::primitives::{AtomicU32, Ordering::Relaxed};

/// Children per entry.
const ARITY: usize = 4;

/// The number of a node that is in no heap, and the end of the list of free numbers.
const ABSENT: u32 = u32::MAX;

/// A vector of at most this many entries is not worth shrinking.
const SMALL: usize = 64;

/// A timer's place in its heap, to be embedded in the thing to be woken.
///
/// Put it first in a `#[repr(C)]` struct, derive the pointer for
/// [`insert`](TimerHeap::insert) from one to the struct, and cast what
/// [`pop_due`](TimerHeap::pop_due) returns back to the struct.
#[derive(Debug)]
pub(crate) struct TimerNode {
    /// The node's number in its heap, or `ABSENT`. Accessed only under the heap's lock, so always
    /// relaxed; it is atomic only to make the struct around it `Sync`.
    number: AtomicU32,
}

impl TimerNode {
    /// Returns a node in no heap.
    pub(crate) const fn new() -> Self {
        Self {
            number: AtomicU32::new(ABSENT),
        }
    }
}

impl Default for TimerNode {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Copy)]
struct HeapEntry {
    deadline: u64,
    number: u32,
}

/// Nodes ordered by deadline, in nanoseconds of the owner's clock.
pub(crate) struct TimerHeap {
    entries: OwnVec<HeapEntry>,
    /// By number: the index of the node's entry. For a free number: the next free one.
    places: OwnVec<u32>,
    /// By number: the node.
    nodes: OwnVec<Option<NonNull<TimerNode>>>,
    /// A free number, or `ABSENT`.
    free: u32,
}

// SAFETY: the pointers in the heap are its only tie to a thread, and callers of `insert` promise
// that their nodes may be reached from the thread that has the heap.
unsafe impl Send for TimerHeap {}

impl TimerHeap {
    /// Returns an empty heap.
    pub(crate) const fn new() -> Self {
        Self {
            entries: OwnVec::new(),
            places: OwnVec::new(),
            nodes: OwnVec::new(),
            free: ABSENT,
        }
    }

    /// Adds `node`, due at `deadline`.
    ///
    /// # Errors
    ///
    /// There is no memory for another entry; the heap and the node are unchanged.
    ///
    /// # Safety
    ///
    /// `node` must be in no heap. Until [`remove`](Self::remove) or [`pop_due`](Self::pop_due)
    /// has taken it out, it must stay valid and where it is, reachable from any thread that uses
    /// the heap, and not be borrowed mutably.
    pub(crate) unsafe fn insert(
        &mut self,
        deadline: u64,
        node: NonNull<TimerNode>,
    ) -> Result<(), NoMemory> {
        // SAFETY: the caller says that the node is valid.
        debug_assert_eq!(unsafe { node.as_ref() }.number.load(Relaxed), ABSENT);
        self.entries.reserve_one()?;
        // SAFETY: our contract is the same.
        let number = unsafe { self.number(node) }?;
        let entry = HeapEntry { deadline, number };
        self.entries.push(entry);
        self.sift_up(self.entries.len() - 1, entry);
        Ok(())
    }

    /// Gives a node a number.
    ///
    /// # Safety
    /// As for [`insert`](Self::insert).
    unsafe fn number(&mut self, node: NonNull<TimerNode>) -> Result<u32, NoMemory> {
        let number = self.free;
        let number = if let Some(place) = self.places.get(number as usize) {
            self.free = *place;
            self.nodes[number as usize] = Some(node);
            number
        } else {
            self.places.reserve_one()?;
            self.nodes.reserve_one()?;
            self.places.push(ABSENT);
            self.nodes.push(Some(node));
            self.nodes.len() as u32 - 1 // there are no 2^32 threads
        };
        // SAFETY: by the contract of `insert`, nodes in the heap are valid.
        unsafe { node.as_ref() }.number.store(number, Relaxed);
        Ok(number)
    }

    /// Takes `node` out. Returns `false` if it is not in this heap.
    ///
    /// # Safety
    ///
    /// `node` must be valid, and not be borrowed mutably.
    pub(crate) unsafe fn remove(&mut self, node: NonNull<TimerNode>) -> bool {
        // SAFETY: the caller says that the node is valid.
        let number = unsafe { node.as_ref() }.number.load(Relaxed) as usize;
        let here = self.nodes.get(number) == Some(&Some(node));
        if here {
            self.take(self.places[number] as usize);
        }
        here
    }

    /// Returns the number of nodes in the heap.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no node in the heap.
    #[allow(dead_code)] // goes with `len`
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of its vectors.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes() + self.places.bytes() + self.nodes.bytes()
    }

    /// Returns the earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.entries.first().map(|entry| entry.deadline)
    }

    /// Takes out the node with the earliest deadline, if that is `now` or earlier.
    /// Nodes with the same deadline come in any order.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<NonNull<TimerNode>> {
        if self.next_deadline()? > now {
            return None;
        }
        self.take(0)
    }

    /// Takes out the entry at `index` (in bounds) and returns its node.
    fn take(&mut self, index: usize) -> Option<NonNull<TimerNode>> {
        let number = self.entries.swap_remove(index).number;
        self.places[number as usize] = self.free;
        self.free = number;
        let node = self.nodes[number as usize].take()?;
        // SAFETY: by the contract of `insert`, nodes in the heap are valid.
        unsafe { node.as_ref() }.number.store(ABSENT, Relaxed);
        if let Some(&last) = self.entries.get(index) {
            // The last entry fills the gap. It may belong above or below.
            if index > 0 && last.deadline < self.entries[(index - 1) / ARITY].deadline {
                self.sift_up(index, last);
            } else {
                self.sift_down(index, last);
            }
        }
        self.give_back_memory();
        Some(node)
    }

    /// Puts `entry` at `index`, or above it while the parent is later.
    fn sift_up(&mut self, mut index: usize, entry: HeapEntry) {
        while index > 0 {
            let parent = (index - 1) / ARITY;
            if self.entries[parent].deadline <= entry.deadline {
                break;
            }
            self.place(index, self.entries[parent]);
            index = parent;
        }
        self.place(index, entry);
    }

    /// Puts `entry` at `index`, or below it while a child is earlier.
    fn sift_down(&mut self, mut index: usize, entry: HeapEntry) {
        let len = self.entries.len();
        loop {
            let first = index * ARITY + 1;
            let children = first..len.min(first + ARITY);
            let Some(earliest) = children.min_by_key(|&child| self.entries[child].deadline) else {
                break;
            };
            if self.entries[earliest].deadline >= entry.deadline {
                break;
            }
            self.place(index, self.entries[earliest]);
            index = earliest;
        }
        self.place(index, entry);
    }

    fn place(&mut self, index: usize, entry: HeapEntry) {
        self.entries[index] = entry;
        self.places[entry.number as usize] = index as u32;
    }

    /// Halves vectors that are three quarters empty. At least a quarter of their capacity must be
    /// removed or inserted before the next change of size, so the copying is O(1) per operation.
    fn give_back_memory(&mut self) {
        let capacity = self.places.capacity();
        if capacity <= SMALL || self.entries.len() > capacity / 4 {
            return;
        }
        let room = capacity / 2;
        let (Ok(entries), Ok(places), Ok(nodes)) = (
            OwnVec::with_capacity(room),
            OwnVec::with_capacity(room),
            OwnVec::with_capacity(room),
        ) else {
            return; // This can wait.
        };
        let mut smaller = TimerHeap {
            entries,
            places,
            nodes,
            free: ABSENT,
        };
        // In the same order, with new numbers.
        for (index, entry) in self.entries.iter().enumerate() {
            let Some(node) = self.nodes[entry.number as usize] else {
                continue;
            };
            // SAFETY: in this heap, so valid by the contract of `insert`; from now on in the other.
            if let Ok(number) = unsafe { smaller.number(node) } {
                let deadline = entry.deadline;
                smaller.entries.push(HeapEntry { deadline, number });
                smaller.places[number as usize] = index as u32;
            }
        }
        *self = smaller;
    }
}

impl Default for TimerHeap {
    fn default() -> Self {
        Self::new()
    }
}
