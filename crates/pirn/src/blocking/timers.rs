//! Timers: wakes at points in time.
//!
//! One heap per regular processor, so that arming a timer takes a lock nobody else wants. A timer
//! is armed in the shard of the processor its thread runs on and fired by whichever carrier looks
//! first, or, should all that are awake be busy, by one that the monitor wakes. A timer lives on
//! the stack of the thread that waits; nearly all timers of I/O timeouts are cancelled, which costs
//! a lock and, since late deadlines lie at the bottom of the heap, few moves.

use super::timer_heap::{TimerHeap, TimerNode};
use super::wait::{Outcome, Wait, WakeList, Wakeup};
use crate::lock::Lock;
use crate::sched::driver;
use crate::sys;
use crate::time::Deadline;
use crate::vthread::{self, Core};
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

struct Shard {
    heap: Lock<TimerHeap>,
    /// Deadline of the first timer, readable without the lock; `u64::MAX` if there is none.
    next: AtomicU64,
}

static SHARDS: AtomicPtr<Vec<Shard>> = AtomicPtr::new(core::ptr::null_mut());
/// Until when the carrier sleeps that has taken it upon itself to wait for timers.
static SLEEPING_UNTIL: AtomicU64 = AtomicU64::new(u64::MAX);

fn shards() -> &'static [Shard] {
    // Acquire: pairs with the Release in `start`.
    // SAFETY: set before the first virtual thread; never freed.
    unsafe { &*SHARDS.load(Ordering::Acquire) }
}

/// Makes the shards. Once, at start.
pub(crate) fn start(count: usize) {
    let shard = |_| Shard {
        heap: Lock::new(TimerHeap::new()),
        next: AtomicU64::new(u64::MAX),
    };
    let shards = Box::new((0..count).map(shard).collect::<Vec<_>>());
    SHARDS.store(Box::into_raw(shards), Ordering::Release);
}

/// Lists of wakes fired in one go. If a hundred thousand timers are due at once, the first threads
/// are to run before the last timers are fired, while they are still in the processor's cache.
const FIRE_AT_ONCE: usize = 4;

/// What a timer wakes.
enum Target {
    Wait(NonNull<Wait>),
    Permit(NonNull<Core>),
    Start(NonNull<Core>),
}

/// A timer of the running thread's, on its stack.
#[repr(C)]
pub(crate) struct Timer {
    node: TimerNode,
    target: Target,
    shard: Cell<usize>,
}

impl Timer {
    /// One that claims `wait` as timed out.
    pub(crate) fn for_wait(wait: &Wait) -> Timer {
        Timer {
            node: TimerNode::new(),
            target: Target::Wait(NonNull::from(wait)),
            shard: Cell::new(0),
        }
    }

    /// One that ends a `park` of `core` without a permit.
    pub(crate) fn for_permit(core: &Core) -> Timer {
        Timer {
            node: TimerNode::new(),
            target: Target::Permit(NonNull::from(core)),
            shard: Cell::new(0),
        }
    }

    /// One that starts a thread which has been made, and is
    /// [parked](crate::vthread::handshake::Handshake::parked).
    pub(crate) fn for_start(core: &Core) -> Timer {
        Timer {
            node: TimerNode::new(),
            target: Target::Start(NonNull::from(core)),
            shard: Cell::new(0),
        }
    }

    /// Starts it.
    ///
    /// # Safety
    /// The timer, and the wait or the thread that it is for, stay in place until it has been
    /// disarmed or has fired.
    pub(crate) unsafe fn arm(&self, deadline: Deadline) {
        let deadline = deadline.nanos();
        let own = vthread::carrier()
            .and_then(|c| c.processor())
            .map(|p| p.index);
        // Spare processors have no shards of their own.
        self.shard.set(own.unwrap_or(0) % shards().len());
        let shard = &shards()[self.shard.get()];
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
        // sees to it that somebody does (`spare::rest`). Others must tell somebody.
        if own.is_none() && deadline < SLEEPING_UNTIL.load(Ordering::SeqCst) {
            driver::driver().kick();
        }
    }

