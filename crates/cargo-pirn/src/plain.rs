// What instrumented code calls in programs without `pirn-sim`, such as other tests of the same
// workspace: the operation, and nothing else. `cargo pirn` compiles this by the user's compiler to
// an archive, from which the linker takes what the program lacks.
#![no_std]
#![allow(non_snake_case)]

use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence};

macro_rules! atomics {
    ($($type:ty, $atomic:ty: $load:ident $store:ident $cas:ident
        { $($name:ident $method:ident)* })*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $load(place: *mut $type, _: i32) -> $type {
            unsafe { <$atomic>::from_ptr(place) }.load(SeqCst)
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $store(place: *mut $type, value: $type, _: i32) {
            unsafe { <$atomic>::from_ptr(place) }.store(value, SeqCst)
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $cas(place: *mut $type, old: $type, new: $type, _: i32, _: i32) -> $type {
            match unsafe { <$atomic>::from_ptr(place) }.compare_exchange(old, new, SeqCst, SeqCst) {
                Ok(value) | Err(value) => value,
            }
        }
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(place: *mut $type, value: $type, _: i32) -> $type {
                unsafe { <$atomic>::from_ptr(place) }.$method(value, SeqCst)
            }
        )*
    )* };
}

atomics! {
    u8, AtomicU8: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_compare_exchange_val {
        __tsan_atomic8_exchange swap
        __tsan_atomic8_fetch_add fetch_add
        __tsan_atomic8_fetch_sub fetch_sub
        __tsan_atomic8_fetch_and fetch_and
        __tsan_atomic8_fetch_or fetch_or
        __tsan_atomic8_fetch_xor fetch_xor
        __tsan_atomic8_fetch_nand fetch_nand
    }
    u16, AtomicU16: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_compare_exchange_val {
        __tsan_atomic16_exchange swap
        __tsan_atomic16_fetch_add fetch_add
        __tsan_atomic16_fetch_sub fetch_sub
        __tsan_atomic16_fetch_and fetch_and
        __tsan_atomic16_fetch_or fetch_or
        __tsan_atomic16_fetch_xor fetch_xor
        __tsan_atomic16_fetch_nand fetch_nand
    }
    u32, AtomicU32: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_compare_exchange_val {
        __tsan_atomic32_exchange swap
        __tsan_atomic32_fetch_add fetch_add
        __tsan_atomic32_fetch_sub fetch_sub
        __tsan_atomic32_fetch_and fetch_and
        __tsan_atomic32_fetch_or fetch_or
        __tsan_atomic32_fetch_xor fetch_xor
        __tsan_atomic32_fetch_nand fetch_nand
    }
    u64, AtomicU64: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_compare_exchange_val {
        __tsan_atomic64_exchange swap
        __tsan_atomic64_fetch_add fetch_add
        __tsan_atomic64_fetch_sub fetch_sub
        __tsan_atomic64_fetch_and fetch_and
        __tsan_atomic64_fetch_or fetch_or
        __tsan_atomic64_fetch_xor fetch_xor
        __tsan_atomic64_fetch_nand fetch_nand
    }
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_init() {}
#[unsafe(no_mangle)]
extern "C" fn __tsan_func_entry(_: usize) {}
#[unsafe(no_mangle)]
extern "C" fn __tsan_func_exit() {}
#[unsafe(no_mangle)]
extern "C" fn __tsan_atomic_thread_fence(_: i32) {
    fence(SeqCst);
}
#[unsafe(no_mangle)]
extern "C" fn __tsan_atomic_signal_fence(_: i32) {}

macro_rules! places {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(_: usize) {}
    )* };
}

places! {
    __sanitizer_cov_trace_pc_guard __sanitizer_cov_trace_pc_guard_init
    __sanitizer_cov_load1 __sanitizer_cov_load2 __sanitizer_cov_load4 __sanitizer_cov_load8
    __sanitizer_cov_load16
    __sanitizer_cov_store1 __sanitizer_cov_store2 __sanitizer_cov_store4 __sanitizer_cov_store8
    __sanitizer_cov_store16
}
