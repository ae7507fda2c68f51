//! Timers: wakes at points in time.
//!
//! There is one heap per regular processor, so that arming a timer takes an uncontended lock. A
//! timer is armed in the shard of the processor its thread runs on. The first carrier that looks
//! fires it; if all awake carriers are busy, the monitor wakes one. A timer lives on the stack of
//! the thread that waits. Nearly all timers of I/O timeouts are cancelled, which costs a lock and,
//! since late deadlines lie at the bottom of the heap, few moves.

mod attendance;
pub(crate) mod heap;

use crate::blocking::fds::review;
use crate::blocking::timer::attendance::{Attendance, First};
use crate::blocking::timer::heap::{TimerHeap, TimerNode};
use crate::blocking::wait::{Outcome, Wait, WakeList, Wakeup};
use crate::lock::Lock;
use crate::mark::Raised;
use crate::runtime::Runtime;
use crate::sanitizer::Ignored;
use crate::time::Deadline;
use crate::vthread::{self, Claimed, Core, Ready};
use crate::{sched, sys};
use core::cell::Cell;
use core::ptr::NonNull;

/// The timers of a runtime.
pub struct Timers {
    shards: Box<[Shard]>,
    /// Which carrier wakes for them.
    attendance: Attendance,
}

struct Shard {
    heap: Lock<TimerHeap>,
    /// Deadline of the first timer, readable without the lock.
    first: First,
}

/// Lists of wakes fired at once. If a hundred thousand timers are due together, the first threads
/// run before the last timers are fired, while they are still in the processor's cache.
const FIRE_AT_ONCE: usize = 4;

/// The effect of a timer.
enum Effect {
    /// Claims the episode as timed out.
    Wait(NonNull<Wait>),
    /// Ends a `park` without a permit.
    Permit(NonNull<Core>),
    /// Runs a thread that has not started.
    Start(Cell<Option<Ready>>),
}

/// A timer of the running thread, on its stack.
#[repr(C)]
pub struct Timer {
    node: TimerNode,
    effect: Effect,
    /// The shard it was last armed in.
    shard: Cell<Option<&'static Shard>>,
}

impl Timer {
    fn new(effect: Effect) -> Timer {
        Timer {
            node: TimerNode::new(),
            effect,
            shard: Cell::new(None),
        }
    }

    /// Returns a timer that claims `wait` as timed out.
    pub(crate) fn for_wait(wait: &Wait) -> Timer {
        Timer::new(Effect::Wait(NonNull::from(wait)))
    }

    /// Returns a timer that ends a `park` of `core` without a permit.
    pub fn for_permit(core: &Core) -> Timer {
        Timer::new(Effect::Permit(NonNull::from(core)))
    }

    /// Returns a timer that runs a thread which has not started.
    pub(crate) fn for_start(thread: Ready) -> Timer {
        Timer::new(Effect::Start(Cell::new(Some(thread))))
    }

    /// Starts the timer. `runtime` is that of the thread that it is for.
    ///
    /// # Safety
    /// The timer, and the wait or the thread that it is for, stay in place until it has been
    /// disarmed or has fired.
    pub unsafe fn arm(&self, runtime: &'static Runtime, deadline: Deadline) {
        let mark = Raised::new();
        let _ignored = Ignored::new(); // The heap's vectors may grow.
        let processor = vthread::carrier(&mark).and_then(|c| c.processor());
        let timers = &runtime.timers;
        let shard = timers.shard(processor.map_or(0, |p| p.index));
        self.shard.set(Some(shard));
        loop {
            let mut heap = shard.heap.lock();
            // SAFETY: the caller's contract: the node stays until it has left the heap.
            if unsafe { heap.insert(deadline.nanos(), NonNull::from(self).cast()) }.is_ok() {
                shard.publish(&heap);
                break;
            }
            drop(heap);
            sys::os_yield(); // No memory for the heap's vector: wait for others to free some.
        }
        // The timer's own carrier looks at all shards before it sleeps, or, with a spare processor,
        // makes sure that another does (`carriers::stand_in`). Others must wake a carrier.
        if processor.is_none() && timers.attendance.misses(|| deadline) {
            runtime.poller.kick();
        }
    }

