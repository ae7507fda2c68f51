//! The runtime's own lock: it blocks the OS thread, never a virtual thread.
//!
//! `std::sync::Mutex` would park the virtual thread that runs runtime code, in the very queues it
//! is trying to lock. Sections under this lock are short, never suspend, and call no user code.
//! The word's states are those of Drepper's "Futexes Are Tricky", section 5: 0 free, 1 held,
//! 2 held and an OS thread may be blocked.

use crate::sys;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

/// A mutual exclusion lock for runtime data.
pub(crate) struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives out `&mut T` to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: owns its value.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock.
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock {
            word: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        // Acquire: pairs with the Release in `Guard::drop`.
        if self
            .word
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.lock_slow();
        }
        Guard { lock: self }
    }

    #[cold]
    fn lock_slow(&self) {
        for _ in 0..100 {
            // Acquire: as in `lock`. The load before it keeps the cache line shared.
            if self.word.load(Ordering::Relaxed) == 0
                && self
                    .word
                    .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
            core::hint::spin_loop();
        }
        // Acquire: as in `lock`.
        while self.word.swap(2, Ordering::Acquire) != 0 {
            let _ = sys::futex_wait(&self.word, 2, None);
        }
    }
}

/// Holds a [`Lock`] until dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
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
        // Release: pairs with the Acquire of the next holder.
        if self.lock.word.swap(0, Ordering::Release) == 2 {
            sys::futex_wake(self.lock.word.as_ptr(), 1);
        }
    }
}
