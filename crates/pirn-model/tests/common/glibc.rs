//! In place of the runtime's `glibc` module: memory from the test's own allocator.

pub mod malloc {
    use core::ptr;
    use std::alloc::{Layout, alloc, dealloc, realloc};

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).unwrap()
    }

    /// As the runtime's function of this name.
    ///
    /// # Safety
    /// `memory` is null, or from this function with the size `old`.
    pub unsafe fn reallocate(memory: *mut u8, old: usize, size: usize) -> *mut u8 {
        if size > isize::MAX as usize - 16 {
            return ptr::null_mut();
        }
        // SAFETY: the caller's contract; the sizes are not 0.
        unsafe {
            match memory.is_null() {
                true => alloc(layout(size)),
                false => realloc(memory, layout(old), size),
            }
        }
    }

    /// As the runtime's function of this name.
    ///
    /// # Safety
    /// `memory` is from `reallocate`, with this size.
    pub unsafe fn free(memory: *mut u8, size: usize) {
        // SAFETY: the caller's contract.
        unsafe { dealloc(memory, layout(size)) };
    }
}