    /// Stops it, if it has not fired. Returns whether it has not.
    pub(crate) fn disarm(&self) -> bool {
        let shard = &shards()[self.shard.get()];
        let mut heap = shard.heap.lock();
        // SAFETY: armed in this heap, or absent from all.
        let removed = unsafe { heap.remove(NonNull::from(self).cast()) };
        if removed {
            shard.publish(&heap);
        }
        removed
    }

    /// Decides what it was for. Under the lock of its heap.
    fn expire(&self) -> Option<Wakeup> {
        match self.target {
            // SAFETY: the waiter disarms, under the heap's lock, before its `Wait` goes away.
            Target::Wait(wait) => unsafe { wait.as_ref() }.claim(Outcome::TimedOut),
            Target::Permit(core) => {
                // SAFETY: the same for a parked thread.
                unsafe { core.as_ref() }
                    .permit
                    .expire()
                    .then_some(Wakeup::Virtual(core))
            }
            Target::Start(core) => Some(Wakeup::Virtual(core)),
        }
    }
}

impl Shard {
    /// Keeps `next` up to date. Under the heap's lock.
    fn publish(&self, heap: &TimerHeap) {
        let next = heap.next_deadline().unwrap_or(u64::MAX);
        // SeqCst: pairs with `next_deadline` of a carrier that is about to sleep.
        if self.next.load(Ordering::Relaxed) != next {
            self.next.store(next, Ordering::SeqCst);
        }
    }
}

/// Fires timers of a shard that are due, the first hundred or so. Returns whether there were any.
fn fire(shard: &Shard) -> bool {
    let mut any = false;
    for _ in 0..FIRE_AT_ONCE {
        // Relaxed: a hint; our own arming is in program order.
        if shard.next.load(Ordering::Relaxed) == u64::MAX {
            break;
        }
        let now = sys::now();
        if shard.next.load(Ordering::Relaxed) > now {
            break;
        }
        let mut wakes = WakeList::new();
        {
            let mut heap = shard.heap.lock();
            while !wakes.is_full()
                && let Some(node) = heap.pop_due(now)
            {
                // SAFETY: nodes are the first field of timers, alive while in the heap.
                if let Some(wakeup) = unsafe { node.cast::<Timer>().as_ref() }.expire() {
                    wakes.push(wakeup);
                }
            }
            shard.publish(&heap);
        }
        any |= wakes.perform() > 0;
    }
    any
}

/// Fires what is due in all shards.
pub(crate) fn fire_all() -> bool {
    shards().iter().fold(false, |any, shard| any | fire(shard))
}

/// The earliest deadline of all.
pub(crate) fn next_deadline() -> Option<u64> {
    let next = shards().iter().map(|s| s.next.load(Ordering::SeqCst)).min();
    next.filter(|&deadline| deadline != u64::MAX)
}

/// Makes the calling carrier, which is about to sleep, the one that wakes for timers, unless
/// there is one. Returns until when it should sleep at the most.
pub(crate) fn begin_sleep() -> Option<u64> {
    loop {
        let deadline = next_deadline()?;
        let current = SLEEPING_UNTIL.load(Ordering::SeqCst);
        if current <= deadline {
            return None;
        }
        if SLEEPING_UNTIL
            .compare_exchange(current, deadline, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
        {
            return Some(deadline);
        }
    }
}

/// The carrier that slept until `deadline` does not any more.
pub(crate) fn end_sleep(deadline: u64) {
    let _ = SLEEPING_UNTIL.compare_exchange(deadline, u64::MAX, Ordering::SeqCst, Ordering::SeqCst);
}

/// Whether there is a timer in any shard that is later than `slack`.
pub(crate) fn overdue(slack: u64) -> bool {
    next_deadline().is_some_and(|deadline| deadline.saturating_add(slack) < sys::now())
}

/// Whether there is a timer that no sleeping carrier will wake for.
pub(crate) fn unattended() -> bool {
    next_deadline().is_some_and(|deadline| deadline < SLEEPING_UNTIL.load(Ordering::SeqCst))
}

const _: () = assert!(core::mem::offset_of!(Timer, node) == 0);
