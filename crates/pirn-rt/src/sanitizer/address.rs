//! AddressSanitizer.
//!
//! It keeps the bounds of the running thread's stack, to describe addresses there, to unwind it,
//! and to forget what it knows of the frames that a `longjmp` leaves. It finds its data about the
//! running thread by a `pthread_key`. Pirn keeps the keys of virtual threads apart, but this one
//! belongs to the platform thread: each switch writes its value to the TLS block that runs next,
//! where glibc's own `pthread_getspecific` finds it.
//!
//! The runtime of the sanitizer creates the key before the program's own code runs, maybe before
//! any code of ours, and asks for it in instrumented functions. Ours are instrumented in a Rust
//! program with `-Zsanitizer=address`: so the question for this key must not reach them.
//!
//! Source: LLVM, `compiler-rt/lib/asan/{asan_thread,asan_posix,asan_fake_stack}.cpp`.

use super::Side;
use crate::arch::{self, Pair, weak};
use crate::glibc::symbols::{Real, real};
use crate::lock::Lock;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

type Init = unsafe extern "C" fn();
type StartSwitch = unsafe extern "C" fn(*mut *mut c_void, *const c_void, usize);
type FinishSwitch = unsafe extern "C" fn(*mut c_void, *mut *const c_void, *mut usize);
type Unpoison = unsafe extern "C" fn(*const c_void, usize);

/// The key of the sanitizer. Until [`seal_keys`] it is 0: the number that the sanitizer asks for
/// before it has created the key.
pub static KEY: AtomicU32 = AtomicU32::new(0);
/// The value of [`KEY`] if there is no such key.
const NONE: u32 = u32::MAX;
/// Whether the sanitizer has created its key.
static KNOWN: AtomicU32 = AtomicU32::new(0);
/// libc's `pthread_getspecific`, from the first key on.
pub static GETSPECIFIC: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Returns whether the program has this sanitizer.
pub(super) fn is_linked() -> bool {
    weak!("__sanitizer_start_switch_fiber" as StartSwitch).is_some()
        && weak!("__asan_init" as Init).is_some()
}

/// Finds libc's `pthread_getspecific`, before the first key exists.
fn find_getspecific() {
    // Relaxed, here and below: before there are threads that could look, or an address of code.
    if GETSPECIFIC.load(Ordering::Relaxed).is_null() {
        // SAFETY: valid C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_getspecific".as_ptr()) };
        GETSPECIFIC.store(found, Ordering::Relaxed);
    }
}

/// Takes note of a new key. Returns whether it is the sanitizer's: the first one whose destructor
/// is in the object of the sanitizer's runtime, created before the program's own initialisers run.
pub fn note_key(key: u32, destructor: *const c_void) -> bool {
    find_getspecific();
    let Some(init) = weak!("__asan_init" as Init) else {
        return false;
    };
    // Relaxed, here and below: before there are other threads.
    if KEY.load(Ordering::Relaxed) == NONE || KNOWN.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let object = object_of(destructor);
    if object.is_null() || object != object_of(init as *const c_void) {
        return false;
    }
    KEY.store(key, Ordering::Relaxed);
    KNOWN.store(1, Ordering::Relaxed);
    true
}

/// Ends the time in which a new key may be the sanitizer's.
pub fn seal_keys() {
    find_getspecific();
    // Relaxed: as in `note_key`.
    if KNOWN.load(Ordering::Relaxed) == 0 {
        KEY.store(NONE, Ordering::Relaxed);
    }
}

/// Returns where the object is loaded that an address belongs to; null for none.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &mut info);
        info.dli_fbase
    }
}

/// The stacks of carriers, by thread pointer. Not a thread-local: those cost each virtual thread.
static PLATFORM_STACKS: Lock<Vec<(usize, Range<usize>)>> = Lock::new(Vec::new());

pub(super) fn note_platform_stack() {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut bottom, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the running thread's attributes, which are read after success only.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return;
        }
        libc::pthread_attr_getstack(attributes.as_ptr(), &mut bottom, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    let (tp, start) = (arch::thread_pointer(), bottom as usize);
    let mut stacks = PLATFORM_STACKS.lock();
    stacks.retain(|(other, _)| *other != tp);
    stacks.push((tp, start..start + size));
}

/// Forgets what frames the last thread on this stack has left behind.
pub(super) fn begin(side: &Side) {
    if let (Some(stack), Some(unpoison)) = (
        &side.stack,
        weak!("__asan_unpoison_memory_region" as Unpoison),
    ) {
        // SAFETY: memory of a slot.
        unsafe { unpoison(stack.start as *const c_void, stack.len()) };
    }
}

/// # Safety
/// As for [`super::leave`].
pub(super) unsafe fn leave(to: &Side, last: bool) -> *mut c_void {
    let (bottom, size) = match &to.stack {
        Some(stack) => (stack.start, stack.len()),
        None => platform_stack(to.tp),
    };
    let mut left = ptr::null_mut();
    let start = weak!("__sanitizer_start_switch_fiber" as StartSwitch);
    // SAFETY: the block that runs next, and the bounds of its stack.
    unsafe {
        hand_over_key(to.tp);
        if let Some(start) = start {
            // Null: the sanitizer frees what it has for the stack.
            let place = if last { ptr::null_mut() } else { &raw mut left };
            start(place, bottom as *const c_void, size);
        }
    }
    left
}

pub(super) fn arrive(left: *mut c_void) {
    if let Some(finish) = weak!("__sanitizer_finish_switch_fiber" as FinishSwitch) {
        // SAFETY: it takes null for what it is not to tell.
        unsafe { finish(left, ptr::null_mut(), ptr::null_mut()) };
    }
}

/// Returns the bounds of the stack that the platform thread with the TLS block at `tp` has noted.
fn platform_stack(tp: usize) -> (usize, usize) {
    let stacks = PLATFORM_STACKS.lock();
    let noted = stacks.iter().find(|(other, _)| *other == tp);
    noted.map_or((0, 0), |(_, stack)| (stack.start, stack.len()))
}

/// Writes the value of the sanitizer's key to the TLS block at `tp`.
///
/// # Safety
/// `tp` is a TLS block that this OS thread is about to run on.
unsafe fn hand_over_key(tp: usize) {
    static SETSPECIFIC: Real = Real::new(c"pthread_setspecific");
    let key = KEY.load(Ordering::Relaxed); // Relaxed: settled before the program's own code.
    if key == NONE {
        return;
    }
    // SAFETY: glibc's own functions, called with the thread pointer of this OS thread's blocks.
    unsafe {
        let value = real!(fn pthread_getspecific(key: u32) -> *mut c_void);
        let mut pair = Pair {
            first: key as usize,
            second: value as usize,
            function: SETSPECIFIC.get(),
        };
        arch::call_with_tp(tp, arch::call_pair, (&raw mut pair).cast());
    }
}
