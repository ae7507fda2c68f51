//! The running virtual thread.

use super::record::Core;
use core::ops::Deref;
use core::ptr::NonNull;

/// A reference to the running virtual thread, for use on that very thread.
///
/// A thread's record outlives its last instruction, so the reference is good for as long as there
/// is code on the thread that could use it. It is neither `Send` nor `Sync`.
#[derive(Clone, Copy)]
pub struct Current(NonNull<Core>);

impl Current {
    /// Makes the reference.
    ///
    /// # Safety
    /// `core` is the running virtual thread.
    #[inline(always)]
    pub(crate) unsafe fn new(core: NonNull<Core>) -> Current {
        Current(core)
    }

    /// Returns the thread's address.
    #[inline(always)]
    pub fn as_ptr(self) -> NonNull<Core> {
        self.0
    }
}

impl Deref for Current {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        // SAFETY: the running thread, by the contract of `new`; it has not ended, since this is
        // never sent to another.
        unsafe { self.0.as_ref() }
    }
}
