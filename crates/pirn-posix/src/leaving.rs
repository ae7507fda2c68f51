//! The end of the process when all its threads have ended, although `main` has not returned.
//!
//! A program may end its first thread by `pthread_exit`; the process then ends with its last
//! thread, with status 0. libc counts its own threads, the runtime's among them, and would wait for
//! ever. So the threads of the program are counted here: its first one, virtual ones, and platform
//! ones that were made in place of virtual ones. Platform threads report by the destructor of a
//! `pthread` key, in its last round, that is after the other destructors.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use libc::pthread_key_t;
use pirn_libc::posix;
use pirn_libc::signals::process_wide;
use pirn_libc::thread::specific::Destructor;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched::set_end_in_child;
use pirn_rt::sys;

/// The number of the program's threads.
static ALIVE: AtomicUsize = AtomicUsize::new(1);
/// The most threads at once so far, without the first.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// The key of platform threads that are counted, plus 1; 0: none.
static KEY: AtomicU32 = AtomicU32::new(0);
/// `PTHREAD_DESTRUCTOR_ITERATIONS`.
const ROUNDS: usize = 4;

/// Creates the key, and makes the running thread report its end if it is the process's first.
/// Without a key, the process does not end by itself.
pub(crate) fn prepare() {
    // SeqCst, here and below: seldom used.
    if KEY.load(Ordering::SeqCst) == 0 {
        make_key();
        set_end_in_child(end_in_child);
        // SAFETY: the handler stays valid for ever. Without memory for it, the child of a process
        // with other threads does not end by itself.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    }
    if sys::is_first_thread() {
        report_this(); // The first thread may also be cancelled.
    }
}

fn make_key() {
    let (mut key, destructor): (pthread_key_t, Destructor) = (0, Some(round_is_over));
    let place = &raw mut key;
    // libc's own function: to our table of keys it does not exist.
    // SAFETY: a place for the key, and a destructor for the values that `count_this` sets.
    let error = unsafe {
        real!(fn pthread_key_create(place: *mut pthread_key_t, destructor: Destructor) -> c_int)
    };
    if error == 0 {
        KEY.store(key + 1, Ordering::SeqCst);
    }
}

/// Counts anew, in the child of a fork: there is one thread.
pub(crate) extern "C" fn after_fork() {
    ALIVE.store(1, Ordering::SeqCst);
    forget_most();
}

/// Ends the running thread, which was virtual and has forked, in the child. Returns if it is the
/// only thread there.
fn end_in_child() {
    if ALIVE.fetch_sub(1, Ordering::SeqCst) > 1 {
        // As libc does with the first thread: it is gone, and the process stays for the others.
        // SAFETY: no pointers; nothing of this thread is used any more but its stack, which stays.
        let _ = unsafe { sys::call!(libc::SYS_exit, 0) };
    }
}

/// Counts a thread that is about to begin.
pub(crate) fn enter() {
    let others = ALIVE.fetch_add(1, Ordering::SeqCst);
    // Relaxed: statistics only.
    if others > MOST.load(Ordering::Relaxed) {
        MOST.fetch_max(others, Ordering::Relaxed);
    }
}

/// Returns the most threads that the program has had at once, without its first one.
pub(crate) fn most() -> usize {
    MOST.load(Ordering::Relaxed) // Relaxed: statistics only.
}

/// Begins anew with [`most`].
pub(crate) fn forget_most() {
    MOST.store(0, Ordering::Relaxed); // Relaxed: statistics only.
}

/// Takes back an [`enter`]: the thread could not be made.
pub(crate) fn withdraw() {
    ALIVE.fetch_sub(1, Ordering::SeqCst);
}

/// Reports the end of the running thread, as its last action. Does not return if it is the last.
pub(crate) fn leave() {
    if ALIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
        // SAFETY: what libc does after the last thread of a process.
        unsafe { libc::exit(0) };
    }
}

/// Makes the running platform thread report its end.
pub(crate) fn report_this() {
    if let Some(key) = KEY.load(Ordering::SeqCst).checked_sub(1) {
        set(key, 1);
    }
}

/// Makes the running thread, which is about to end by `pthread_exit`, report its end if it is the
/// first thread of the process.
pub(crate) fn main_exits() {
    if posix::is_on() && sys::is_first_thread() {
        process_wide::watch(); // It takes no signals any more.
        report_this();
    }
}

/// Sets the running platform thread's value, the number of the round that comes.
fn set(key: pthread_key_t, round: usize) {
    let value = ptr::without_provenance::<c_void>(round);
    // SAFETY: a key of ours.
    let _ =
        unsafe { real!(fn pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int) };
}

/// Called by libc in each round of destructors.
unsafe extern "C" fn round_is_over(value: *mut c_void) {
    match (KEY.load(Ordering::SeqCst).checked_sub(1), value.addr()) {
        (Some(key), round) if round < ROUNDS => set(key, round + 1),
        _ => leave(),
    }
}
