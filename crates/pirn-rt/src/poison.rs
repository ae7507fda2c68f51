//! `std`'s mutexes, where a panic or a fork must not spoil them.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whether or not a thread has panicked while it held the lock: for states that no
/// panic leaves half changed.
#[inline]
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A static that is made at its first use, and anew in the child of a fork. The child has copies of
/// the locks in the old value, which threads of the parent may hold: it would wait for ever.
pub struct PerProcess<T>(AtomicPtr<T>);

impl<T: Default + Sync + 'static> PerProcess<T> {
    /// Returns one that has not been used.
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns the value of this process.
    #[inline]
    pub fn get(&self) -> &'static T {
        // Acquire: pairs with the Release in `make`.
        // SAFETY: null, or from `make`, and never freed.
        match unsafe { self.0.load(Ordering::Acquire).as_ref() } {
            Some(value) => value,
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> &'static T {
        let new = Box::into_raw(Box::<T>::default());
        // Release: publishes the value to `get`. Acquire: as in `get`.
        let (made, found) = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(ptr::null_mut(), new, made, found) {
            // SAFETY: from the box above, and never freed.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                // SAFETY: from the box above, and not published; the other one is never freed.
                unsafe {
                    drop(Box::from_raw(new));
                    &*first
                }
            }
        }
    }

    /// Forgets the value of the parent, in the child of a fork.
    pub fn after_fork(&self) {
        self.0.store(ptr::null_mut(), Ordering::Relaxed); // Relaxed: there is one thread only.
    }
}
