//! `pthread_key` destructors at the end of a virtual thread.
//!
//! glibc runs them from a function it does not export, with a table it does not export. So
//! `pthread_key_create` and `pthread_key_delete` are interposed to keep a table of our own; the
//! values stay where glibc puts them, in the thread's TCB.

use super::core_::Core;
use crate::glibc::symbols::field_offset;
use crate::glibc::tls;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// `PTHREAD_KEYS_MAX`.
const KEYS: usize = 1024;
/// Entries of the first-level table: `PTHREAD_KEY_1STLEVEL_SIZE`.
const FIRST_LEVEL: usize = KEYS / 32;
/// `PTHREAD_DESTRUCTOR_ITERATIONS`.
const ROUNDS: usize = 4;

static DESTRUCTORS: [AtomicPtr<c_void>; KEYS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; KEYS];
/// One more than the highest key with a destructor.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// Remembers, or with null forgets, the destructor of a key.
pub(crate) fn set_destructor(key: u32, destructor: *mut c_void) {
    if let Some(slot) = DESTRUCTORS.get(key as usize) {
        // Release: pairs with the Acquire in `run_destructors`: whatever the destructor needs was
        // made before the key.
        slot.store(destructor, Ordering::Release);
        if !destructor.is_null() {
            HIGHEST.fetch_max(key as usize + 1, Ordering::Release);
        }
    }
}

/// Runs the destructors of the keys that the ending thread, the running one, has set.
pub(crate) fn run_destructors(core: &Core) {
    if !core.keys_used.get() {
        return;
    }
    for _ in 0..ROUNDS {
        let mut any = false;
        for key in 0..HIGHEST.load(Ordering::Acquire) {
            any |= run_one(key);
        }
        if !any {
            break;
        }
    }
    // The next thread in this slot must find its keys unset.
    let tp = crate::arch::thread_pointer();
    let tail = tls::template().sizeof_pthread - tls::HEAD;
    // SAFETY: our own TCB, in which nothing is needed any more. The first-level table of keys
    // holds, but for the first entry, what `pthread_setspecific` has allocated (`nptl/descr.h`).
    unsafe {
        if let Ok(table) = field_offset(c"_thread_db_pthread_specific") {
            let table = (tp + table) as *const *mut c_void;
            (1..FIRST_LEVEL).for_each(|i| libc::free(table.add(i).read()));
        }
        ((tp + tls::HEAD) as *mut u8).write_bytes(0, tail);
    }
}

fn run_one(key: usize) -> bool {
    let destructor = DESTRUCTORS[key].load(Ordering::Acquire);
    if destructor.is_null() {
        return false;
    }
    // SAFETY: the key exists, or existed; getspecific of a deleted key gives null.
    unsafe {
        let value = libc::pthread_getspecific(key as u32);
        if value.is_null() {
            return false;
        }
        libc::pthread_setspecific(key as u32, core::ptr::null());
        let destructor: unsafe extern "C" fn(*mut c_void) = core::mem::transmute(destructor);
        destructor(value);
    }
    true
}
