//! The request to a platform thread to stop, and its registers in answer.
//!
//! ```text
//!   the asker                             the handler of the signal, on the thread that is asked
//!   IDLE     -> ASKED       ask
//!                                         ASKED    -> ANSWERED   answer: the registers are there
//!   reads the thread's stack              waits, for a millisecond at most
//!   ANSWERED -> IDLE        release       goes on
//!
//!   ASKED    -> IDLE        withdraw: there has been no answer for a millisecond
//!                                         ANSWERED -> LEFT       it has waited for long enough
//!   LEFT     -> IDLE        release: what was read meanwhile may be wrong
//! ```
//!
//! The three states with a thread have its id above them. There is one request at a time. While a
//! thread is stopped, the asker allocates nothing and takes no lock: the thread may hold it.

use crate::primitives::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

const IDLE: u64 = 0;
const ASKED: u64 = 1;
const ANSWERED: u64 = 2;
const LEFT: u64 = 3;
/// The place of the thread's id.
const SHIFT: u32 = 2;

/// The registers with which a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    pub pc: usize,
    pub sp: usize,
    pub bp: usize,
    /// Where a function returns to that has not put it on the stack; 0 on processors on which the
    /// call does.
    pub lr: usize,
}

/// See the module's documentation. All words are 0 at first.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) state: AtomicU64,
    pub(crate) pc: AtomicUsize,
    pub(crate) sp: AtomicUsize,
    pub(crate) bp: AtomicUsize,
    pub(crate) lr: AtomicUsize,
}

impl Request {
    /// `IDLE → ASKED`. The signal follows. Returns `false` if another reader asks just now.
    #[must_use = "`true` is the duty to withdraw or to release"]
    pub(crate) fn ask(&self, thread: u32) -> bool {
        let asked = u64::from(thread) << SHIFT | ASKED;
        // Acquire: pairs with the Release in `withdraw` and `release`: askers come one after the
        // other. Relaxed on failure: nothing is concluded.
        self.state
            .compare_exchange(IDLE, asked, Acquire, Relaxed)
            .is_ok()
    }

    /// Returns where the thread is that was asked, if it has answered. Called by the asker.
    pub(crate) fn registers(&self) -> Option<Registers> {
        // Acquire: pairs with the Release in `answer`, for the registers and the stack.
        let state = self.state.load(Acquire);
        matches!(state & LEFT, ANSWERED | LEFT).then(|| Registers {
            pc: self.pc.load(Relaxed), // Relaxed, like the others: ordered by the load above.
            sp: self.sp.load(Relaxed),
            bp: self.bp.load(Relaxed),
            lr: self.lr.load(Relaxed),
        })
    }

    /// `ASKED → IDLE`. Called by the asker. Returns `false` if the thread has just answered.
    pub(crate) fn withdraw(&self) -> bool {
        // Relaxed: only an asker changes the state from IDLE and to it, and this one has asked.
        let state = self.state.load(Relaxed);
        // Release: pairs with the Acquire in `ask`. Relaxed on failure: `registers` follows.
        state & LEFT == ASKED
            && self
                .state
                .compare_exchange(state, IDLE, Release, Relaxed)
                .is_ok()
    }

    /// `ANSWERED → IDLE` or `LEFT → IDLE`. Called by the asker, once it has read the stack. Returns
    /// whether the thread was stopped until now.
    pub(crate) fn release(&self) -> bool {
        // Relaxed: as in `withdraw`.
        let state = self.state.load(Relaxed);
        // Release: pairs with the Acquire in `may_go_on`, for our reads of the stack.
        let stood = state & LEFT == ANSWERED
            && self
                .state
                .compare_exchange(state, IDLE, Release, Relaxed)
                .is_ok();
        if !stood {
            self.state.store(IDLE, Release); // Release: pairs with the Acquire in `ask`.
        }
        stood
    }

    /// Returns whether this thread may have been asked. For the handler, which any signal runs.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Relaxed) == IDLE // Relaxed: the signal comes afterwards.
    }

    /// `ASKED → ANSWERED`, if it is this thread that was asked. For the handler, which then waits
    /// until it [may go on](Self::may_go_on).
    #[must_use = "`true` means that the asker reads the thread's stack"]
    pub(crate) fn answer(&self, thread: u32, registers: Registers) -> bool {
        let [asked, answered] = [ASKED, ANSWERED].map(|it| u64::from(thread) << SHIFT | it);
        if self.state.load(Relaxed) != asked {
            return false; // Relaxed: the exchange below checks it.
        }
        self.pc.store(registers.pc, Relaxed); // Relaxed, like the others: published below.
        self.sp.store(registers.sp, Relaxed);
        self.bp.store(registers.bp, Relaxed);
        self.lr.store(registers.lr, Relaxed);
        // Release: pairs with the Acquire in `registers`. Relaxed on failure: it was withdrawn.
        self.state
            .compare_exchange(asked, answered, Release, Relaxed)
            .is_ok()
    }

    /// Returns whether the asker has read the stack. For the handler, after its answer.
    pub(crate) fn may_go_on(&self, thread: u32) -> bool {
        // Acquire: pairs with the Release in `release`.
        self.state.load(Acquire) != (u64::from(thread) << SHIFT | ANSWERED)
    }

    /// `ANSWERED → LEFT`, if the asker is not done. For the handler, which then goes on.
    pub(crate) fn leave(&self, thread: u32) {
        let [answered, left] = [ANSWERED, LEFT].map(|it| u64::from(thread) << SHIFT | it);
        // Acquire on failure: pairs with the Release in `release`. Relaxed on success: the asker
        // will not believe what it reads from now on.
        let _ = self
            .state
            .compare_exchange(answered, left, Relaxed, Acquire);
    }
}
