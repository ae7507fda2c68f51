//! The layout of glibc's objects.
//!
//! The public headers show a mutex's kind and owner: static initialisers put the kind into every
//! program, so it cannot move. The owner of a read-write lock is in the public header as well.
//! [`check`] verifies these offsets at the start. Flags that only `init` functions write are found
//! by comparing two objects, one initialised with the flag and one without.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, sem_t};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys;
#[cfg(feature = "dump")]
use pirn_rt::vthread::wait_reason::Kind;

const MUTEX_COUNT: usize = 4;
const MUTEX_OWNER: usize = 8;
const MUTEX_KIND: usize = 16;
/// The links of a robust mutex: to the one before, and the next.
const MUTEX_LINKS: usize = 24;
const RWLOCK_WRITER: usize = 24;

/// The part of a mutex's kind that is its type.
const TYPE: c_int = 3;
const ROBUST: c_int = 16;
const PRIORITY_INHERITANCE: c_int = 32;
const SHARED: c_int = 128;

/// Reads a word that others may be writing.
///
/// # Safety
/// `object + offset` is an aligned word inside a live object.
unsafe fn word<T>(object: *const T, offset: usize) -> u32 {
    // SAFETY: the caller's contract. Relaxed: compared with values that only the reader itself
    // writes.
    unsafe { AtomicU32::from_ptr(object.cast_mut().byte_add(offset).cast()) }
        .load(Ordering::Relaxed)
}

/// What a mutex does, and who looks at it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct MutexKind(c_int);

/// Returns the kind of a mutex.
///
/// # Safety
/// `mutex` is initialised.
#[inline]
pub(super) unsafe fn kind(mutex: *const pthread_mutex_t) -> MutexKind {
    // SAFETY: the caller's contract.
    MutexKind(unsafe { word(mutex, MUTEX_KIND) } as c_int)
}

impl MutexKind {
    fn has(self, flags: c_int) -> bool {
        self.0 & flags != 0
    }

    /// Returns whether it remembers its owner and refuses others: all types but the normal and the
    /// adaptive one.
    pub(super) fn checks_owner(self) -> bool {
        self.is_recursive() || self.checks_errors()
    }

    fn is_recursive(self) -> bool {
        self.0 & TYPE == libc::PTHREAD_MUTEX_RECURSIVE
    }

    /// Returns whether locking it twice is an error.
    pub(super) fn checks_errors(self) -> bool {
        self.0 & TYPE == libc::PTHREAD_MUTEX_ERRORCHECK
    }

    /// Returns whether waiting for it gives its owner the waiter's priority.
    #[inline]
    pub(super) fn inherits_priority(self) -> bool {
        self.has(PRIORITY_INHERITANCE)
    }

    pub(super) fn is_robust(self) -> bool {
        self.has(ROBUST)
    }

    /// Returns whether others than this process look at its owner: the kernel if it is robust, and
    /// other processes if it is shared and remembers its owner.
    #[inline]
    pub(super) fn tells_others_its_owner(self) -> bool {
        self.has(ROBUST | SHARED)
            && !self.inherits_priority()
            && (self.is_robust() || self.checks_owner())
    }

    /// Returns whether it may be released without a look for virtual threads: by another process,
    /// or by the kernel after its owner has died.
    pub(super) fn may_be_released_unseen(self) -> bool {
        self.has(SHARED | ROBUST)
    }
}

/// Returns whether unlocking a mutex, which the caller has, releases it.
///
/// # Safety
/// `mutex` is initialised.
pub(super) unsafe fn is_last_lock(mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: the caller's contract.
    unsafe { !kind(mutex).is_recursive() || word(mutex, MUTEX_COUNT) <= 1 }
}

/// Takes a robust mutex out of the list that it is in, as libc does. Links lead to the second of
/// the two words of a neighbour, with a mark in the lowest bit.
///
/// # Safety
/// The mutex at this address is in a list that only the caller uses.
pub(super) unsafe fn leave_list(mutex: usize) {
    let links = (mutex + MUTEX_LINKS) as *mut [usize; 2];
    // SAFETY: the caller's contract.
    unsafe {
        let [before, next] = links.replace([0, 0]);
        ((next & !1) as *mut usize).sub(1).write(before);
        ((before & !1) as *mut usize).write(next);
    }
}

/// Returns whether the running thread has a mutex of a kind that remembers its owner.
///
/// # Safety
/// `mutex` is initialised.
pub(crate) unsafe fn owns(mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: the caller's contract.
    unsafe { word(mutex, MUTEX_OWNER) == own_id() }
}

