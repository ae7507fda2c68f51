//! Mounting and unmounting: how a virtual thread gets on and off a platform thread.
//!
//! A [`Carrier`] is a platform thread while it carries virtual threads. A mounted virtual thread
//! leaves it by [`suspend`], which names an action to take *after* the thread's registers are saved
//! (an [`After`]). The code that runs next on that platform thread, on its own stack or in the next
//! virtual thread, performs this action first of all ([`Carrier::finish_switch`]). It cannot happen
//! before the switch: as soon as a thread is published as runnable, another carrier may resume it.
//!
//! ```text
//!   event                          handshake            then
//!   mount                          unchanged
//!   suspend(Park)                  RUNNING -> PARKED
//!     … woken before the switch    stays RUNNABLE       enqueued at once
//!   wake                           PARKED -> RUNNABLE   enqueued by the waker
//!     … while it is inspected      INSPECTED -> RUNNABLE  enqueued by the reader
//!     … and it runs again          RUNNABLE -> RUNNING
//!   suspend(Yield)                 unchanged            enqueued
//!   suspend(Preempt)               unchanged            put aside
//!   suspend(Exit)                  unchanged            stack given back
//! ```

use super::carrier::Carrier;
use super::processor::Holder;
use super::runtime::Runtime;
use super::{Cause, cold, enqueue, life, preempt, recorded, safepoint};
use crate::no_suspend::NoSuspend;
use crate::recorder;
use crate::stack::region;
use crate::sys;
use crate::vthread::{Core, Current, Ready, current, table};
use core::ptr::{self, NonNull};
use core::sync::atomic::{Ordering, compiler_fence};

/// The action to take for a thread that has just been switched away from.
#[derive(Clone, Copy)]
pub enum After {
    /// The thread waits for a wake.
    Park,
    /// The thread goes to the back of the queue.
    Yield,
    /// The thread goes to the back of the queue, but only to let other virtual threads run: if no
    /// other is ready, the carrier does not offer the core to other OS threads.
    MakeWay,
    /// The thread has been interrupted while it computed, and gives way to others.
    Preempt,
    /// The thread has ended.
    Exit,
}

impl Carrier {
    /// Mounts a thread from the platform thread's own stack. Returns when no thread is mounted here
    /// any more, which need not be when this one thread was unmounted.
    ///
    /// # Safety
    /// The caller runs on this carrier's own stack.
    pub(crate) unsafe fn mount(&self, thread: Ready) {
        if recorder::is_watched() {
            recorded::mounted(self, thread.core());
        }
        let outer_thread = self.mounted.get();
        match self.occupied() {
            Some(processor) => processor.counters().mounted.add(1),
            None => self.runtime().outside.mounted.add_shared(1),
        }
        if self.yielded.take() == Some(NonNull::from(thread.core()))
            && self.runtime().settings.simulator.is_none()
        {
            // The thread found nothing else to run here, and may be waiting for an OS thread; in a
            // simulation all are virtual. It counts as runnable meanwhile, so that a dump can hold
            // it.
            sys::os_yield();
        }
        let thread = self.take_over(thread);
        // A user's scheduler may run a thread from within a thread that this same carrier has
        // mounted. Then the outer return address must survive.
        let outer = self.native.saved();
        // SAFETY: the native continuation is the running one; the other was ours to run.
        unsafe { self.native.switch(&thread.as_ref().continuation, false) };
        // SAFETY: the outer return is still to come.
        unsafe { self.native.restore(outer) };
        self.mounted.set(outer_thread);
        self.note_yield();
        self.finish_switch();
    }

    /// Records that the thread that was just switched away from has yielded, and that no other
    /// thread has run here since.
    fn note_yield(&self) {
        if let Some((thread, After::Yield)) = self.left.get() {
            self.yielded.set(Some(thread));
        }
    }

