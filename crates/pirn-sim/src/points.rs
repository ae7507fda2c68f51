//! What instrumented code calls: points at its atomic operations, and at some of its loads, stores
//! and edges.
//!
//! With `-C passes=tsan-module,tsan`, LLVM makes a call of each atomic operation of a crate, such
//! as
//! `__tsan_atomic32_load`. A call is a point, and then the operation. All are sequentially
//! consistent here: weak memory is not simulated. With `-C passes=sancov-module` there is a call at
//! each edge, load and store; one of some drawn number is a point. So it is for C with
//! `-fsanitize=thread`, which makes a call of each access, and `-fsanitize-coverage=trace-pc`.

use crate::world::COUNTDOWN;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence};
use pirn_rt::sched::simulation::{Point, point};
use pirn_rt::vthread;

/// Makes the linker keep this file's functions, of which instrumented code calls some.
pub(crate) fn keep() {
    core::hint::black_box(__tsan_init as *const ());
}

/// Defines the operations on one type.
macro_rules! atomics {
    ($($type:ty, $atomic:ty: $load:ident $store:ident $cas:ident $strong:ident $weak:ident
        { $($name:ident $method:ident)* })*) => { $(
        /// A load.
        ///
        /// # Safety
        /// Called by instrumented code in place of the operation, as for which.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $load(place: *const $type, _: c_int) -> $type {
            point(Point::Atomic);
            // SAFETY: the caller's contract.
            unsafe { <$atomic>::from_ptr(place.cast_mut()) }.load(SeqCst)
        }
        /// A store.
        ///
        /// # Safety
        /// As for the load.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $store(place: *mut $type, value: $type, _: c_int) {
            point(Point::Atomic);
            // SAFETY: the caller's contract.
            unsafe { <$atomic>::from_ptr(place) }.store(value, SeqCst);
        }
        /// A compare-exchange, which returns the old value.
        ///
        /// # Safety
        /// As for the load.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $cas(
            place: *mut $type,
            old: $type,
            new: $type,
            _: c_int,
            _: c_int,
        ) -> $type {
            point(Point::Atomic);
            // SAFETY: the caller's contract.
            let atomic = unsafe { <$atomic>::from_ptr(place) };
            match atomic.compare_exchange(old, new, SeqCst, SeqCst) {
                Ok(value) | Err(value) => value,
            }
        }
        /// A compare-exchange, which returns whether it has exchanged, and else tells the old
        /// value: GCC's.
        ///
        /// # Safety
        /// As for the load; `old` is the caller's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $strong(
            place: *mut $type,
            old: *mut $type,
            new: $type,
            first: c_int,
            second: c_int,
        ) -> bool {
            // SAFETY: the caller's contract.
            unsafe {
                let expected = old.read();
                old.write($cas(place, expected, new, first, second));
                old.read() == expected
            }
        }
        /// A compare-exchange that may fail for no reason, and here does not.
        ///
        /// # Safety
        /// As for the strong one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $weak(
            place: *mut $type,
            old: *mut $type,
            new: $type,
            first: c_int,
            second: c_int,
        ) -> bool {
            // SAFETY: the caller's contract.
            unsafe { $strong(place, old, new, first, second) }
        }
        $(
            /// A read-modify-write, which returns the old value.
            ///
            /// # Safety
            /// As for the load.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(
                place: *mut $type,
                value: $type,
                _: c_int,
            ) -> $type {
                point(Point::Atomic);
                // SAFETY: the caller's contract.
                unsafe { <$atomic>::from_ptr(place) }.$method(value, SeqCst)
            }
        )*
    )* };
}