/// Returns whether the memory at `address` is a recursive mutex that the running thread has locked
/// once.
///
/// # Safety
/// A mutex would fit in there, and the memory is readable.
pub(crate) unsafe fn is_held_once(address: usize) -> bool {
    let mutex = address as *const pthread_mutex_t;
    // SAFETY: the caller's contract.
    unsafe {
        word(mutex, 0) != 0
            && word(mutex, MUTEX_COUNT) == 1
            && owns(mutex)
            && kind(mutex) == MutexKind(libc::PTHREAD_MUTEX_RECURSIVE)
    }
}

/// Notes the running thread as the owner of a mutex that inherits priorities. libc asks
/// the kernel for the mutex of a thread that has died; the kernel notes the OS thread as its owner,
/// and unlocking would fail.
///
/// # Safety
/// `mutex` is initialised, and the running thread has just locked it.
pub(crate) unsafe fn own(mutex: *mut pthread_mutex_t) {
    // SAFETY: the caller's contract: the lock word is the first. No thread waits for it in the
    // kernel, which would note that there. Release: a thread that finds the mutex taken sees only
    // that.
    unsafe { AtomicU32::from_ptr(mutex.cast()) }.store(own_id(), Ordering::Release);
}

/// Returns whether the running thread has a lock for writing.
///
/// # Safety
/// `lock` is initialised.
pub(crate) unsafe fn owns_for_writing(lock: *const pthread_rwlock_t) -> bool {
    // SAFETY: the caller's contract.
    unsafe { word(lock, RWLOCK_WRITER) == own_id() }
}

/// Returns the id, in glibc's terms, of the thread that has a mutex, or a lock for writing, of
/// which only the address is known.
#[cfg(feature = "dump")]
pub fn owner_of(kind: Kind, address: usize) -> Option<u32> {
    let offset = match kind {
        Kind::Mutex => MUTEX_OWNER,
        Kind::RwLockToRead | Kind::RwLockToWrite => RWLOCK_WRITER,
        _ => return None,
    };
    let owner = sys::fetch_u32(address + offset).ok()?;
    (owner != 0).then_some(owner)
}

/// Returns the running thread's id in glibc's terms.
pub(super) fn own_id() -> u32 {
    match pirn_rt::glibc::tls::installed() {
        // SAFETY: the thread's own TCB.
        Some(template) => unsafe { template.tid_place(pirn_rt::arch::thread_pointer()).read() },
        // Before the runtime's start there are platform threads only.
        None => sys::os_thread_id(),
    }
}

/// A bit that an `init` function writes.
struct Flag(AtomicU32);

impl Flag {
    const UNKNOWN: u32 = 0;
    /// In the upper half: no such bit exists, so it is never set.
    const NONE: u32 = 1 << 31;

    const fn unknown() -> Flag {
        Flag(AtomicU32::new(Flag::UNKNOWN))
    }

    /// Returns whether it is set in `object`. `make(object, on)` initialises objects for a
    /// comparison.
    ///
    /// # Safety
    /// `object` is initialised.
    unsafe fn is_set<T>(&self, object: *const T, make: unsafe fn(*mut T, bool)) -> bool {
        // Relaxed: every thread finds the same value.
        let mut place = self.0.load(Ordering::Relaxed);
        if place == Flag::UNKNOWN {
            place = find(make);
            self.0.store(place, Ordering::Relaxed);
        }
        if place == Flag::NONE {
            return false;
        }
        let (offset, mask) = (place as usize & 0xffff, place >> 16 & 0xff);
        // SAFETY: inside the object. (The byte itself is never written after `init`, but the rest
        // of its word is.)
        u32::from(unsafe { object.cast::<u8>().add(offset).read_volatile() }) & mask != 0
    }
}

/// Returns the offset of the byte that differs, and above it the mask of the bits that differ.
fn find<T>(make: unsafe fn(*mut T, bool)) -> u32 {
    let (mut plain, mut flagged) = (MaybeUninit::<T>::zeroed(), MaybeUninit::<T>::zeroed());
    let bytes = |object: *const T| {
        // SAFETY: zeroed, then initialised: all bytes have values.
        unsafe { core::slice::from_raw_parts(object.cast::<u8>(), size_of::<T>()) }
    };
    // SAFETY: memory for objects of this type.
    unsafe {
        make(plain.as_mut_ptr(), false);
        make(flagged.as_mut_ptr(), true);
    }
    let mut pairs = bytes(plain.as_ptr())
        .iter()
        .zip(bytes(flagged.as_ptr()))
        .enumerate();
    match pairs.find(|(_, (a, b))| a != b) {
        Some((offset, (a, b))) => offset as u32 | u32::from(a ^ b) << 16,
        None => Flag::NONE,
    }
}

