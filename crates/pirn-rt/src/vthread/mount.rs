//! Mounting and unmounting: how a virtual thread gets on and off a platform thread.
//!
//! A [`Carrier`] is a platform thread while it carries virtual threads. A mounted virtual thread
//! leaves it by [`suspend`], which names an action to take *after* the thread's registers are saved
//! (an [`After`]). The code that runs next on that platform thread, on its own stack or in the next
//! virtual thread, performs this action first of all ([`Carrier::finish_switch`]). It cannot happen
//! before the switch: as soon as a thread is published as runnable, another carrier may resume it.
//!
//! ```text
//!   event                          handshake            phase
//!   mount                          unchanged            -> Running
//!   suspend(Park)                  RUNNING -> PARKED    -> Waiting
//!     … woken before the switch    stays RUNNABLE       -> Runnable, enqueued at once
//!   wake                           PARKED -> RUNNABLE   -> Runnable, enqueued by the waker
//!     … while it is walked         WALKED -> RUNNABLE   -> Runnable, enqueued by the walker
//!     … and it runs again          RUNNABLE -> RUNNING
//!   suspend(Yield)                 unchanged            -> Runnable, enqueued
//!   suspend(Preempt)               unchanged            -> Runnable, put aside
//!   suspend(Exit)                  unchanged            -> Terminated, stack given back
//! ```

use super::record::{Core, Phase};
use super::table::{self, Mounted};
use super::{Current, Ready, carrier_tls, life, recorded, summons};
use crate::continuation::Continuation;
use crate::mark::{self, Raised};
use crate::recorder;
use crate::recorder::carrier_ring::Writer;
use crate::runtime::Runtime;
use crate::sanitizer::{self, Ignored};
use crate::sched::{self, Acquired, Holder, Processor};
use crate::stack::region;
use crate::sys;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{Ordering, compiler_fence};

thread_local! {
    /// The virtual thread that this TLS block belongs to. It is in each virtual thread's own block,
    /// so it never changes between the first and the last instruction of a thread.
    static CURRENT: Cell<*const Core> = const { Cell::new(ptr::null()) };
    /// The carrier of this platform thread, while it is one.
    static CARRIER: Cell<*const Carrier> = const { Cell::new(ptr::null()) };
}

/// Returns the running virtual thread, or `None` on a platform thread.
#[inline(always)]
pub fn current() -> Option<Current> {
    let core = NonNull::new(CURRENT.get().cast_mut())?;
    // SAFETY: noted by this very thread, in its own TLS block.
    Some(unsafe { Current::new(core) })
}

/// Returns the running virtual thread, if it may be parked just now: the [`mark`] is down.
#[inline(always)]
pub fn parkable() -> Option<Current> {
    current().filter(|_| !mark::is_up())
}

/// Returns the carrier of the running code, which is a virtual thread or the carrier's own loop.
///
/// The mark keeps the thread on this carrier for as long as the reference lives. Do not [`suspend`]
/// either while it lives: the thread may continue on another carrier.
#[inline(always)]
pub fn carrier(_: &Raised) -> Option<&Carrier> {
    let pointer = match current() {
        Some(thread) => thread.carrier.get(),
        None => CARRIER.with(Cell::get),
    };
    // SAFETY: a carrier lives as long as it carries.
    unsafe { pointer.as_ref() }
}

/// Calls `f` with the TLS of the carrier: to `f` this is the platform thread, which it may block.
/// On a platform thread, just calls it.
///
/// # Safety
/// `f` does not unwind.
#[inline]
pub unsafe fn on_carrier<R>(f: impl FnOnce() -> R) -> R {
    let mark = current().map(|_| Raised::new()); // No platform thread's: `f` may be long.
    match mark.as_ref().and_then(carrier) {
        // SAFETY: the carrier of the running thread; the caller's contract.
        Some(carrier) => unsafe { carrier_tls::call(carrier.native_tp(), f) },
        None => f(),
    }
}

/// Records which virtual thread the running TLS block belongs to, as the first action of each.
///
/// # Safety
/// `thread` is null, or the running thread's record, which stays until the thread's end.
#[inline]
pub(super) unsafe fn set_current(thread: *const Core) {
    CURRENT.set(thread);
}

/// Makes the running virtual thread a platform thread from now on, for all callers of [`current`]:
/// for the child of a `fork`, where there is no carrier to go back to.
#[inline]
pub fn become_platform_thread() {
    // SAFETY: null.
    unsafe { set_current(ptr::null()) };
}

/// The action to take for a thread that has just been switched away from.
#[derive(Clone, Copy)]
pub enum After {
    /// The thread waits for a wake.
    Park,
    /// The thread goes to the back of the queue.
    Yield,
    /// The same, but only to let other virtual threads run: if there are none, other OS threads do
    /// not get the core.
    MakeWay,
    /// The thread has been interrupted while it computed, and gives way to others.
    Preempt,
    /// The thread has ended.
    Exit,
}

