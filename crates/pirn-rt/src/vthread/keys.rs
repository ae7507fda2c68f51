//! `pthread_key`s of virtual threads: their values, and the destructors at the end.
//!
//! glibc keeps the values in `struct pthread`, and records there that values exist, in a part that
//! a virtual thread never touches otherwise: the first key that is set would cost each thread a
//! page, and Rust's `std` sets one in nearly every thread. glibc exports neither the function that
//! runs the destructors nor its table of keys. So we keep our own table of keys beside glibc's,
//! which still allocates the numbers:
//!
//! ```text
//!   KEYS (one)                      a virtual thread's TLS block          its values (malloc)
//!   key: sequence, destructor       VALUES ------------------------->     len
//!                                                                         key: sequence, value
//! ```
//!
//! As in glibc, a key's sequence number is odd while the key exists, and a value counts only if it
//! was set under the same number: deleting a key, or creating it anew, unsets it in every thread.
//!
//! glibc manages the values of platform threads, except in the child of a fork, which continues on
//! a virtual thread's TLS block. glibc also manages keys that were created without our knowledge
//! (by libc itself, or through `dlsym`).

use super::current;
use crate::glibc::symbols::{field_offset, find as find_symbol, real};
use crate::glibc::tls;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, compiler_fence};

/// `PTHREAD_KEYS_MAX`.
const MAX: usize = 1024;
/// The size of glibc's first-level table, `PTHREAD_KEY_1STLEVEL_SIZE`.
const FIRST_LEVEL: usize = MAX / 32;
/// `PTHREAD_DESTRUCTOR_ITERATIONS`.
const ROUNDS: usize = 4;

/// The data of a key that all threads share.
struct Key {
    /// Odd while the key exists.
    sequence: AtomicUsize,
    destructor: AtomicPtr<c_void>,
}

static KEYS: [Key; MAX] = [const {
    Key {
        sequence: AtomicUsize::new(0),
        destructor: AtomicPtr::new(ptr::null_mut()),
    }
}; MAX];

/// Records a key that libc has created.
///
/// # Safety
/// `destructor` is null, or the function passed for this key to `pthread_key_create`.
#[inline]
pub unsafe fn created(key: u32, destructor: *mut c_void) {
    if let Some(key) = KEYS.get(key as usize) {
        key.destructor.store(destructor, Ordering::SeqCst);
        // The next odd number, even if the key was deleted without our knowledge.
        let next = (key.sequence.load(Ordering::SeqCst) + 1) | 1;
        key.sequence.store(next, Ordering::SeqCst);
    }
}

/// Records that libc is about to delete a key; libc has not reused its number yet.
#[inline]
pub fn deleted(key: u32) {
    if let Some((key, sequence)) = find(key) {
        let (free, order) = (sequence + 1, Ordering::SeqCst);
        // This fails if another thread deletes the key at the same time.
        let _ = key.sequence.compare_exchange(sequence, free, order, order);
    }
}

/// Returns a key that exists and its sequence number, or `None` if we do not know the key.
#[inline]
fn find(key: u32) -> Option<(&'static Key, usize)> {
    let key = KEYS.get(key as usize)?;
    // Acquire: pairs with the store in `created`: the state that the destructor needs was made
    // before the key.
    let sequence = key.sequence.load(Ordering::Acquire);
    (sequence % 2 == 1).then_some((key, sequence))
}

/// The values of one thread. `len` entries follow in memory.
#[repr(C)]
struct ThreadValues {
    len: usize,
}

/// The value of a key in one thread.
struct KeyEntry {
    /// The key's sequence number when the value was set.
    sequence: Cell<usize>,
    value: Cell<*mut c_void>,
}

