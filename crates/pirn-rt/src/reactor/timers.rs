//! The timers of a runtime: heaps of deadlines, and which carrier wakes for them.
//!
//! There is one heap per regular processor, so that arming a timer takes an uncontended lock. A
//! timer is armed in the shard of the processor its thread runs on. The first carrier that looks
//! fires it; if all awake carriers are busy, the monitor wakes one. Nearly all timers of I/O
//! timeouts are cancelled, which costs a lock and, since late deadlines lie at the bottom of the
//! heap, few moves. What a timer does when it fires is in `blocking/timer.rs`.

use super::attendance::{Attendance, First};
use super::heap::{TimerHeap, TimerNode};
use crate::lock::Lock;
use crate::own_vec::NoMemory;
use crate::sys;
use crate::time::Deadline;
use core::ptr::NonNull;

/// See the module's documentation.
pub struct Timers {
    shards: Box<[Shard]>,
    /// Which carrier wakes for them.
    attendance: Attendance,
}

/// The timers that were armed on one processor.
pub(crate) struct Shard {
    heap: Lock<TimerHeap>,
    /// Deadline of the first timer, readable without the lock.
    first: First,
}

impl Shard {
    fn new() -> Shard {
        Shard {
            heap: Lock::new(TimerHeap::new()),
            first: First::new(),
        }
    }

    /// Updates `first`. Under the heap's lock.
    fn publish(&self, heap: &TimerHeap) {
        let next = heap.next_deadline();
        self.first
            .publish(next.map_or(Deadline::NEVER, Deadline::from_nanos));
    }

    /// Adds a timer.
    ///
    /// # Safety
    /// The node stays in its place until [`take_due`](Self::take_due) has passed it on, or
    /// [`remove`](Self::remove) has returned.
    pub(crate) unsafe fn insert(
        &self,
        deadline: Deadline,
        node: NonNull<TimerNode>,
    ) -> Result<(), NoMemory> {
        let mut heap = self.heap.lock();
        // SAFETY: the caller's contract.
        unsafe { heap.insert(deadline.nanos(), node) }?;
        self.publish(&heap);
        Ok(())
    }

    /// Removes a timer. Returns whether it was there.
    ///
    /// # Safety
    /// The node is in this heap, or in none.
    pub(crate) unsafe fn remove(&self, node: NonNull<TimerNode>) -> bool {
        let mut heap = self.heap.lock();
        // SAFETY: the caller's contract.
        let removed = unsafe { heap.remove(node) };
        if removed {
            self.publish(&heap);
        }
        removed
    }

    /// Returns the time if a timer is due.
    pub(crate) fn due(&self) -> Option<u64> {
        let first = self.first.get();
        if first.is_never() {
            return None;
        }
        let now = sys::now();
        (first.nanos() <= now).then_some(now)
    }

    /// Removes timers that are due at the time `now`, and passes each to `expire`, under the heap's
    /// lock, until that returns `false`.
    pub(crate) fn take_due(&self, now: u64, mut expire: impl FnMut(NonNull<TimerNode>) -> bool) {
        let mut heap = self.heap.lock();
        while let Some(node) = heap.pop_due(now)
            && expire(node)
        {}
        self.publish(&heap);
    }
}

impl Timers {
    /// Makes the timers of `processors` regular processors.
    pub(crate) fn new(processors: usize) -> Timers {
        Timers {
            shards: (0..processors).map(|_| Shard::new()).collect(),
            attendance: Attendance::new(),
        }
    }

    /// Returns the shard of the processor with this index; spare processors share the first.
    pub(crate) fn shard(&self, processor: usize) -> &Shard {
        self.shards.get(processor).unwrap_or(&self.shards[0])
    }

    /// Returns all shards.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Returns the number of armed timers, and the bytes of the heaps.
    pub fn stats(&self) -> (usize, usize) {
        let shards = self.shards.iter().map(|shard| {
            let heap = shard.heap.lock();
            (heap.len(), heap.bytes())
        });
        shards.fold((0, 0), |sum, shard| (sum.0 + shard.0, sum.1 + shard.1))
    }

    /// Returns the earliest deadline of all.
    pub fn next_deadline(&self) -> Deadline {
        let firsts = self.shards.iter().map(|shard| shard.first.get());
        firsts.min().unwrap_or(Deadline::NEVER)
    }

    /// Makes the calling carrier, which is about to sleep, wake for timers and for what `others`
    /// says is due. Returns when it should wake: never, if another carrier does so already, or
    /// there is neither.
    pub(crate) fn begin_sleep(&self, others: impl Fn() -> Deadline) -> Deadline {
        self.attendance.begin(|| self.next_deadline().min(others()))
    }

    /// Notes that the carrier that was to sleep until `deadline` is awake.
    pub(crate) fn end_sleep(&self, deadline: Deadline) {
        if !deadline.is_never() {
            self.attendance.end(deadline);
        }
    }

    /// Returns whether there is a timer that is more than `slack` late.
    pub(crate) fn overdue(&self, slack: u64) -> bool {
        let latest = self.next_deadline().nanos().saturating_add(slack);
        latest != u64::MAX && latest < sys::now()
    }

    /// Returns whether there is a timer, or something that `others` says is due, that no sleeping
    /// carrier will wake for.
    pub(crate) fn unattended(&self, others: impl Fn() -> Deadline) -> bool {
        self.misses(|| self.next_deadline().min(others()))
    }

    /// Returns whether no sleeping carrier will wake by the `first` deadline.
    pub(crate) fn misses(&self, first: impl FnOnce() -> Deadline) -> bool {
        self.attendance.misses(first)
    }
}
