//! A wrapper for allocators with per-thread caches.

use pirn_rt::sched;
use std::alloc::{GlobalAlloc, Layout};

/// Wraps an allocator that keeps per-thread caches (jemalloc, mimalloc, snmalloc, …), so that all
/// virtual threads of a carrier share the carrier's.
///
/// Such allocators find their cache through thread-local storage, and every virtual thread has its
/// own storage: without the wrapper, each thread would fill a cache (some 30 KiB with mimalloc) and
/// lose it at its end. Calls through this wrapper run with the carrier's thread-local storage
/// instead, which costs about 20 ns. glibc's own malloc does not need it: the runtime passes its
/// cache from thread to thread.
///
/// # Examples
/// ```
/// use pirn::OnCarrier;
/// use std::alloc::System; // use MiMalloc or Jemalloc here
///
/// #[global_allocator]
/// static ALLOCATOR: OnCarrier<System> = OnCarrier::new(System);
///
/// let sum = pirn::thread::spawn(|| (0..1000).collect::<Vec<u32>>().iter().sum::<u32>());
/// assert_eq!(sum.join().unwrap(), 499_500);
/// ```
#[derive(Debug, Default)]
pub struct OnCarrier<A>(A);

impl<A> OnCarrier<A> {
    /// Wraps `allocator`.
    pub const fn new(allocator: A) -> OnCarrier<A> {
        OnCarrier(allocator)
    }
}

/// Makes a call of an allocator with the carrier's TLS.
#[inline]
fn on_carrier<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: an allocator must not unwind: `GlobalAlloc`'s contract.
    unsafe { sched::on_carrier(call) }
}

// SAFETY: every call is passed on unchanged, and the memory does not depend on the thread.
unsafe impl<A: GlobalAlloc> GlobalAlloc for OnCarrier<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract, here and below.
        on_carrier(|| unsafe { self.0.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        on_carrier(|| unsafe { self.0.dealloc(pointer, layout) });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        on_carrier(|| unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        on_carrier(|| unsafe { self.0.realloc(pointer, layout, size) })
    }
}