/// Returns whether a condition variable is shared between processes.
///
/// # Safety
/// `cond` is initialised.
pub(crate) unsafe fn cond_is_shared(cond: *const pthread_cond_t) -> bool {
    static FLAG: Flag = Flag::unknown();
    unsafe fn make(cond: *mut pthread_cond_t, on: bool) {
        // SAFETY: the caller passes memory for one.
        unsafe { make_cond(cond, libc::CLOCK_REALTIME, on) };
    }
    // SAFETY: the caller's contract.
    unsafe { FLAG.is_set(cond, make) }
}

/// Returns whether a condition variable's times are on `CLOCK_MONOTONIC`.
///
/// # Safety
/// `cond` is initialised.
pub(crate) unsafe fn cond_is_monotonic(cond: *const pthread_cond_t) -> bool {
    static FLAG: Flag = Flag::unknown();
    unsafe fn make(cond: *mut pthread_cond_t, on: bool) {
        let clock = if on {
            libc::CLOCK_MONOTONIC
        } else {
            libc::CLOCK_REALTIME
        };
        // SAFETY: the caller passes memory for one.
        unsafe { make_cond(cond, clock, false) };
    }
    // SAFETY: the caller's contract.
    unsafe { FLAG.is_set(cond, make) }
}

unsafe fn make_cond(cond: *mut pthread_cond_t, clock: libc::clockid_t, shared: bool) {
    let mut attributes = MaybeUninit::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: initialised here before use.
    unsafe {
        libc::pthread_condattr_init(attributes);
        libc::pthread_condattr_setclock(attributes, clock);
        libc::pthread_condattr_setpshared(attributes, shared.into());
        libc::pthread_cond_init(cond, attributes);
        libc::pthread_condattr_destroy(attributes);
    }
}

/// Returns whether a read-write lock is shared between processes.
///
/// # Safety
/// `lock` is initialised.
pub(crate) unsafe fn rwlock_is_shared(lock: *const pthread_rwlock_t) -> bool {
    static FLAG: Flag = Flag::unknown();
    unsafe fn make(lock: *mut pthread_rwlock_t, on: bool) {
        // SAFETY: the caller passes memory for one.
        unsafe { make_rwlock(lock, 0, on) };
    }
    // SAFETY: the caller's contract.
    unsafe { FLAG.is_set(lock, make) }
}

/// Returns whether a waiting writer is to keep new readers out.
///
/// # Safety
/// `lock` is initialised.
pub(crate) unsafe fn rwlock_prefers_writers(lock: *const pthread_rwlock_t) -> bool {
    static FLAG: Flag = Flag::unknown();
    /// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`. glibc ignores the other one, 1.
    const PREFER_WRITERS: c_int = 2;
    unsafe fn make(lock: *mut pthread_rwlock_t, on: bool) {
        // SAFETY: the caller passes memory for one.
        unsafe { make_rwlock(lock, if on { PREFER_WRITERS } else { 0 }, false) };
    }
    // SAFETY: the caller's contract.
    unsafe { FLAG.is_set(lock, make) }
}

unsafe fn make_rwlock(lock: *mut pthread_rwlock_t, preference: c_int, shared: bool) {
    let mut attributes = MaybeUninit::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: initialised here before use.
    unsafe {
        libc::pthread_rwlockattr_init(attributes);
        libc::pthread_rwlockattr_setkind_np(attributes, preference);
        libc::pthread_rwlockattr_setpshared(attributes, shared.into());
        libc::pthread_rwlock_init(lock, attributes);
        libc::pthread_rwlockattr_destroy(attributes);
    }
}

/// Returns whether a semaphore is shared between processes.
///
/// # Safety
/// `semaphore` is initialised.
pub(crate) unsafe fn semaphore_is_shared(semaphore: *const sem_t) -> bool {
    static FLAG: Flag = Flag::unknown();
    unsafe fn make(semaphore: *mut sem_t, on: bool) {
        // SAFETY: the caller passes memory for one.
        unsafe { libc::sem_init(semaphore, on.into(), 0) };
    }
    // SAFETY: the caller's contract.
    unsafe { FLAG.is_set(semaphore, make) }
}

/// Checks the constants above. Runs on a platform thread.
pub(crate) fn check() -> Result<(), String> {
    let mut mutex = libc::PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
    let (mutex, lock) = (&raw mut mutex, &raw mut lock);
    // SAFETY: initialised objects of this function.
    let fine = unsafe {
        let before = !owns(mutex) && !owns_for_writing(lock);
        real!(fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int);
        real!(fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int);
        let held = owns(mutex) && owns_for_writing(lock) && kind(mutex).checks_errors();
        real!(fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int);
        real!(fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int);
        before && held && !owns(mutex) && !owns_for_writing(lock)
    };
    if fine {
        Ok(())
    } else {
        Err("this glibc lays out its locks in a way pirn does not know".into())
    }
}
