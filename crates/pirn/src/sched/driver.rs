//! What the scheduler needs from the layer above it: something to wait *for* when there is nothing
//! to run.
//!
//! Timers and descriptors are blocking's business, but it is idle carriers that wait for them.
//! So blocking implements this trait and installs itself at start.

use core::sync::atomic::{AtomicPtr, Ordering};

/// The source of events outside the scheduler.
pub(crate) trait Driver: Sync {
    /// Wakes the threads whose timers are due and whose descriptors are ready, without waiting.
    /// Returns whether there were any.
    fn turn(&self) -> bool;

    /// Blocks the calling OS thread until there is an event, a timer is due, or
    /// [`kick`](Self::kick). Calls `resumed` when that has happened, and then wakes the threads
    /// concerned.
    fn wait(&self, resumed: &mut dyn FnMut());

    /// Ends one [`wait`](Self::wait): one that is under way, or the next.
    fn kick(&self);

    /// Whether some timer is more than `slack` nanoseconds late.
    fn overdue(&self, slack: u64) -> bool;

    /// Whether no [`wait`](Self::wait) under way will end in time for the next timer.
    fn unattended(&self) -> bool;

    /// Whether there are events that nobody has fetched yet.
    fn pending(&self) -> bool;
}

static DRIVER: AtomicPtr<&'static dyn Driver> = AtomicPtr::new(core::ptr::null_mut());

/// Installs the driver. Once, at start.
pub(crate) fn install(driver: &'static dyn Driver) {
    // Release: pairs with the Acquire in `driver`.
    DRIVER.store(Box::leak(Box::new(driver)), Ordering::Release);
}

/// The driver.
#[inline]
pub(crate) fn driver() -> &'static dyn Driver {
    // Acquire: pairs with the Release in `install`.
    // SAFETY: installed before the first carrier runs; never replaced.
    unsafe { *DRIVER.load(Ordering::Acquire) }
}
