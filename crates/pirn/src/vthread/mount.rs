//! Mounting and unmounting: how a virtual thread gets on and off a platform thread.
//!
//! A [`Carrier`] is a platform thread while it carries. A mounted virtual thread leaves it by
//! [`suspend`], which names what is to be done with it *after* its registers are saved (its
//! [`After`]); whoever runs next on that platform thread, its own stack or the next virtual thread,
//! does it first of all ([`Carrier::finish_switch`]). It cannot be done before the switch: as soon
//! as a thread is published as runnable, another carrier may resume it.
//!
//! ```text
//!   event                          handshake          phase
//!   first mount, later mounts      -> RUNNING         -> Running
//!   suspend(Park)                  RUNNING -> PARKED  -> Waiting
//!     … woken before the switch    stays RUNNABLE     -> Runnable, enqueued at once
//!   wake                           PARKED -> RUNNABLE -> Runnable, enqueued by the waker
//!   suspend(Yield)                 unchanged          -> Runnable, enqueued
//!   suspend(Exit)                  unchanged          -> Terminated, stack given back
//! ```

use super::Ready;
use super::life;
use super::record::{Core, Phase};
use crate::continuation::Continuation;
use crate::mark::{self, Raised};
use crate::runtime::Runtime;
use crate::sched::{self, Processor};
use crate::sys;
use core::cell::Cell;
use core::ptr::{self, NonNull};

thread_local! {
    /// The virtual thread that this TLS block belongs to. In each virtual thread's own block, so
    /// it never changes between the first and the last instruction of a thread.
    static CURRENT: Cell<*const Core> = const { Cell::new(ptr::null()) };
    /// The carrier that this platform thread is, while it is one.
    static CARRIER: Cell<*const Carrier> = const { Cell::new(ptr::null()) };
}

/// The running virtual thread; none on a platform thread.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Core> {
    // SAFETY: a thread's core outlives its last instruction. The 'static is a lie told to
    // callers on that very thread only: nobody may send the reference elsewhere.
    CURRENT.with(|current| unsafe { current.get().as_ref() })
}

/// Returns the running virtual thread, if it may be parked just now: the [`mark`] is down.
#[inline(always)]
pub(crate) fn parkable() -> Option<&'static Core> {
    current().filter(|_| !mark::is_up())
}

/// The carrier under the running code, be that a virtual thread or the carrier's own loop.
///
/// The mark keeps the thread on this carrier for as long as the reference lives; a [`suspend`] must
/// not come before its end either: the thread may go on on another carrier.
#[inline(always)]
pub(crate) fn carrier(_: &Raised) -> Option<&Carrier> {
    let pointer = match current() {
        Some(thread) => thread.carrier.get(),
        None => CARRIER.with(Cell::get),
    };
    // SAFETY: a carrier lives as long as it carries.
    unsafe { pointer.as_ref() }
}

/// Notes which virtual thread the running TLS block belongs to: the first that each does.
pub(super) fn set_current(thread: *const Core) {
    CURRENT.set(thread);
}

/// Makes the running virtual thread a platform thread from now on, for everything that asks
/// [`current`]: for the child of a `fork`, where no carrier is left to go back to.
pub(crate) fn become_platform_thread() {
    set_current(ptr::null());
}

/// What is to be done with a thread that has just been switched away from.
#[derive(Clone, Copy)]
pub(crate) enum After {
    /// It waits for a wake.
    Park,
    /// It goes to the back of the queue.
    Yield,
    /// The same, but only to let other virtual threads run: other OS threads do not get the core if
    /// there are none.
    MakeWay,
    /// It has ended.
    Exit,
}

/// A platform thread that virtual threads are mounted on.
pub(crate) struct Carrier {
    /// Its own stack and TLS.
    native: Continuation,
    /// The thread switched away from, and what to do with it.
    left: Cell<Option<(NonNull<Core>, After)>>,
    /// The thread that last came back to `native` by a yield, until another is mounted from there.
    /// Compared only, never followed: it may have ended elsewhere.
    yielded: Cell<Option<NonNull<Core>>>,
    /// The runtime whose threads it runs.
    runtime: Cell<&'static Runtime>,
    /// The processor it holds; null when it runs threads of a user's scheduler.
    processor: Cell<*const Processor>,
    /// For people: which carrier this is.
    pub(crate) number: u32,
}

impl Carrier {
    /// Makes the running platform thread a carrier of `runtime`.
    pub(crate) fn new(number: u32, runtime: &'static Runtime) -> Carrier {
        crate::glibc::malloc::ensure_cache();
        crate::stack::overflow::ensure_signal_stack();
        Carrier {
            native: Continuation::native(),
            left: Cell::new(None),
            yielded: Cell::new(None),
            runtime: Cell::new(runtime),
            processor: Cell::new(ptr::null()),
            number,
        }
    }

    /// Makes this the running platform thread's carrier, for threads of `runtime`, for the duration
    /// of `f`.
    pub(crate) fn enter<R>(&self, runtime: &'static Runtime, f: impl FnOnce() -> R) -> R {
        let outer = CARRIER.replace(self);
        let outer_runtime = self.runtime.replace(runtime);
        let result = f();
        self.runtime.set(outer_runtime);
        CARRIER.set(outer);
        result
    }