    /// Stops the timer. Returns whether that was before it fired.
    pub fn disarm(&self) -> bool {
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

    /// Stops a timer that was to run a thread. Returns the right to run it, unless it has fired.
    pub(crate) fn disarm_start(&self) -> Option<Ready> {
        match &self.effect {
            Effect::Start(thread) if self.disarm() => thread.take(),
            _ => None,
        }
    }

    /// Performs the timer's effect. Under the lock of its heap.
    fn expire(&self) -> Option<Wakeup> {
        match &self.effect {
            // SAFETY: the waiter disarms, under the heap's lock, before its `Wait` goes away.
            Effect::Wait(wait) => unsafe { wait.as_ref() }.claim(Outcome::TimedOut),
            Effect::Permit(core) => {
                let mark = Raised::new();
                // SAFETY: the same for a parked thread.
                let expired = unsafe { core.as_ref() }.permit.expire();
                // SAFETY: the permit has given us the duty to wake the thread.
                expired.then(|| Wakeup::Virtual(unsafe { Claimed::new(*core, mark) }))
            }
            Effect::Start(thread) => thread.take().map(Wakeup::Start),
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

    /// Updates `first`. Under the heap's lock.
    fn publish(&self, heap: &TimerHeap) {
        let next = heap.next_deadline();
        self.first
            .publish(next.map_or(Deadline::NEVER, Deadline::from_nanos));
    }

    /// Fires timers that are due, at most about a hundred.
    fn fire(&self) {
        for _ in 0..FIRE_AT_ONCE {
            let first = self.first.get();
            if first.is_never() {
                break;
            }
            let now = sys::now();
            if first.nanos() > now {
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
            wakes.perform();
        }
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
    fn shard(&self, processor: usize) -> &Shard {
        self.shards.get(processor).unwrap_or(&self.shards[0])
    }

    /// Fires the due timers of all shards.
    pub(crate) fn fire_all(&self) {
        self.shards.iter().for_each(Shard::fire);
    }

    /// Returns the number of armed timers, and the bytes of the heaps.
    pub fn census(&self) -> (usize, usize) {
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

    /// Returns when the first timer or [review](super::fds) of descriptors is due.
    fn first_due(&self) -> Deadline {
        self.next_deadline().min(review::due())
    }

    /// Makes the calling carrier, which is about to sleep, wake for timers and reviews. Returns
    /// when it should wake: never, if another carrier does so already, or there is neither.
    pub(crate) fn begin_sleep(&self) -> Deadline {
        self.attendance.begin(|| self.first_due())
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

    /// Returns whether there is a timer or review that no sleeping carrier will wake for.
    pub(crate) fn unattended(&self) -> bool {
        self.attendance.misses(|| self.first_due())
    }
}

const _: () = assert!(core::mem::offset_of!(Timer, node) == 0);

/// A thread that has been made but not started; a timer will start it.
pub struct DelayedStart {
    runtime: &'static Runtime,
    timer: Timer,
}

impl DelayedStart {
    /// Takes charge of a thread that has not been started. It starts when the timer set by
    /// [`arm`](Self::arm) fires.
    pub fn new(thread: Ready) -> DelayedStart {
        DelayedStart {
            runtime: thread.core().runtime(),
            timer: Timer::for_start(thread),
        }
    }

    /// Sets the time. To be called once.
    ///
    /// # Safety
    /// This stays in its place until [`cancel`](Self::cancel) has returned.
    pub unsafe fn arm(&self, deadline: Deadline) {
        // SAFETY: the caller's contract; the timer itself has the right to run the thread.
        unsafe { self.timer.arm(self.runtime, deadline) };
    }

    /// Drops the thread without running it, unless its time has come. Returns whether it was
    /// dropped.
    pub fn cancel(&self) -> bool {
        match self.timer.disarm_start() {
            Some(thread) => {
                sched::abandon(thread);
                true
            }
            None => false,
        }
    }
}
