//! A vector in memory of the C library's own `malloc`, for runtime code that runs while a thread
//! waits.
//!
//! The program's allocator may be another, and the thread that is about to park may be in the
//! middle of it: jemalloc waits in `pthread_mutex_lock`, tcmalloc in a futex call. An allocation
//! there would enter that allocator a second time, on the same thread. This memory calls no
//! interposed function.

use crate::glibc::malloc::{free, reallocate};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

/// There is no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

/// See the module's documentation.
pub(crate) struct OwnVec<T> {
    /// Dangling while `capacity` is 0.
    start: NonNull<T>,
    capacity: u32,
    /// The number of elements that are initialised. Both numbers are short, so that a bucket of the
    /// parking lot fits into a cache line.
    len: u32,
}

// SAFETY: owns its elements.
unsafe impl<T: Send> Send for OwnVec<T> {}

impl<T> OwnVec<T> {
    /// Returns an empty vector, without memory.
    pub(crate) const fn new() -> OwnVec<T> {
        OwnVec {
            start: NonNull::dangling(),
            capacity: 0,
            len: 0,
        }
    }

    /// Returns an empty vector with room for exactly `capacity` elements.
    pub(crate) fn with_capacity(capacity: usize) -> Result<OwnVec<T>, NoMemory> {
        let mut new = OwnVec::new();
        new.resize(capacity)?;
        Ok(new)
    }

    /// Returns the number of elements for which there is memory.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Makes room for another element.
    #[inline]
    pub(crate) fn reserve_one(&mut self) -> Result<(), NoMemory> {
        match self.len < self.capacity {
            true => Ok(()),
            false => self.resize((2 * self.capacity()).max(4)),
        }
    }

    /// Appends an element.
    ///
    /// # Panics
    /// If there is no room: see [`reserve_one`](Self::reserve_one).
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        assert!(self.len < self.capacity, "no room was reserved");
        // SAFETY: in the memory, behind the last element.
        unsafe { self.start.add(self.len as usize).write(value) };
        self.len += 1;
    }

    /// Takes out the element at `index`. The last one fills its place.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub(crate) fn swap_remove(&mut self, index: usize) -> T {
        let last = self.len().wrapping_sub(1);
        self.swap(index, last);
        self.len = last as u32;
        // SAFETY: the last element, which no longer counts.
        unsafe { self.start.add(last).read() }
    }

    /// Moves the elements to memory for `capacity` of them, which is more than there are.
    #[cold]
    fn resize(&mut self, capacity: usize) -> Result<(), NoMemory> {
        const { assert!(align_of::<T>() <= 16 && size_of::<T>() > 0) };
        let old = match self.capacity {
            0 => ptr::null_mut(),
            _ => self.start.as_ptr().cast(),
        };
        let short = u32::try_from(capacity).map_err(|_| NoMemory)?;
        let bytes = capacity.checked_mul(size_of::<T>()).ok_or(NoMemory)?;
        // SAFETY: our memory of this size, or null.
        let new = unsafe { reallocate(old, self.bytes(), bytes) };
        self.start = NonNull::new(new.cast()).ok_or(NoMemory)?;
        self.capacity = short;
        Ok(())
    }

    /// Returns the bytes of its memory.
    pub(crate) fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T> Deref for OwnVec<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised elements, or none.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len as usize) }
    }
}

impl<T> DerefMut for OwnVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len as usize) }
    }
}

impl<T> Drop for OwnVec<T> {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: our elements, in our memory of this size.
            unsafe {
                ptr::drop_in_place(&mut **self);
                free(self.start.as_ptr().cast(), self.bytes());
            }
        }
    }
}
