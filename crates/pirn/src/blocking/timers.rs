//! Timers: wakes at points in time.
//!
//! One heap per regular processor, so that arming a timer takes a lock nobody else wants. A timer
//! is armed in the shard of the processor its thread runs on and fired by whichever carrier looks
//! first, or, should all that are awake be busy, by one that the monitor wakes. A timer lives on
//! the stack of the thread that waits; nearly all timers of I/O timeouts are cancelled, which costs
//! a lock and, since late deadlines lie at the bottom of the heap, few moves.

use super::attendance::{Attendance, First};
use super::timer_heap::{TimerHeap, TimerNode};
use super::wait::{Outcome, Wait, WakeList, Wakeup};
use crate::lock::Lock;
use crate::mark::Raised;
use crate::runtime::Runtime;
use crate::sys;
use crate::time::Deadline;
use crate::vthread::{self, Core, Ready};
use core::cell::Cell;
use core::ptr::NonNull;

/// The timers of a runtime.
pub(crate) struct Timers {
    shards: Box<[Shard]>,
    /// Which carrier wakes for them.
    attendance: Attendance,
}

struct Shard {
    heap: Lock<TimerHeap>,
    /// Deadline of the first timer, readable without the lock.
    first: First,
}

/// Lists of wakes fired in one go. If a hundred thousand timers are due at once, the first threads
/// are to run before the last timers are fired, while they are still in the processor's cache.
const FIRE_AT_ONCE: usize = 4;

/// What a timer does.
enum Target {
    /// Claims the episode as timed out.
    Wait(NonNull<Wait>),
    /// Ends a `park` without a permit.
    Permit(NonNull<Core>),
    /// Runs a thread that has not started.
    Start(Cell<Option<Ready>>),
}

/// A timer of the running thread's, on its stack.
#[repr(C)]
pub(crate) struct Timer {
    node: TimerNode,
    target: Target,
    /// The shard it was last armed in.
    shard: Cell<Option<&'static Shard>>,
}

impl Timer {
    fn new(target: Target) -> Timer {
        Timer {
            node: TimerNode::new(),
            target,
            shard: Cell::new(None),
        }
    }

    /// One that claims `wait` as timed out.
    pub(crate) fn for_wait(wait: &Wait) -> Timer {
        Timer::new(Target::Wait(NonNull::from(wait)))
    }

    /// One that ends a `park` of `core` without a permit.
    pub(crate) fn for_permit(core: &Core) -> Timer {
        Timer::new(Target::Permit(NonNull::from(core)))
    }

    /// One that runs a thread which has not started.
    pub(crate) fn for_start(thread: Ready) -> Timer {
        Timer::new(Target::Start(Cell::new(Some(thread))))
    }

    /// Starts it. `runtime` is that of the thread that it is for.
    ///
    /// # Safety
    /// The timer, and the wait or the thread that it is for, stay in place until it has been
    /// disarmed or has fired.
    pub(crate) unsafe fn arm(&self, runtime: &'static Runtime, deadline: Deadline) {
        let deadline = deadline.nanos();
        let mark = Raised::new();
        let processor = vthread::carrier(&mark).and_then(|c| c.processor());
        let timers = &runtime.timers;
        let shard = timers.shard(processor.map_or(0, |p| p.index));
        self.shard.set(Some(shard));
        loop {
            let mut heap = shard.heap.lock();
            // SAFETY: the caller's contract: the node stays until it has left the heap.
            if unsafe { heap.insert(deadline, NonNull::from(self).cast()) }.is_ok() {
                shard.publish(&heap);
                break;
            }
            drop(heap);
            sys::os_yield(); // Out of memory for the heap's vector: wait for others to finish.
        }
        // Our own carrier looks at all shards before it sleeps, or, if it has a spare processor,
        // sees to it that somebody does (`carriers::stand_in`). Others must tell somebody.
        if processor.is_none() && timers.attendance.misses(deadline) {
            runtime.poller.kick();
        }
    }

    /// Stops it, if it has not fired. Returns whether it has not.
    pub(crate) fn disarm(&self) -> bool {
        let Some(shard) = self.shard.get() else {
            return false; // Never armed.
        };
        let mut heap = shard.heap.lock();
        // SAFETY: armed in this heap, or absent from all.
        let removed = unsafe { heap.remove(NonNull::from(self).cast()) };
        if removed {
            shard.publish(&heap);
        }
        removed
    }

