//! Counted references to a virtual thread's record.

use super::record::Core;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};

/// A counted reference to a virtual thread.
pub struct ThreadRef(NonNull<Core>);

// SAFETY: `Core` is Sync, and the last reference may be dropped anywhere.
unsafe impl Send for ThreadRef {}
// SAFETY: as above.
unsafe impl Sync for ThreadRef {}

impl ThreadRef {
    /// Takes over one of the references of a new core.
    ///
    /// # Safety
    /// The caller owns that reference.
    #[inline]
    pub(super) unsafe fn from_new(core: NonNull<Core>) -> ThreadRef {
        ThreadRef(core)
    }

    /// Returns the thread's address, for the queues.
    #[inline]
    pub fn as_ptr(&self) -> NonNull<Core> {
        self.0
    }
}

impl Core {
    /// Returns another reference.
    #[inline]
    pub fn to_ref(&self) -> ThreadRef {
        // Relaxed: the caller has access, so a reference exists and cannot go away meanwhile.
        self.references.fetch_add(1, Ordering::Relaxed);
        ThreadRef(NonNull::from(self))
    }

    /// Releases a reference without a [`ThreadRef`]: the thread's own, at its end.
    ///
    /// # Safety
    /// The caller owns the reference, and no other code releases it.
    #[inline]
    pub unsafe fn release(this: NonNull<Core>) {
        drop(ThreadRef(this));
    }
}

impl Deref for ThreadRef {
    type Target = Core;
    fn deref(&self) -> &Core {
        // SAFETY: counted.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ThreadRef {
    fn clone(&self) -> ThreadRef {
        self.to_ref()
    }
}

impl Drop for ThreadRef {
    #[inline]
    fn drop(&mut self) {
        // Acquire: pairs with the Release of the references that were dropped. If one reference is
        // left, ours, no thread can make another, so a load is enough, and cheaper.
        let last = self.references.load(Ordering::Acquire) == 1;
        // Release, then Acquire by the last one: all uses happen before the memory is freed, as in
        // `Arc`.
        if last || self.references.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: the last reference.
            unsafe { self.vtable().free(self.0) };
        }
    }
}
