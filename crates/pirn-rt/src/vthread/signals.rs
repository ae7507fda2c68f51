//! The signals of a virtual thread: which it blocks, which are pending for it, and which it waits
//! for. What is done about them is in `pirn-libc/signals`.
//!
//! The kernel knows the carriers only, which block all signals that others can send. So these three
//! sets, one bit per signal as in the kernel's, stand for its own. They are part of the record, and
//! no switch looks at them.
//!
//! ```text
//!   sender                              thread
//!   S1  pending |= signal               T1  mask or awaited changes
//!   S2  mask, awaited: to be told?      T2  anything in pending?
//! ```
//!
//! All four are sequentially consistent: one of the two finds what the other has done. The same
//! holds for the thread that leaves a signal ([`LEFT`]) and one that begins to take it.

use super::{Core, current};
use crate::no_suspend;
use crate::sys;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

/// See the module's documentation.
pub struct Signals {
    pub mask: AtomicU64,
    pub pending: AtomicU64,
    pub awaited: AtomicU64,
}

/// Returns the bit of a signal in a set.
#[inline]
pub const fn bit(signal: i32) -> u64 {
    1 << (signal as u32 - 1)
}

/// The signals that a thread causes itself, by what it executes. No platform thread of the runtime
/// blocks them: the kernel would end the process at the next fault.
pub const SYNCHRONOUS: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGILL)
    | bit(libc::SIGFPE)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS)
    | bit(libc::SIGABRT);

/// The signals that the kernel sends to a thread for a call of the thread's own. Carriers and the
/// pool's threads do not block them.
pub const RAISED: u64 = bit(libc::SIGPIPE) | bit(libc::SIGXFSZ);

/// The signals that cannot be blocked, and libc's own (32: cancellation; 33: `setuid`).
pub const NEVER_BLOCKED: u64 = bit(libc::SIGKILL) | bit(libc::SIGSTOP) | bit(32) | bit(33);

/// The signals that carriers and helpers of the runtime block.
pub const OTHERS: u64 = !(SYNCHRONOUS | NEVER_BLOCKED);

/// Signals that were pending for the process when `pirn-libc` last looked for a thread that takes
/// them, and may be still. A thread that begins to take some of them [has work](Signals::has_work).
pub static LEFT: AtomicU64 = AtomicU64::new(0);

/// Begins anew, in the child of a fork: it inherits no pending signals.
pub fn after_fork() {
    LEFT.store(0, SeqCst);
}

impl Signals {
    /// Returns the signals of a thread that the running one makes.
    #[inline(always)]
    pub(crate) fn inherited() -> Signals {
        Signals {
            mask: AtomicU64::new(mask()),
            pending: AtomicU64::new(0),
            awaited: AtomicU64::new(0),
        }
    }

    /// Returns the pending signals that are to be delivered.
    #[inline]
    pub fn deliverable(&self) -> u64 {
        self.pending.load(SeqCst) & !self.mask.load(SeqCst)
    }

    /// Returns the signals that the thread has to be told of.
    #[inline]
    pub fn wanted(&self) -> u64 {
        !self.mask.load(SeqCst) | self.awaited.load(SeqCst)
    }

    /// Returns whether the thread has signals to deliver, or to look for.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.deliverable() != 0 || LEFT.load(SeqCst) & self.wanted() != 0
    }

    /// Returns whether any signal is pending, or was a moment ago.
    #[inline(always)]
    pub fn any_pending(&self) -> bool {
        self.pending.load(Relaxed) != 0 // Relaxed: a late signal may be lost, as natively.
    }

    /// Returns whether a signal is pending that the thread waits for.
    #[inline]
    pub fn any_awaited(&self) -> bool {
        self.pending.load(SeqCst) & self.awaited.load(SeqCst) != 0
    }

    /// Returns whether the thread has to be told of a signal.
    #[inline]
    pub fn wants(&self, signal: i32) -> bool {
        self.wanted() & bit(signal) != 0
    }
}

/// Set in [`KNOWN`] if its other bits are valid: the bit of a signal that cannot be blocked.
const IS_KNOWN: u64 = bit(libc::SIGKILL);

thread_local! {
    /// On a platform thread: the mask that the kernel has, once a thread has asked for it.
    static KNOWN: Cell<u64> = const { Cell::new(0) };
    /// On a thread of the pool: the virtual thread whose call it makes.
    static CALLER: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Returns the signals that the running thread blocks.
#[inline(always)]
pub fn mask() -> u64 {
    match current() {
        Some(thread) => thread.signals.mask.load(SeqCst),
        None => match KNOWN.get() {
            known if known & IS_KNOWN != 0 && !no_suspend::in_handler() => known & !IS_KNOWN,
            _ => learn(),
        },
    }
}

/// Asks the kernel for the mask of the running platform thread.
#[cold]
fn learn() -> u64 {
    let mask = no_suspend::blocked_signals();
    if !no_suspend::in_handler() {
        KNOWN.set(mask | IS_KNOWN);
    }
    mask
}

/// Forgets the mask of the running platform thread, which has changed it.
#[inline]
pub fn forget() {
    KNOWN.set(0);
}

/// Makes the running platform thread, a carrier or a helper, block the signals that others can
/// send. The virtual threads that it makes block nothing.
#[inline]
pub fn block_others() {
    sys::block_only(OTHERS);
    KNOWN.set(IS_KNOWN);
}

/// Does what [`block_others`] does, except for the signals that are [`RAISED`]. For a platform
/// thread that makes calls for virtual threads.
#[inline]
pub(crate) fn block_others_but_raised() {
    block_others();
    sys::block_only(OTHERS & !RAISED);
}

/// Calls `f`, a call that the running platform thread makes for `thread`, which waits for its end.
pub(crate) fn on_behalf_of<R>(thread: *const Core, f: impl FnOnce() -> R) -> R {
    CALLER.set(thread);
    compiler_fence(SeqCst); // The call may raise a signal on this thread.
    let result = f();
    compiler_fence(SeqCst);
    CALLER.set(ptr::null());
    result
}

/// Returns the virtual thread whose call this platform thread makes, or null.
#[inline]
pub fn caller() -> *const Core {
    CALLER.get()
}