atomics! {
    u8, AtomicU8: __tsan_atomic8_load __tsan_atomic8_store
        __tsan_atomic8_compare_exchange_val __tsan_atomic8_compare_exchange_strong
        __tsan_atomic8_compare_exchange_weak {
        __tsan_atomic8_exchange swap
        __tsan_atomic8_fetch_add fetch_add
        __tsan_atomic8_fetch_sub fetch_sub
        __tsan_atomic8_fetch_and fetch_and
        __tsan_atomic8_fetch_or fetch_or
        __tsan_atomic8_fetch_xor fetch_xor
        __tsan_atomic8_fetch_nand fetch_nand
    }
    u16, AtomicU16: __tsan_atomic16_load __tsan_atomic16_store
        __tsan_atomic16_compare_exchange_val __tsan_atomic16_compare_exchange_strong
        __tsan_atomic16_compare_exchange_weak {
        __tsan_atomic16_exchange swap
        __tsan_atomic16_fetch_add fetch_add
        __tsan_atomic16_fetch_sub fetch_sub
        __tsan_atomic16_fetch_and fetch_and
        __tsan_atomic16_fetch_or fetch_or
        __tsan_atomic16_fetch_xor fetch_xor
        __tsan_atomic16_fetch_nand fetch_nand
    }
    u32, AtomicU32: __tsan_atomic32_load __tsan_atomic32_store
        __tsan_atomic32_compare_exchange_val __tsan_atomic32_compare_exchange_strong
        __tsan_atomic32_compare_exchange_weak {
        __tsan_atomic32_exchange swap
        __tsan_atomic32_fetch_add fetch_add
        __tsan_atomic32_fetch_sub fetch_sub
        __tsan_atomic32_fetch_and fetch_and
        __tsan_atomic32_fetch_or fetch_or
        __tsan_atomic32_fetch_xor fetch_xor
        __tsan_atomic32_fetch_nand fetch_nand
    }
    u64, AtomicU64: __tsan_atomic64_load __tsan_atomic64_store
        __tsan_atomic64_compare_exchange_val __tsan_atomic64_compare_exchange_strong
        __tsan_atomic64_compare_exchange_weak {
        __tsan_atomic64_exchange swap
        __tsan_atomic64_fetch_add fetch_add
        __tsan_atomic64_fetch_sub fetch_sub
        __tsan_atomic64_fetch_and fetch_and
        __tsan_atomic64_fetch_or fetch_or
        __tsan_atomic64_fetch_xor fetch_xor
        __tsan_atomic64_fetch_nand fetch_nand
    }
}

/// Called by the initialiser of each instrumented crate.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __tsan_init() {}

/// Called where an instrumented function begins.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __tsan_func_entry(_: *const c_void) {}

/// Called where an instrumented function ends.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __tsan_func_exit() {}

/// A fence.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __tsan_atomic_thread_fence(_: c_int) {
    point(Point::Atomic);
    fence(SeqCst);
}

/// A fence against handlers of signals on the same thread.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __tsan_atomic_signal_fence(_: c_int) {}

/// Defines what is called at loads, stores and edges. Some have a second argument, which is ignored
/// as well.
macro_rules! places {
    ($($name:ident)*) => { $(
        /// A place that may be a point.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name(_: *const c_void) {
            place();
        }
    )* };
}

places! {
    __sanitizer_cov_trace_pc_guard
    __sanitizer_cov_load1 __sanitizer_cov_load2 __sanitizer_cov_load4 __sanitizer_cov_load8
    __sanitizer_cov_load16
    __sanitizer_cov_store1 __sanitizer_cov_store2 __sanitizer_cov_store4 __sanitizer_cov_store8
    __sanitizer_cov_store16
    __sanitizer_cov_trace_pc
    __tsan_read1 __tsan_read2 __tsan_read4 __tsan_read8 __tsan_read16 __tsan_read_range
    __tsan_write1 __tsan_write2 __tsan_write4 __tsan_write8 __tsan_write16 __tsan_write_range
    __tsan_unaligned_read2 __tsan_unaligned_read4 __tsan_unaligned_read8 __tsan_unaligned_read16
    __tsan_unaligned_write2 __tsan_unaligned_write4 __tsan_unaligned_write8
    __tsan_unaligned_write16
    __tsan_vptr_read __tsan_vptr_update
}

/// Called by the initialiser of each crate with edges.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __sanitizer_cov_trace_pc_guard_init(_: *const c_void, _: *const c_void) {}

fn place() {
    if vthread::parkable().is_none() {
        return; // Where the runtime has called back: there is no point, and none is counted.
    }
    let left = COUNTDOWN.load(Relaxed).wrapping_sub(1); // Relaxed: the carrier's own.
    COUNTDOWN.store(left, Relaxed);
    if left == 0 {
        point(Point::Place);
    }
}
