//! Mutexes whose owner is read outside of this process: robust ones, by the kernel; and shared ones
//! that remember their owner, by other processes.
//!
//! When a process is killed, the kernel walks over the robust mutexes of each of its OS threads,
//! and marks those whose lock word has that thread's id. And virtual threads of two processes may
//! have the same id, so that each would take the other's mutex for its own. So a virtual thread has
//! such a mutex by way of the [stand-in](stand_in), which lasts as long as the process: libc's
//! functions run with its thread pointer, which stores its id in the mutex and puts a robust one
//! into its list. Which virtual thread has which mutex is noted here.
//!
//! ```text
//!   mutex                         TABLE, of this process       the stand-in's TCB
//!   lock word: stand-in's id      mutex -> virtual thread      list of robust mutexes
//! ```
//!
//! The kernel looks at the first 2048 mutexes of a list.

use crate::signals::stand_in::{self, StandIn};
use crate::sync::layout;
use crate::sync::mutex::Mutex;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use pirn_rt::arch;
use pirn_rt::glibc::symbols::real;
use pirn_rt::lock::Lock;
use pirn_rt::vthread;

/// A mutex that a virtual thread has.
struct Held {
    mutex: usize,
    /// The id of its owner in glibc's terms.
    owner: u32,
}

static TABLE: Lock<Vec<Held>> = Lock::new(Vec::new());
/// Whether there has ever been such a mutex.
static ANY: AtomicBool = AtomicBool::new(false);

/// Begins anew, in the child of a fork, which has none.
pub(crate) fn after_fork() {
    // Relaxed: there is one thread.
    if ANY.swap(false, Relaxed) {
        // SAFETY: the threads that may have held it are gone.
        unsafe { TABLE.renew(Vec::new()) };
    }
}

/// Returns whether the running thread has a mutex by way of the stand-in.
///
/// # Safety
/// `mutex` is initialised.
#[inline]
pub(super) unsafe fn is_one(mutex: Mutex) -> bool {
    // SAFETY: the caller's contract.
    let tells = unsafe { layout::kind(mutex).tells_others_its_owner() };
    tells && vthread::current().is_some()
}

/// A function of libc's on a mutex.
type Operation = unsafe fn(Mutex) -> c_int;

/// Calls a function of libc's with the stand-in's thread pointer.
///
/// # Safety
/// As for the function. The table is locked: no other thread uses the stand-in's TCB, and the
/// stand-in does not either.
unsafe fn by(stand_in: StandIn, operation: Operation, mutex: Mutex) -> c_int {
    struct Call(Operation, Mutex, c_int);
    unsafe extern "C" fn run(call: *mut u8) {
        // SAFETY: the call below.
        unsafe {
            let call = &mut *call.cast::<Call>();
            call.2 = call.0(call.1);
        }
    }
    let mut call = Call(operation, mutex, 0);
    // SAFETY: the caller's contract; libc's functions do not unwind, and nothing suspends.
    unsafe { arch::call_with_tp(stand_in.tp, run, (&raw mut call).cast()) };
    call.2
}

fn real_try_lock(mutex: Mutex) -> c_int {
    // SAFETY: called with what the program has passed.
    unsafe { real!(fn pthread_mutex_trylock(mutex: Mutex) -> c_int) }
}

fn real_unlock(mutex: Mutex) -> c_int {
    // SAFETY: the mutex is the caller's, in libc's terms the stand-in's.
    unsafe { real!(fn pthread_mutex_unlock(mutex: Mutex) -> c_int) }
}

fn real_consistent(mutex: Mutex) -> c_int {
    // SAFETY: the mutex is the caller's, in libc's terms the stand-in's.
    unsafe { real!(fn pthread_mutex_consistent(mutex: Mutex) -> c_int) }
}

/// Returns the owner of a mutex in this process.
fn owner(table: &[Held], mutex: Mutex) -> Option<u32> {
    let held = table.iter().find(|held| held.mutex == mutex.addr());
    held.map(|held| held.owner)
}

/// Returns whether the running virtual thread has a mutex.
pub(super) fn has(mutex: Mutex) -> bool {
    owner(&TABLE.lock(), mutex) == Some(layout::own_id())
}

/// Tries to lock the mutex. Without a stand-in, the kernel does not know its owner.
///
/// # Safety
/// [`is_one`], here and below.
pub(super) unsafe fn try_lock(mutex: Mutex) -> c_int {
    let Ok(stand_in) = stand_in::get() else {
        return real_try_lock(mutex);
    };
    let own = layout::own_id();
    let mut table = TABLE.lock();
    let before = owner(&table, mutex);
    if before.is_some_and(|owner| owner != own) {
        return libc::EBUSY;
    }
    // SAFETY: the table is locked.
    let result = unsafe { by(stand_in, real_try_lock, mutex) };
    if before.is_none() && matches!(result, 0 | libc::EOWNERDEAD) {
        ANY.store(true, Relaxed); // Relaxed: for its own thread, and those after a fork.
        let mutex = mutex.addr();
        table.push(Held { mutex, owner: own });
    }
    result
}

/// Unlocks the mutex.
pub(super) unsafe fn unlock(mutex: Mutex) -> c_int {
    let own = layout::own_id();
    let mut table = TABLE.lock();
    let place = table.iter().position(|held| held.mutex == mutex.addr());
    let (Some(place), Ok(stand_in)) = (place, stand_in::get()) else {
        drop(table);
        return real_unlock(mutex);
    };
    if table[place].owner != own {
        return libc::EPERM;
    }
    // Before it is unlocked, when it may be gone.
    // SAFETY: the caller's contract.
    let last = unsafe { layout::is_last_lock(mutex) };
    // SAFETY: the table is locked.
    let result = unsafe { by(stand_in, real_unlock, mutex) };
    if result == 0 && last {
        table.swap_remove(place);
    }
    result
}

/// Marks the mutex as consistent.
pub(super) unsafe fn make_consistent(mutex: Mutex) -> c_int {
    let table = TABLE.lock();
    match (owner(&table, mutex), stand_in::get()) {
        // SAFETY: the table is locked.
        (Some(_), Ok(stand_in)) => unsafe { by(stand_in, real_consistent, mutex) },
        _ => real_consistent(mutex),
    }
}

/// Calls `mark` for each robust mutex that the running virtual thread, which ends, still has: with
/// the address of its lock word, the word, and the id in it.
pub(crate) fn owner_dies(mark: impl Fn(usize, &AtomicU32, u32)) {
    // Relaxed: as in `try_lock`.
    if !ANY.load(Relaxed) {
        return;
    }
    let Ok(stand_in) = stand_in::get() else {
        return;
    };
    let own = layout::own_id();
    let mut left = Vec::new();
    let mut table = TABLE.lock();
    table.retain(|held| {
        let mutex = held.mutex as Mutex;
        // SAFETY: the thread has it, so it is there; the list is used under the lock only.
        if held.owner == own && unsafe { layout::kind(mutex).is_robust() } {
            // SAFETY: the thread has it, so it is there; the list is used under the lock only.
            unsafe { layout::leave_list(held.mutex) };
            left.push(held.mutex);
        }
        held.owner != own
    });
    drop(table);
    for address in left {
        // SAFETY: a mutex that the thread has locked, so it is there; the word is its first.
        let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
        mark(address, word, stand_in.id);
    }
}