    /// Prepares a thread for the switch to it that the caller is about to make on this carrier; the
    /// thread stays alive until it comes back to [`finish_switch`](Self::finish_switch).
    #[inline(always)]
    fn take_over(&self, thread: Ready) -> NonNull<Core> {
        let core = thread.core();
        core.set_mounted_on(self.number);
        // In this order, by which `mount_flags` knows whether the thread can still be held.
        compiler_fence(Ordering::SeqCst);
        if !core.mount_flags.is_nothing() {
            self.note_mount(core);
        }
        core.carrier.set(ptr::from_ref(self).cast());
        self.mounted.set(core);
        thread.into_raw()
    }

    /// Does what a mount has to do besides: gives a new thread a stack, notes for how long the
    /// thread was runnable, waits while it is looked at.
    ///
    /// Cold like [`reap`](Self::reap): inlining them would slow down all other switches.
    #[cold]
    fn note_mount(&self, core: &Core) {
        let duty = core.mount_flags.take(sys::back_off);
        if core.wait.safe_point_requested() {
            safepoint::heat(self.runtime());
        } else if core.wait.has_request_in_own_code() {
            safepoint::note_left(core);
        }
        let new = duty.is_first();
        // Its creator may have given it a stack, by `life::preallocate`.
        if core.slot().is_none() {
            self.give_stack(core);
        }
        // A thread that has found no taker for a signal makes this carrier execute a barrier here,
        // and looks again.
        compiler_fence(Ordering::SeqCst);
        if new && core.signals.has_work() {
            safepoint::request(core);
        }
        let (processor, outside) = (self.occupied(), &Runtime::of(core).outside);
        if let Some(nanos) = duty.runnable_for(sys::now) {
            match processor {
                Some(processor) => processor.counters().latencies.add(nanos),
                None => outside.latencies.add_shared(nanos),
            }
        }
        match processor {
            _ if !new => {}
            Some(processor) => processor.counters().begun.add(1),
            None => outside.begun.add_shared(1),
        }
    }

    /// Gives a thread that is mounted for the first time the slot that `spawn` reserved.
    #[inline]
    fn give_stack(&self, core: &Core) {
        let slot = match self.processor() {
            Some(p) if core.class() == p.runtime().settings.default_class => p.take_slot(),
            _ => Runtime::of(core).stacks.take(core.class()),
        };
        region::note_user(slot, core.vtable().code);
        // SAFETY: the slot is this thread's until its end.
        unsafe { life::prepare(core, slot) };
        // SAFETY: it leaves at its end, before its own reference is released.
        unsafe { table::enter(slot, core) };
    }

    /// Performs the action for the thread that was just switched away from.
    #[inline(always)]
    pub(super) fn finish_switch(&self) {
        let Some((thread, after)) = self.left.take() else {
            return;
        };
        // SAFETY: the thread's own reference is alive until `Exit` below releases it.
        let core = unsafe { &*thread.as_ptr() };
        if !matches!(after, After::Exit) {
            core.set_unmounted();
        }
        match after {
            After::Park => {
                if !core.handshake.parked() {
                    // SAFETY: the handshake gave us the duty to enqueue it.
                    let thread = unsafe { Ready::new(thread) };
                    cold(|| enqueue(self.processor(), thread, Cause::Wake));
                }
            }
            After::Yield | After::MakeWay => {
                // SAFETY: it is off its stack, and no other code can reach it.
                enqueue(
                    self.processor(),
                    unsafe { Ready::new(thread) },
                    Cause::Yield,
                );
            }
            // SAFETY: it is off its stack, and no other code can reach it.
            After::Preempt => preempt::put_aside(self, unsafe { Ready::new(thread) }),
            // SAFETY: the thread was switched away from for the last time.
            After::Exit => unsafe { self.reap(thread) },
        }
    }

