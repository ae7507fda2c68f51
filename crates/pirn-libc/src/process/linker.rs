//! The dynamic linker on virtual threads: its locks, and the moment before a library's
//! initialisers.
//!
//! The linker holds its locks while it calls the program: initialisers and finalisers of libraries,
//! resolvers of IFUNCs, `malloc`, and the callback of `dl_iterate_phdr`. If these park, other
//! threads that want such a lock must park as well: each one that waited in libc would hold its
//! carrier, and the owner may need that carrier to go on. So the linker locks by the functions of
//! this file (`glibc::linker`), and functions in which libc itself takes the lock of loading wait
//! for it here first ([`dlfcn`](super::dlfcn)). The locks are libc's recursive mutexes: a virtual
//! thread has an id of its own there.
//!
//! ```text
//!   dlopen   lock of loading
//!              lock of thread-local data (since 2.35)
//!                map, relocate, write the data of all platform threads
//!              unlock                       <- since 2.37 the data of virtual threads, here
//!              _dl_catch_exception(null, …) <- until 2.36 here
//!                the initialisers
//!            unlock
//! ```
//!
//! If there is no room for the data in virtual threads, the linker is told so at that place, and
//! closes the library: its initialisers have not run.

use crate::{sync, virtual_thread};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use libc::pthread_mutex_t;
use pirn_rt::arch;
use pirn_rt::glibc::linker::{find_bytes, redirect};
use pirn_rt::glibc::symbols::{find, find_in_libc, real};
use pirn_rt::glibc::thread::OLDEST;
use pirn_rt::glibc::{objects, tls};
use pirn_rt::sys;

type Mutex = *mut pthread_mutex_t;

/// One of the linker's locks; null: not known yet, so that there are no virtual threads.
struct LinkerLock(AtomicPtr<pthread_mutex_t>);

/// The address of libc's `dlsym`; null: there are no virtual threads yet.
pub(super) static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Held while a library is opened or closed.
static LOADING: LinkerLock = LinkerLock(AtomicPtr::new(core::ptr::null_mut()));
/// Held while the list of loaded objects changes, or is walked.
static OBJECTS: LinkerLock = LinkerLock(AtomicPtr::new(core::ptr::null_mut()));
/// Held while thread-local data are laid out; null if the linker calls `_dl_catch_exception` by a
/// word.
static LAYOUT: LinkerLock = LinkerLock(AtomicPtr::new(core::ptr::null_mut()));

/// The thread pointer of the thread that observes which lock the linker takes next.
static OBSERVER: AtomicUsize = AtomicUsize::new(0);
static OBSERVED: AtomicPtr<pthread_mutex_t> = AtomicPtr::new(core::ptr::null_mut());
/// libc's `_dl_catch_exception`.
static CATCH: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

impl LinkerLock {
    fn get(&self) -> Mutex {
        self.0.load(Relaxed) // Relaxed: set before there are virtual threads, and never changed.
    }
}

/// Makes the linker lock by our functions.
///
/// # Errors
/// This linker is not built as those that are known.
pub fn install() -> Result<(), String> {
    if !LOADING.get().is_null() {
        return Ok(());
    }
    // SAFETY: our functions do what libc's do. A lock taken by one may be released by the other.
    let redirected = unsafe {
        let (locks, unlocks) = (c"pthread_mutex_lock", c"pthread_mutex_unlock");
        redirect(find_in_libc(locks)?, lock as *const c_void)?
            && redirect(find_in_libc(unlocks)?, unlock as *const c_void)?
    };
    if !redirected {
        return Err("this dynamic linker does not lock by libc's functions".into());
    }
    // SAFETY: opens nothing, and needs no closing.
    let loading = observe(|| unsafe { _ = libc::dlopen(core::ptr::null(), libc::RTLD_LAZY) });
    if loading.is_null() {
        return Err("this dynamic linker takes no lock to open a library".into());
    }
    // The running thread has the lock of loading if this is the initialiser of a library.
    let objects = find_bytes(size_of::<pthread_mutex_t>(), |address| {
        // SAFETY: the address of as many readable bytes.
        address != loading.addr() && unsafe { sync::is_held_once(address) }
    })?;
    OBJECTS.0.store(objects as Mutex, Relaxed); // Relaxed, here and below: as in `get`.
    let catch = find_in_libc(c"_dl_catch_exception")?;
    CATCH.store(catch, Relaxed);
    // SAFETY: the address of as many readable bytes.
    if !unsafe { redirect(catch, catch_exception as *const c_void)? } {
        let layout = observe(|| _ = tls::template().recapture());
        if layout.is_null() || layout == loading {
            return Err("this dynamic linker does not say when it calls initialisers".into());
        }
        LAYOUT.0.store(layout, Relaxed);
    }
    // The first version of x86-64, which all have. SAFETY: valid C strings.
    let next = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), OLDEST.as_ptr()) };
    if next.is_null() {
        return Err("this C library has no `dlsym`".into());
    }
    DLSYM.store(next, Relaxed);
    LOADING.0.store(loading, Relaxed);
    Ok(())
}

/// Returns the first lock that the linker takes in `call`; null: none.
fn observe(call: impl FnOnce()) -> Mutex {
    OBSERVED.store(core::ptr::null_mut(), Relaxed); // Relaxed: the same thread reads it.
    OBSERVER.store(arch::thread_pointer(), Relaxed);
    call();
    OBSERVER.store(0, Relaxed);
    OBSERVED.load(Relaxed)
}

