//! The handshake between a thread that leaves its stack and a thread that wakes it meanwhile.
//!
//! A thread that parks becomes visible to wakers while it still runs: it has registered with a
//! timer, a poller or a wait queue, and its registers are not yet saved. If the waker put it on a
//! run queue then, another carrier could mount a stack that is in use. So the thread goes on a run
//! queue only when *both* have happened: it is off its stack, and it was woken. The second of the
//! two events enqueues it.
//!
//! ```text
//!   RUNNING   mounted, or on the way to being parked: its context is not saved
//!   PARKED    off its stack, context saved, not woken
//!   WALKED    parked, and somebody reads its stack
//!   RUNNABLE  woken
//!
//!   from       to         by             which means
//!   RUNNING    PARKED     parked         the thread is off its stack; the waker enqueues it
//!   PARKED     RUNNABLE   wake           the waker came second: it enqueues the thread
//!   RUNNING    RUNNABLE   wake           the waker came first
//!   RUNNABLE   RUNNABLE   parked         ... and whoever calls `parked` enqueues the thread
//!   RUNNABLE   RUNNING    woken_early    ... or the thread never left its stack
//!   RUNNABLE   RUNNING    resumed        the thread runs again
//!   PARKED     WALKED     begin_walk     the walker may read the stack
//!   WALKED     PARKED     end_walk       nobody came meanwhile
//!   WALKED     RUNNABLE   wake           the waker came meanwhile
//!   RUNNABLE   RUNNABLE   end_walk       ... and the walker enqueues the thread
//! ```
//!
//! There must be exactly one `wake` per park episode. `ParkPermit` and the wait queues ensure that,
//! because only one waker claims their entry for the thread. A thread that yields uses none of
//! this: it stays `RUNNING` and the code on the next stack enqueues it. Nor does a thread that is
//! preempted. That may be on its way to being parked, so it may be `RUNNABLE`, and stays so: a
//! waker that came then has left it to `woken_early` to notice. Therefore `resumed` is a step of
//! the thread that has parked, and not of the code that mounts it.

use crate::primitives::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const RUNNING: u32 = 0;
const PARKED: u32 = 1;
const RUNNABLE: u32 = 2;
const WALKED: u32 = 3;

/// Delays a wake-up until the thread is off its stack.
#[derive(Debug)]
pub(crate) struct Handshake {
    state: AtomicU32,
}

impl Handshake {
    /// Returns the handshake of a running thread.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(RUNNING),
        }
    }

    /// `RUNNABLE → RUNNING`. For the thread itself, as the last step before it leaves its stack: if
    /// this returns `true`, the thread was woken already and goes on.
    #[must_use = "`true` means that the thread was woken: it must not leave its stack"]
    pub(crate) fn woken_early(&self) -> bool {
        // Acquire: pairs with the Release in `wake`, for what the waker did before.
        let woken = self.state.load(Acquire) == RUNNABLE;
        if woken {
            // Relaxed: the only wake of this episode has happened, and the next waker learns of the
            // next episode from this thread. For the same reason a store suffices in place of a
            // swap.
            self.state.store(RUNNING, Relaxed);
        }
        woken
    }

    /// `RUNNING → PARKED`. For the code on the next stack, once the thread's context has been
    /// saved. Returns `false` if the thread was woken meanwhile: then the caller must enqueue it.
    ///
    /// After `true` the caller must not touch the thread: it may be running, or gone.
    #[must_use = "`false` is the duty to enqueue the thread"]
    #[inline]
    pub(crate) fn parked(&self) -> bool {
        // Release: pairs with the Acquire in `wake`, for the saved context. Acquire on failure:
        // pairs with the Release in `wake`, for what the waker did before.
        let parked = self
            .state
            .compare_exchange(RUNNING, PARKED, Release, Acquire);
        debug_assert_ne!(parked, Err(PARKED), "a thread parked twice");
        parked.is_ok()
    }

    /// `any → RUNNABLE`, once per episode. Returns `true` if the thread was off its stack, and
    /// nobody read that: then the caller must enqueue it.
    ///
    /// After `false` the caller must not touch the thread: it may be running, or gone.
    #[must_use = "`true` is the duty to enqueue the thread"]
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        // Acquire: pairs with the Release in `parked`, for the saved context, and in `end_walk`,
        // for the reads of the stack. Release: pairs with the Acquire in `parked`, `woken_early`
        // and `end_walk`, for what the caller did before.
        let before = self.state.swap(RUNNABLE, AcqRel);
        debug_assert_ne!(before, RUNNABLE, "a thread woken twice");
        before == PARKED
    }

    /// `PARKED → WALKED`. Returns whether the thread is parked: then it stays so, and its stack may
    /// be read, until [`end_walk`](Self::end_walk), which must follow.
    #[must_use = "`true` is the duty to call `end_walk`"]
    #[inline]
    pub(crate) fn begin_walk(&self) -> bool {
        // Acquire: pairs with the Release in `parked`, for the saved context. Relaxed on failure:
        // nothing is concluded.
        self.state
            .compare_exchange(PARKED, WALKED, Acquire, Relaxed)
            .is_ok()
    }

    /// `WALKED → PARKED`. Returns `false` if the thread was woken meanwhile: then the caller must
    /// enqueue it.
    ///
    /// After `true` the caller must not touch the thread's stack.
    #[must_use = "`false` is the duty to enqueue the thread"]
    #[inline]
    pub(crate) fn end_walk(&self) -> bool {
        // Release: pairs with the Acquire in `wake`, for our reads of the stack. Acquire on
        // failure: pairs with the Release in `wake`, for what the waker did before.
        let parked = self
            .state
            .compare_exchange(WALKED, PARKED, Release, Acquire);
        parked.is_ok()
    }

    /// `RUNNABLE → RUNNING`. For the thread itself, once it runs again after it was parked.
    #[inline]
    pub(crate) fn resumed(&self) {
        // Relaxed: the run queue has ordered this after the wake-up, and the next waker learns of
        // the next episode from this thread.
        self.state.store(RUNNING, Relaxed);
    }
}

impl Default for Handshake {
    fn default() -> Self {
        Self::new()
    }
}