    /// Frees the slot of a thread that has ended, and releases the thread's own reference.
    ///
    /// # Safety
    /// The thread has ended, is off its stack, and still has its own reference.
    #[cold]
    unsafe fn reap(&self, thread: NonNull<Core>) {
        // SAFETY: the thread's own reference is released below.
        let core = unsafe { thread.as_ref() };
        let class = core.class();
        if let Some(slot) = core.slot() {
            table::leave(slot);
        }
        safepoint::end(core); // From here on it is given no signal of the process's.
        match self.occupied() {
            Some(processor) => processor.counters().ended.add(1),
            None => Runtime::of(core).outside.ended.add_shared(1),
        }
        // SAFETY: it will not be resumed, by our contract.
        if let Some(slot) = unsafe { core.continuation.take_slot() } {
            match self.processor() {
                Some(p) if class == p.runtime().settings.default_class => p.put_slot(slot),
                _ => {
                    let stacks = &Runtime::of(core).stacks;
                    stacks.put(slot);
                    stacks.unreserve(class, 1);
                }
            }
        }
        // SAFETY: the thread's own reference, given up here only.
        unsafe { Core::release(thread) };
    }
}

/// Leaves the running virtual thread. Returns when it has been mounted again.
///
/// The carrier switches directly to the next thread of its processor's queue, or else to its own
/// stack. After a preemption it always switches to its own stack, because a thread other than the
/// next one may be urgent.
#[inline(always)]
pub fn suspend(core: Current, after: After) {
    leave(core, after, |processor| match after {
        After::Preempt => None,
        _ => processor.next_to_hand_over(),
    });
}

/// Leaves the running virtual thread, which goes to the back of its queue, for `next`.
///
/// The running carrier must hold a processor.
#[cold]
pub fn yield_to(core: Current, next: Ready) {
    leave(core, After::Yield, |processor| {
        processor.count();
        Some(next)
    });
}

/// About as long as an OS thread takes to wake up.
pub const NAP_NS: u64 = 100_000;

/// Lets the threads run that the running thread has woken: the running thread goes to the back of
/// its queue. A platform thread naps instead.
#[cold]
pub fn give_way() {
    match current() {
        Some(running) => suspend(running, After::Yield),
        None => sys::nap(NAP_NS),
    }
}

/// Leaves the running virtual thread for the one that `next` returns, if its carrier holds a
/// processor, or else for the carrier's own stack.
#[inline(always)]
fn leave(core: Current, after: After, next: impl FnOnce(Holder<'_>) -> Option<Ready>) {
    let _section = NoSuspend::new();
    // SAFETY: mounted, so the carrier is alive and this OS thread's.
    let carrier = unsafe { Carrier::of(&core) };
    let processor = carrier.processor();
    if matches!(after, After::Park) {
        let kind = core.wait_info.what().index();
        match processor {
            Some(processor) => processor.counters().park(kind),
            None => carrier.runtime().outside.park_shared(kind),
        }
    }
    let next = processor.and_then(next);
    if recorder::is_watched() {
        recorded::left(carrier, &core, after, next.as_ref().map(Ready::core));
    }
    carrier.left.set(Some((core.as_ptr(), after)));
    let last = matches!(after, After::Exit);
    // SAFETY: `core` is the running continuation; the other one is suspended and ours to run.
    unsafe {
        match next {
            Some(next) => {
                let next = carrier.take_over(next);
                core.continuation.switch(&next.as_ref().continuation, last);
            }
            None => core.continuation.switch(&carrier.native, last),
        }
    }
    // Mounted again, perhaps by another carrier. SAFETY: set by `take_over` before the switch to
    // us.
    unsafe { Carrier::of(&core) }.finish_switch();
}

/// Parks the running virtual thread until the `wake` of its handshake, which must come exactly
/// once, and may have come already.
#[inline(always)]
pub fn park_until_wake(core: Current) {
    if !core.handshake.woken_early() {
        suspend(core, After::Park);
        core.handshake.resumed();
    }
}