/// A platform thread that virtual threads are mounted on.
pub struct Carrier {
    /// Its own stack and TLS.
    native: Continuation,
    /// The thread that was switched away from, and the action to take for it.
    left: Cell<Option<(NonNull<Core>, After)>>,
    /// The thread that last came back to `native` by a yield, until another is mounted from there.
    /// It is compared only, never followed: the thread may have ended elsewhere.
    yielded: Cell<Option<NonNull<Core>>>,
    /// The runtime whose threads the carrier runs.
    runtime: Cell<&'static Runtime>,
    /// The processor that the carrier holds; none while it runs threads of a user's scheduler.
    processor: Cell<Option<Acquired>>,
    /// The processor that is reserved for the one thread that a waiting platform thread carries.
    lent: Cell<Option<&'static Processor>>,
    /// Whether the threads that the carrier makes runnable are urgent: it looks for events because
    /// a thread has been preempted for them.
    urgently: Cell<bool>,
    /// The signals that the platform thread blocked when it became a carrier.
    blocked_signals: u64,
    /// Tells readers outside which thread is mounted.
    mounted: Mounted,
    /// The carrier's number, for people to read.
    pub(crate) number: u32,
    /// The right to write its ring of events, once it has asked for it.
    writer: Cell<Option<Writer>>,
}

impl Carrier {
    /// Makes the running platform thread a carrier of `runtime`.
    pub(crate) fn new(number: u32, runtime: &'static Runtime) -> Carrier {
        crate::glibc::malloc::ensure_cache();
        super::overflow::ensure_signal_stack();
        sanitizer::note_carrier();
        Carrier {
            native: Continuation::native(),
            left: Cell::new(None),
            yielded: Cell::new(None),
            runtime: Cell::new(runtime),
            processor: Cell::new(None),
            lent: Cell::new(None),
            urgently: Cell::new(false),
            blocked_signals: sys::blocked_signals(),
            mounted: Mounted::new(number),
            number,
            writer: Cell::new(None),
        }
    }

    /// Makes this the running platform thread's carrier, for threads of `runtime`, for the duration
    /// of `f`.
    pub(crate) fn enter<R>(&self, runtime: &'static Runtime, f: impl FnOnce() -> R) -> R {
        let _ignored = Ignored::new();
        let outer = CARRIER.replace(self);
        let outer_runtime = self.runtime.replace(runtime);
        let result = f();
        self.runtime.set(outer_runtime);
        CARRIER.set(outer);
        result
    }