thread_local! {
    /// In each virtual thread's own TLS block: its values, or null until it sets one.
    static VALUES: Cell<*const ThreadValues> = const { Cell::new(ptr::null()) };
    /// Whether the thread may have set keys that we do not know, whose values are in `struct
    /// pthread`.
    static TAIL_USED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the running thread's entries.
#[inline]
fn entries<'a>() -> &'a [KeyEntry] {
    let values = VALUES.get();
    if values.is_null() {
        return &[];
    }
    // SAFETY: made by `grow`, and freed by the running thread only, when it no longer uses the old
    // ones.
    unsafe { core::slice::from_raw_parts(values.add(1).cast(), (*values).len) }
}

/// Returns whether glibc manages the running thread's values.
#[inline]
fn are_glibcs() -> bool {
    VALUES.get().is_null() && current().is_none()
}

/// Implements `pthread_getspecific`; `None` if libc must answer. A signal handler may call it,
/// whatever code the signal has interrupted.
#[inline]
pub fn get(key: u32) -> Option<*mut c_void> {
    if are_glibcs() {
        return None;
    }
    let (_, sequence) = find(key)?;
    let entry = entries().get(key as usize);
    let entry = entry.filter(|entry| entry.sequence.get() == sequence);
    Some(entry.map_or(ptr::null_mut(), |entry| entry.value.get()))
}

/// Implements `pthread_setspecific`; `None` if libc must do it.
///
/// # Safety
/// The key's destructor may be called with `value` at the thread's end.
#[inline]
pub unsafe fn set(key: u32, value: *mut c_void) -> Option<c_int> {
    if are_glibcs() {
        return None;
    }
    let Some((_, sequence)) = find(key) else {
        TAIL_USED.set(true);
        return None;
    };
    let key = key as usize;
    if entries().len() <= key && !value.is_null() && !grow(key + 1) {
        return Some(libc::ENOMEM);
    }
    if let Some(entry) = entries().get(key) {
        entry.value.set(value);
        // For signal handlers: an old value must not look like the new key's.
        compiler_fence(Ordering::SeqCst);
        entry.sequence.set(sequence);
    }
    Some(0)
}

/// Makes room for at least `wanted` values. Returns `false` if there is no memory.
///
/// Uses libc's own malloc, not the program's: an allocator may keep its own state in a key, and set
/// that key during its first allocation in a thread.
#[cold]
fn grow(wanted: usize) -> bool {
    let old = entries();
    let len = wanted.max(2 * old.len()).min(MAX);
    let bytes = size_of::<ThreadValues>() + len * size_of::<KeyEntry>();
    // SAFETY: an ordinary call of malloc.
    let memory = unsafe { real!(fn __libc_malloc(bytes: usize) -> *mut c_void) };
    if memory.is_null() {
        return false;
    }
    let values = memory.cast::<ThreadValues>();
    // SAFETY: fresh memory for a header and `len` entries, of which all zeros is a valid one.
    unsafe {
        values.write(ThreadValues { len });
        let new = values.add(1).cast::<KeyEntry>();
        new.copy_from_nonoverlapping(old.as_ptr(), old.len());
        new.add(old.len()).write_bytes(0, len - old.len());
    }
    // SAFETY: made above; the old ones have been copied.
    unsafe { replace(values) };
    true
}

/// Replaces the running thread's values by `new` ones (null for none), and frees the old ones.
///
/// # Safety
/// `new` is null, or from `__libc_malloc`, complete, and the callee's. No reference to the old ones
/// is used any more.
unsafe fn replace(new: *const ThreadValues) {
    // For signal handlers, which must find complete values that are not freed yet.
    compiler_fence(Ordering::SeqCst);
    let old = VALUES.replace(new).cast_mut().cast::<c_void>();
    compiler_fence(Ordering::SeqCst);
    // SAFETY: from `__libc_malloc`, and no longer in use.
    unsafe { real!(fn __libc_free(old: *mut c_void) -> ()) };
}

/// Runs the destructors of the keys that the running thread, which is ending, has set.
pub fn run_destructors() {
    let mut round = 0;
    while round < ROUNDS && run_round() {
        round += 1;
    }
    if !VALUES.get().is_null() {
        // SAFETY: no destructor uses a value any more.
        unsafe { replace(ptr::null()) };
    }
    if TAIL_USED.get() {
        clean_tail();
    }
}

/// Runs the destructor of each key that is set. Returns whether there was one.
fn run_round() -> bool {
    let mut any = false;
    let mut key = 0;
    // Looked up anew each time, because a destructor may set more keys.
    while let Some(entry) = entries().get(key) {
        let value = entry.value.replace(ptr::null_mut());
        if !value.is_null() {
            // SAFETY: taken out of its entry just now.
            any |= unsafe { destroy(key as u32, entry.sequence.get(), value) };
        }
        key += 1;
    }
    any
}

/// Runs the destructor of a key for a value that was set under `sequence`. Returns whether the key
/// has one.
///
/// # Safety
/// `value` was set by the running thread under that number, and is not set any more.
unsafe fn destroy(key: u32, sequence: usize, value: *mut c_void) -> bool {
    let key = find(key).filter(|(_, now)| *now == sequence);
    let destructor = key.map_or(ptr::null_mut(), |(key, _)| {
        key.destructor.load(Ordering::SeqCst)
    });
    if destructor.is_null() {
        return false;
    }
    // It may end the thread, by `pthread_exit`: see `pirn-posix/record.rs`.
    type KeyDestructor = unsafe extern "C-unwind" fn(*mut c_void);
    // SAFETY: the function that the program has passed to `pthread_key_create`, for such values.
    unsafe { core::mem::transmute::<*mut c_void, KeyDestructor>(destructor)(value) };
    true
}

/// Unsets the keys that we do not know, for the next thread in this slot.
#[cold]
fn clean_tail() {
    let template = tls::template();
    let pthread = template.pthread_of(crate::arch::thread_pointer());
    let tail = template.sizeof_pthread - tls::HEAD;
    // SAFETY: our own TCB, in which nothing is needed any more. Except for its first entry, the
    // first-level table of keys holds what `pthread_setspecific` has allocated (`nptl/descr.h`).
    unsafe {
        if let Ok(table) = find_symbol!(c"_thread_db_pthread_specific") {
            let table = (pthread + field_offset(table)) as *const *mut c_void;
            (1..FIRST_LEVEL).for_each(|i| libc::free(table.add(i).read()));
        }
        ((pthread + tls::HEAD) as *mut u8).write_bytes(0, tail);
    }
}
