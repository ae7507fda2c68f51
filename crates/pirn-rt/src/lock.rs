//! The runtime's own lock: it blocks the OS thread, never a virtual thread.
//!
//! `std::sync::Mutex` would park the virtual thread that runs runtime code, in the very queues it
//! is trying to lock. Sections under this lock are short, never suspend, and call no user code.
//!
//! Sections are frequent and short, so the uncontended path decides: one read-modify-write to lock,
//! a plain store to unlock, which notifies no thread; a contender spins, then yields, then naps
//! ([`sys::back_off`]). Naps are for the case that the kernel has suspended the holder.

use crate::no_suspend::NoSuspend;
use crate::sys;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A mutual exclusion lock for runtime data.
pub struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives out `&mut T` to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: owns its value.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    /// Returns a free lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Blocks until it holds the lock.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let section = NoSuspend::new();
        if !self.try_acquire() {
            self.acquire_slowly();
        }
        Guard {
            lock: self,
            _section: section,
        }
    }

    /// Makes it a free lock with this value, in the child of a fork, where the thread that held it
    /// does not exist. The old value may be half changed: it is forgotten.
    ///
    /// # Safety
    /// No thread uses the lock: it belongs to a runtime that is gone.
    pub unsafe fn renew(&self, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.value.get().write(value) };
        self.held.store(false, Ordering::Release); // Release: as in `Guard::drop`.
    }

    /// Returns whether a thread holds it, or did a moment ago.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) // Relaxed: the answer may be outdated at once anyway.
    }

    #[inline(always)]
    fn try_acquire(&self) -> bool {
        // Acquire: pairs with the Release in `Guard::drop`. Relaxed on failure: nothing is
        // concluded.
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn acquire_slowly(&self) {
        for look in 0u32.. {
            // Relaxed: a load before the attempt, which keeps the cache line shared.
            if !self.held.load(Ordering::Relaxed) && self.try_acquire() {
                return;
            }
            sys::back_off(look);
        }
    }
}

/// Holds a [`Lock`] until dropped.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// From before the lock is taken until after it has been released.
    _section: NoSuspend,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next holder. A store, because only the holder
        // changes it.
        self.lock.held.store(false, Ordering::Release);
    }
}