    /// Returns the runtime whose threads the carrier runs.
    #[inline]
    pub fn runtime(&self) -> &'static Runtime {
        self.runtime.get()
    }

    /// Returns the processor that the carrier holds.
    #[inline(always)]
    pub fn processor(&self) -> Option<Holder<'_>> {
        // SAFETY: only this platform thread uses the cell, and not meanwhile.
        unsafe { &*self.processor.as_ptr() }
            .as_ref()
            .map(Acquired::holder)
    }

    /// Holds `processor` from now on.
    #[inline]
    pub(crate) fn hold(&self, processor: Acquired) {
        let other = self.processor.replace(Some(processor));
        debug_assert!(other.is_none(), "a processor is lost");
    }

    /// Gives up the processor that the carrier holds.
    ///
    /// # Safety
    /// No [`Holder`] from this carrier is used any more.
    #[inline]
    pub(crate) unsafe fn let_go(&self) -> Option<Acquired> {
        self.processor.take()
    }

    /// Carries `thread`, on a platform thread that waits for it, for as long as it does not park.
    ///
    /// # Safety
    /// The contract of [`mount`](Self::mount).
    #[inline]
    pub(crate) unsafe fn mount_lent(&self, thread: Ready, processor: Holder<'_>) {
        self.lent.set(Some(processor.get()));
        // SAFETY: the caller's contract.
        unsafe { self.mount(thread) };
        self.lent.set(None);
    }

    /// Returns the right to write the carrier's ring of events, if there is one.
    #[inline(always)]
    pub(super) fn writer(&self) -> Option<Writer> {
        self.writer.get().or_else(|| self.find_writer())
    }

    #[cold]
    fn find_writer(&self) -> Option<Writer> {
        // SAFETY: only the carrier itself asks; one with a ring never ends.
        let writer = unsafe { recorder::writer(self.number, ptr::from_ref(self).addr()) };
        self.writer.set(writer);
        writer
    }

    /// Returns the processor that the running thread occupies, if one can take it off that.
    #[inline]
    pub(crate) fn occupied(&self) -> Option<Holder<'_>> {
        // SAFETY: the caller of `mount_lent` holds the other one.
        self.processor()
            .or_else(|| self.lent.get().map(|lent| unsafe { Holder::new(lent) }))
    }

    /// Returns what tells readers outside which thread is mounted.
    #[inline]
    pub(super) fn mounted(&self) -> &Mounted {
        &self.mounted
    }

    /// Calls `f`. The threads of this carrier's runtime that it makes runnable are urgent.
    ///
    /// They are not enqueued on the processor, which the carrier gives up for the time being.
    #[inline]
    pub(crate) fn urgently(&self, f: impl FnOnce()) {
        let processor = self.processor.take();
        self.urgently.set(true);
        f();
        self.urgently.set(false);
        self.processor.set(processor);
    }

    /// Says whether the threads are urgent that the carrier, which has no processor, makes runnable
    /// from now on.
    #[inline]
    pub(crate) fn set_urgent(&self, urgent: bool) {
        self.urgently.set(urgent);
    }

    /// Returns whether threads that are made runnable now are [urgent](Self::urgently).
    #[inline]
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgently.get()
    }

    /// Returns the signals that the platform thread blocked when it became a carrier: bit `n - 1`
    /// for signal `n`.
    #[inline]
    pub fn blocked_signals(&self) -> u64 {
        self.blocked_signals
    }

    /// Returns the thread pointer of the platform thread.
    #[inline]
    pub fn native_tp(&self) -> usize {
        self.native.tp()
    }

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
        if self.yielded.take() == Some(NonNull::from(thread.core())) {
            // The thread found nothing else to run here, and may be waiting for an OS thread. It
            // counts as runnable meanwhile, so that a dump can hold it.
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
        core.set_running(self.number);
        // In this order, by which `at_mount` knows whether the thread can still be held.
        compiler_fence(Ordering::SeqCst);
        if !core.at_mount.is_nothing() {
            self.attend_to(core);
        }
        core.carrier.set(self);
        self.mounted.set(core);
        thread.into_raw()
    }

    /// Does what a mount has to do besides: gives a new thread a stack, notes for how long the
    /// thread was runnable, waits while it is looked at.
    ///
    /// Cold like [`bury`](Self::bury): inlining them would slow down all other switches.
    #[cold]
    fn attend_to(&self, core: &Core) {
        let duty = core.at_mount.take(sys::back_off);
        if core.wait.is_summoned() {
            summons::heat(self.runtime());
        }
        let new = self.ensure_stack(core);
        let (processor, outside) = (self.occupied(), &core.runtime().outside);
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

    /// Returns whether the thread is mounted for the first time. Then it has a stack from now on.
    #[inline]
    fn ensure_stack(&self, core: &Core) -> bool {
        match core.slot() {
            None => self.give_stack(core),
            // Its creator has laid it out: see `early`.
            // SAFETY: it leaves at its end, before its own reference is released.
            Some(slot) if !table::is_resident(slot) => unsafe { table::enter(slot, core) },
            Some(_) => return false,
        }
        true
    }

    /// Gives a thread that is mounted for the first time the slot that `spawn` reserved.
    #[inline]
    fn give_stack(&self, core: &Core) {
        let slot = match self.processor() {
            Some(p) if core.class() == p.runtime().settings.default_class => p.take_slot(),
            _ => core.runtime().stacks.take(core.class()),
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
        match after {
            After::Park => {
                core.set_phase(Phase::Waiting);
                if !core.handshake.parked() {
                    // SAFETY: the handshake gave us the duty to enqueue it.
                    sched::enqueue_woken(self.processor(), unsafe { Ready::new(thread) });
                }
            }
            After::Yield | After::MakeWay => {
                // SAFETY: it is off its stack, and no other code can reach it.
                sched::enqueue(self.processor(), unsafe { Ready::new(thread) });
            }
            // SAFETY: it is off its stack, and no other code can reach it.
            After::Preempt => sched::put_aside(self, unsafe { Ready::new(thread) }),
            // SAFETY: the thread was switched away from for the last time.
            After::Exit => unsafe { self.bury(thread) },
        }
    }

    /// Frees the slot of a thread that has ended, and releases the thread's own reference.
    ///
    /// # Safety
    /// The thread has ended, is off its stack, and still has its own reference.
    #[cold]
    unsafe fn bury(&self, thread: NonNull<Core>) {
        // SAFETY: the thread's own reference is released below.
        let core = unsafe { thread.as_ref() };
        let class = core.class();
        if let Some(slot) = core.slot() {
            table::leave(slot);
        }
        summons::end(core); // No signal of the process's is given to it from here on.
        match self.occupied() {
            Some(processor) => processor.counters().ended.add(1),
            None => core.runtime().outside.ended.add_shared(1),
        }
        // SAFETY: it will not be resumed, by our contract.
        if let Some(slot) = unsafe { core.continuation.take_slot() } {
            match self.processor() {
                Some(p) if class == p.runtime().settings.default_class => p.put_slot(slot),
                _ => {
                    let stacks = &core.runtime().stacks;
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
/// The carrier goes on with the next thread of its processor's queue, directly, or else returns
/// to its own stack; always so after a preemption, because others than the next may be urgent.
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

/// Lets threads run that the running one has woken: it goes to the back of its queue. A platform
/// thread naps.
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
    let _mark = Raised::new();
    // SAFETY: mounted, so the carrier is alive and this OS thread's.
    let carrier = unsafe { &*core.carrier.get() };
    let processor = carrier.processor();
    if matches!(after, After::Park) {
        let kind = core.awaits.what().index();
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
    unsafe { &*core.carrier.get() }.finish_switch();
}

/// Parks the running virtual thread until the `wake` of its handshake, which must come exactly
/// once, and may have come already.
#[inline(always)]
pub fn park(core: Current) {
    if !core.handshake.woken_early() {
        suspend(core, After::Park);
        core.handshake.resumed();
    }
}
