//! What a timer does: it ends a wait or a park, or starts a thread. It lives on the stack of the
//! thread that waits, in the heap of a [shard](crate::reactor::timers).

use crate::blocking::wait::{Outcome, Wait, WakeList, Wakeup};
use crate::no_suspend::NoSuspend;
use crate::reactor::heap::TimerNode;
use crate::reactor::timers::{Shard, Timers};
use crate::sanitizer::Ignored;
use crate::sched::{self, Runtime};
use crate::sys;
use crate::time::Deadline;
use crate::vthread::{Claimed, Core, Ready};
use core::cell::Cell;
use core::ptr::NonNull;

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

    /// Starts the timer. `runtime` is the runtime of the thread that it is for.
    ///
    /// # Safety
    /// The timer, and the wait or the thread that it is for, stay in place until it has been
    /// disarmed or has fired.
    pub unsafe fn arm(&self, runtime: &'static Runtime, deadline: Deadline) {
        let section = NoSuspend::new();
        let _ignored = Ignored::new(); // The heap's vectors may grow.
        let processor = sched::carrier(&section).and_then(|c| c.processor());
        let timers = &runtime.timers;
        let shard = timers.shard(processor.map_or(0, |p| p.index));
        self.shard.set(Some(shard));
        // SAFETY: the caller's contract: the node stays until it has left the heap.
        while unsafe { shard.insert(deadline, NonNull::from(self).cast()) }.is_err() {
            sys::os_yield(); // No memory for the heap's vector: wait for others to free some.
        }
        // The timer's own carrier looks at all shards before it sleeps, or, with a spare processor,
        // makes sure that another does (`carriers::stand_in`). Others must wake a carrier.
        if processor.is_none() && timers.misses(|| deadline) {
            runtime.poller.kick();
        }
    }

    /// Stops the timer. Returns whether that was before it fired.
    pub fn disarm(&self) -> bool {
        let armed = self.shard.get();
        // SAFETY: armed in this shard, or absent from all.
        armed.is_some_and(|shard| unsafe { shard.remove(NonNull::from(self).cast()) })
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
                let section = NoSuspend::new();
                // SAFETY: the same for a parked thread.
                let expired = unsafe { core.as_ref() }.permit.expire();
                // SAFETY: the permit has given us the duty to wake the thread.
                expired.then(|| Wakeup::Virtual(unsafe { Claimed::new(*core, section) }))
            }
            Effect::Start(thread) => thread.take().map(Wakeup::Start),
        }
    }
}

/// Fires the due timers of all shards, at most about a hundred of each.
pub(crate) fn fire_all(timers: &Timers) {
    timers.shards().iter().for_each(fire);
}

fn fire(shard: &Shard) {
    for _ in 0..FIRE_AT_ONCE {
        let Some(now) = shard.due() else { break };
        let mut wakes = WakeList::new();
        shard.take_due(now, |node| {
            // SAFETY: nodes are the first field of timers, alive while in the heap.
            if let Some(wakeup) = unsafe { node.cast::<Timer>().as_ref() }.expire() {
                wakes.push(wakeup);
            }
            !wakes.is_full()
        });
        wakes.perform();
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
            runtime: Runtime::of(thread.core()),
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