    /// Returns the runtime whose threads it runs.
    #[inline]
    pub(crate) fn runtime(&self) -> &'static Runtime {
        self.runtime.get()
    }

    /// The processor it holds.
    #[inline]
    pub(crate) fn processor(&self) -> Option<&'static Processor> {
        // SAFETY: processors are never freed.
        unsafe { self.processor.get().as_ref() }
    }

    pub(crate) fn set_processor(&self, processor: Option<&'static Processor>) {
        self.processor.set(processor.map_or(ptr::null(), |p| p));
    }

    /// Thread pointer of the platform thread.
    pub(crate) fn native_tp(&self) -> usize {
        self.native.tp()
    }

    /// Mounts a thread from the platform thread's own stack. Returns when this platform thread
    /// has nothing mounted any more: not necessarily because this one thread was unmounted.
    ///
    /// # Safety
    /// The caller runs on this carrier's own stack.
    pub(crate) unsafe fn mount(&self, thread: Ready) {
        let thread = self.take_over(thread);
        if self.yielded.take() == Some(thread) {
            // It found nothing else to run here, and may be waiting for an OS thread.
            sys::os_yield();
        }
        // A user's scheduler may run a thread from within a thread that this very carrier
        // has mounted. Then the outer return address must survive.
        let outer = self.native.saved();
        // SAFETY: the native continuation is the running one; the other was ours to run.
        unsafe { self.native.switch(&thread.as_ref().continuation) };
        self.native.restore(outer);
        self.note_yield();
        self.finish_switch();
    }

    /// Notes that the thread that was just switched away from has yielded, and to nobody so far.
    fn note_yield(&self) {
        if let Some((thread, After::Yield)) = self.left.get() {
            self.yielded.set(Some(thread));
        }
    }

    /// Prepares a thread to be switched to on this carrier, as the caller is going to: then it is
    /// alive until it comes back to [`finish_switch`](Self::finish_switch).
    #[inline(always)]
    fn take_over(&self, thread: Ready) -> NonNull<Core> {
        let core = thread.core();
        if core.continuation.slot().is_none() {
            self.give_stack(core);
        }
        core.handshake.mounted();
        core.set_running(self.number);
        core.carrier.set(self);
        thread.into_raw()
    }

    /// Gives a thread that is mounted for the first time the slot that `spawn` reserved.
    ///
    /// Cold like [`bury`](Self::bury): each runs once per thread, and inlined into the switch they
    /// would be in the way of the many others.
    #[cold]
    fn give_stack(&self, core: &Core) {
        let slot = match self.processor() {
            // SAFETY: this carrier holds the processor.
            Some(p) if core.class() == p.runtime().settings.default_class => unsafe {
                p.take_slot()
            },
            _ => core.runtime().stacks.take(core.class()),
        };
        // SAFETY: the slot is this thread's until its end.
        unsafe {
            core.continuation
                .prepare(slot, life::entry, ptr::from_ref(core) as *mut u8)
        };
    }

    /// Does what the thread that was just switched away from had asked for.
    #[inline]
    pub(super) fn finish_switch(&self) {
        let Some((thread, after)) = self.left.take() else {
            return;
        };
        // SAFETY: its own reference is alive until `Exit` below releases it.
        let core = unsafe { &*thread.as_ptr() };
        match after {
            After::Park => {
                core.set_phase(Phase::Waiting);
                if !core.handshake.parked() {
                    // SAFETY: the handshake says so.
                    sched::enqueue(self.processor(), unsafe { Ready::new(thread) });
                }
            }
            After::Yield | After::MakeWay => {
                // SAFETY: it is off its stack, and nobody else knows of it.
                sched::enqueue(self.processor(), unsafe { Ready::new(thread) });
            }
            After::Exit => self.bury(thread, core),
        }
    }

    /// Takes the slot of a thread that has ended, and gives up its own reference.
    #[cold]
    fn bury(&self, thread: NonNull<Core>, core: &Core) {
        let class = core.class();
        // SAFETY: it will not be resumed.
        if let Some(slot) = unsafe { core.continuation.take_slot() } {
            match self.processor() {
                // SAFETY: this carrier holds the processor.
                Some(p) if class == p.runtime().settings.default_class => unsafe {
                    p.put_slot(slot)
                },
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
/// to its own stack.
#[inline(always)]
pub(crate) fn suspend(core: &'static Core, after: After) {
    let _mark = Raised::new();
    // SAFETY: mounted, so the carrier is alive and this OS thread's.
    let carrier = unsafe { &*core.carrier.get() };
    // SAFETY: this OS thread holds the processor.
    let next = carrier
        .processor()
        .and_then(|p| unsafe { p.next_to_hand_over() });
    carrier.left.set(Some((NonNull::from(core), after)));
    // SAFETY: `core` is the running continuation; the other one is suspended and ours to run.
    unsafe {
        match next {
            Some(next) => {
                let next = carrier.take_over(next);
                core.continuation.switch(&next.as_ref().continuation);
            }
            None => core.continuation.switch(&carrier.native),
        }
    }
    // Mounted again: perhaps by another carrier.
    // SAFETY: set by `take_over` before the switch to us.
    unsafe { &*core.carrier.get() }.finish_switch();
}

/// Parks the running virtual thread until its handshake's `wake`, which must come exactly once,
/// and may have come already.
#[inline(always)]
pub(crate) fn park(core: &'static Core) {
    if !core.handshake.woken_early() {
        suspend(core, After::Park);
    }
}

/// Performs a wake that the caller has won the right to.
#[inline]
pub(crate) fn wake(thread: NonNull<Core>) {
    // SAFETY: it waits for this very wake, so it is alive.
    if unsafe { thread.as_ref() }.handshake.wake() {
        // SAFETY: the handshake says so.
        sched::make_runnable(unsafe { Ready::new(thread) });
    }
}