    /// Stops one that was to run a thread, if it has not fired. Returns the right to run it.
    pub(crate) fn disarm_start(&self) -> Option<Ready> {
        match &self.target {
            Target::Start(thread) if self.disarm() => thread.take(),
            _ => None,
        }
    }

    /// Decides what it was for. Under the lock of its heap.
    fn expire(&self) -> Option<Wakeup> {
        match &self.target {
            // SAFETY: the waiter disarms, under the heap's lock, before its `Wait` goes away.
            Target::Wait(wait) => unsafe { wait.as_ref() }.claim(Outcome::TimedOut),
            Target::Permit(core) => {
                // SAFETY: the same for a parked thread.
                unsafe { core.as_ref() }
                    .permit
                    .expire()
                    .then_some(Wakeup::Virtual(*core))
            }
            Target::Start(thread) => thread.take().map(Wakeup::Start),
        }
    }
}

impl Shard {
    fn new() -> Shard {
        Shard {
            heap: Lock::new(TimerHeap::new()),
            first: First::new(),
        }
    }

    /// Keeps `first` up to date. Under the heap's lock.
    fn publish(&self, heap: &TimerHeap) {
        self.first.publish(heap.next_deadline());
    }

    /// Fires timers that are due, the first hundred or so. Returns whether there were any.
    fn fire(&self) -> bool {
        let mut any = false;
        for _ in 0..FIRE_AT_ONCE {
            let Some(first) = self.first.get() else {
                break;
            };
            let now = sys::now();
            if first > now {
                break;
            }
            let mut wakes = WakeList::new();
            {
                let mut heap = self.heap.lock();
                while !wakes.is_full()
                    && let Some(node) = heap.pop_due(now)
                {
                    // SAFETY: nodes are the first field of timers, alive while in the heap.
                    if let Some(wakeup) = unsafe { node.cast::<Timer>().as_ref() }.expire() {
                        wakes.push(wakeup);
                    }
                }
                self.publish(&heap);
            }
            any |= wakes.perform() > 0;
        }
        any
    }
}

impl Timers {
    /// Makes the timers of so many regular processors.
    pub(crate) fn new(processors: usize) -> Timers {
        Timers {
            shards: (0..processors).map(|_| Shard::new()).collect(),
            attendance: Attendance::new(),
        }
    }

    /// Returns the shard of the processor with this index; spare ones share the first.
    fn shard(&self, processor: usize) -> &Shard {
        self.shards.get(processor).unwrap_or(&self.shards[0])
    }

    /// Fires what is due in all shards. Returns whether there was anything.
    pub(crate) fn fire_all(&self) -> bool {
        let shards = self.shards.iter();
        shards.fold(false, |any, shard| any | shard.fire())
    }

    /// Returns the earliest deadline of all.
    pub(crate) fn next_deadline(&self) -> Deadline {
        self.earliest()
            .map_or(Deadline::NEVER, Deadline::from_nanos)
    }

    fn earliest(&self) -> Option<u64> {
        self.shards.iter().filter_map(|s| s.first.get()).min()
    }

    /// Makes the calling carrier, which is about to sleep, the one that wakes for timers. Returns
    /// when it should wake by itself, or `None` if there is such a carrier, or no timer.
    pub(crate) fn begin_sleep(&self) -> Option<Deadline> {
        let until = self.attendance.begin(|| self.earliest())?;
        Some(Deadline::from_nanos(until))
    }

    /// The carrier that was to sleep until `deadline` is awake.
    pub(crate) fn end_sleep(&self, deadline: Deadline) {
        self.attendance.end(deadline.nanos());
    }

    /// Returns whether there is a timer that is more than `slack` late.
    pub(crate) fn overdue(&self, slack: u64) -> bool {
        self.earliest()
            .is_some_and(|deadline| deadline.saturating_add(slack) < sys::now())
    }

    /// Returns whether there is a timer that no sleeping carrier will wake for.
    pub(crate) fn unattended(&self) -> bool {
        self.earliest()
            .is_some_and(|deadline| self.attendance.misses(deadline))
    }
}

const _: () = assert!(core::mem::offset_of!(Timer, node) == 0);
