//! The park permit, which `park` waits for and `unpark` makes available.
//!
//! ```text
//!   EMPTY     no permit; the thread is not parked
//!   PARKED    the thread is parked, or on its way there, and has to be woken
//!   NOTIFIED  there is a permit
//!
//!   from       to         by             which means
//!   EMPTY      PARKED     begin_park     the thread will park
//!   NOTIFIED   EMPTY      begin_park     ... or finds a permit and does not
//!   NOTIFIED   EMPTY      try_consume    the same, before any preparation to park
//!   EMPTY      NOTIFIED   unpark         the next park returns at once
//!   PARKED     NOTIFIED   unpark         the caller has to wake the thread
//!   NOTIFIED   NOTIFIED   unpark         permits do not add up
//!   PARKED     EMPTY      expire         time is up: the caller has to wake the thread
//!   NOTIFIED   EMPTY      end_park       the thread runs again and uses up its permit
//!   EMPTY      EMPTY      end_park       ... or it had expired
//! ```
//!
//! `PARKED` is entered once and left once per episode, by one read-modify-write of one thread. That
//! thread, and no other, has the right and the duty to wake the parked one. The `Handshake` relies
//! on this guarantee.
//!
//! A permit that comes after the expiry but before `end_park` is consumed by `end_park`, as in
//! `std`: the park has not returned yet, and either may have woken the thread.

use crate::primitives::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

/// The park permit of one thread. There is at most one, and `park` consumes it.
///
/// The thread itself calls `try_consume`, `begin_park` and `end_park`; all others call `unpark` and
/// `expire`. Everything before an `unpark` happens before the return of the park that consumes its
/// permit.
#[derive(Debug)]
pub struct ParkPermit {
    state: AtomicU32,
}

impl ParkPermit {
    /// Returns a state without a permit.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
        }
    }

    /// `NOTIFIED → EMPTY`. Returns whether a permit was there: then park returns at once.
    #[must_use]
    #[inline]
    pub fn try_consume(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`, for what its caller did before. Relaxed on
        // failure: nothing is concluded from it.
        self.state
            .compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed)
            .is_ok()
    }

    /// `EMPTY → PARKED`, or `NOTIFIED → EMPTY`. Returns `true` if the thread must park, `false` if
    /// it found a permit and has consumed it.
    ///
    /// From a `true` on, the wake-up may come, even though the thread still runs.
    #[must_use]
    pub fn begin_park(&self) -> bool {
        // Release: pairs with the Acquire in `unpark` and `expire`: the thread that must wake this
        // one sees what it prepared. Relaxed on failure: the swap below acquires.
        let parking = self
            .state
            .compare_exchange(EMPTY, PARKED, Release, Relaxed)
            .is_ok();
        if !parking {
            // Acquire: pairs with the Release in `unpark`. It must be a swap: a plain store could
            // overwrite, unseen, the permit of a later `unpark`.
            let permit = self.state.swap(EMPTY, Acquire);
            debug_assert_eq!(permit, NOTIFIED, "two threads park on one permit");
        }
        parking
    }

    /// Returns whether the thread parks, or is about to.
    #[allow(dead_code)] // the models do without it
    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        self.state.load(Relaxed) == PARKED // Relaxed: the thread's own.
    }

    /// `any → NOTIFIED`. Returns `true` if the thread was parked: then the caller must wake it.
    #[must_use = "`true` is the duty to wake the thread"]
    #[inline]
    pub fn unpark(&self) -> bool {
        // Release: pairs with the Acquire in `try_consume`, `begin_park` and `end_park`, for what
        // the caller did before. Acquire: pairs with the Release in `begin_park`, for what the
        // thread prepared.
        self.state.swap(NOTIFIED, AcqRel) == PARKED
    }

    /// `PARKED → EMPTY`, for a timer or an interrupt. Returns `true` if the caller must wake the
    /// thread, `false` if it was not parked or another thread must wake it.
    ///
    /// A late expiry, in the thread's next park, ends that park. So cancel timers before
    /// `end_park`, or accept the spurious return.
    #[must_use = "`true` is the duty to wake the thread"]
    #[inline]
    pub(crate) fn expire(&self) -> bool {
        // Acquire: pairs with the Release in `begin_park`, for what the thread prepared. No
        // Release: there is no permit, and the wake-up itself orders the caller before the thread.
        // Relaxed on failure: another thread performs the wake-up, or there is none.
        self.state
            .compare_exchange(PARKED, EMPTY, Acquire, Relaxed)
            .is_ok()
    }

    /// `NOTIFIED → EMPTY`, or `EMPTY` unchanged. For the thread that was woken, when it runs again.
    /// Returns whether it has consumed a permit; if not, the park expired.
    #[inline]
    pub fn end_park(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`, for what its caller did before.
        let woken_by = self.state.swap(EMPTY, Acquire);
        debug_assert_ne!(woken_by, PARKED, "a thread runs that was not woken");
        woken_by == NOTIFIED
    }
}

impl Default for ParkPermit {
    fn default() -> Self {
        Self::new()
    }
}