/// Locks one of the linker's mutexes.
///
/// # Safety
/// As for `pthread_mutex_lock`.
unsafe extern "C" fn lock(mutex: Mutex) -> c_int {
    // Relaxed: only the thread that observes finds itself there.
    if OBSERVER.load(Relaxed) == arch::thread_pointer() && OBSERVED.load(Relaxed).is_null() {
        OBSERVED.store(mutex, Relaxed);
    }
    if virtual_thread().is_none() {
        // SAFETY: the caller's contract.
        return unsafe { real!(fn pthread_mutex_lock(mutex: Mutex) -> c_int) };
    }
    // SAFETY: the caller's contract.
    let attempt = || unsafe { libc::pthread_mutex_trylock(mutex) == 0 };
    sync::lock_by_trying(c"dlopen", mutex.cast_const(), attempt);
    0
}

/// Unlocks one of the linker's mutexes.
///
/// # Safety
/// As for `pthread_mutex_unlock`, of one of the linker's mutexes.
unsafe extern "C-unwind" fn unlock(mutex: Mutex) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe { real!(fn pthread_mutex_unlock(mutex: Mutex) -> c_int) };
    // SAFETY: one of the linker's mutexes.
    if unsafe { sync::owns(mutex) } {
        return result; // It is recursive. A thread that gave way now would keep it meanwhile.
    }
    sync::released(mutex.cast_const());
    // SAFETY: two of the linker's mutexes.
    let opens = unsafe { mutex == LAYOUT.get() && sync::owns(LOADING.get()) };
    if opens {
        // SAFETY: called by the linker.
        unsafe { before_initialisers() };
    }
    result
}

/// Calls a function under the linker's care: until glibc 2.36.
///
/// # Safety
/// As for `_dl_catch_exception`.
unsafe extern "C-unwind" fn catch_exception(
    exception: *mut c_void,
    operate: *const c_void,
    arguments: *mut c_void,
) -> c_int {
    if exception.is_null() {
        // SAFETY: called by the linker.
        unsafe { before_initialisers() };
    }
    type Catch = unsafe extern "C-unwind" fn(*mut c_void, *const c_void, *mut c_void) -> c_int;
    // SAFETY: libc's function, and the caller's contract.
    unsafe {
        core::mem::transmute::<*mut c_void, Catch>(CATCH.load(Relaxed))(
            exception, operate, arguments,
        )
    }
}

/// Gives virtual threads the data of the libraries that have been loaded and not initialised. Does
/// not return if there is no room for them.
///
/// # Safety
/// Called by the linker, where it may call initialisers next.
unsafe fn before_initialisers() {
    /// The number of objects loaded so far that has been seen here. Under the lock of loading.
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let added = objects::find_in(|object| Some(object.additions())).unwrap_or(0);
    // Relaxed: see above. What follows may get here again, and finds nothing to do.
    if SEEN.swap(added, Relaxed) != added
        && let Err(text) = crate::process::dlfcn::catch_up()
    {
        let mut copy = [0; 1024];
        let length = text.len().min(copy.len() - 1);
        copy[..length].copy_from_slice(&text.as_bytes()[..length]);
        drop(text);
        // SAFETY: the caller's contract. The frames that this jumps over have nothing to drop.
        unsafe { refuse(&copy) }
    }
}

/// Makes the running `dlopen` fail.
///
/// # Safety
/// Called by the linker while it opens a library; nothing needs to be dropped up to there. `text`
/// ends with a zero byte.
unsafe fn refuse(text: &[u8]) -> ! {
    type Signal = unsafe extern "C-unwind" fn(c_int, *const c_char, *const c_char, *const u8) -> !;
    match find!(c"_dl_signal_error") {
        // SAFETY: the function's signature, and the caller's contract.
        Ok(signal) => unsafe {
            let (no_object, no_occasion) = (c"".as_ptr(), core::ptr::null());
            let signal = core::mem::transmute::<*mut c_void, Signal>(signal);
            signal(0, no_object, no_occasion, text.as_ptr())
        },
        Err(e) => sys::fatal(&[&e]),
    }
}

/// Keeps the list of loaded objects locked until it is dropped, by the same thread.
pub(super) struct ObjectsLocked(());

impl ObjectsLocked {
    /// Locks the list if the running thread is virtual. It parks while others have the lock.
    pub(super) fn by_parking() -> Option<ObjectsLocked> {
        virtual_thread()?;
        let mutex = OBJECTS.get();
        // SAFETY: the linker's mutex, known since before there were virtual threads.
        let attempt = || unsafe { libc::pthread_mutex_trylock(mutex) == 0 };
        sync::lock_by_trying(c"dl_iterate_phdr", mutex.cast_const(), attempt);
        Some(ObjectsLocked(()))
    }
}

impl Drop for ObjectsLocked {
    fn drop(&mut self) {
        // SAFETY: one of the linker's mutexes, locked in `by_parking`.
        unsafe { unlock(OBJECTS.get()) };
    }
}

/// Parks a virtual thread while another thread opens or closes a library. Before a function in
/// which libc takes that lock: only threads that are mounted just then may still find it taken.
pub(super) fn wait_while_loading(call: &'static CStr) {
    let mutex = LOADING.get();
    // SAFETY: one of the linker's mutexes, whose first word says whether it is locked. Relaxed: the
    // lock may be taken right after any look.
    let taken = || unsafe { AtomicU32::from_ptr(mutex.cast()) }.load(Relaxed) != 0;
    // SAFETY: one of the linker's mutexes, whose first word says whether it is locked.
    if virtual_thread().is_none() || !taken() || unsafe { sync::owns(mutex) } {
        return;
    }
    sync::lock_by_trying(call, mutex.cast_const(), || !taken());
    sync::released(mutex.cast_const()); // The next one looks as well.
}
