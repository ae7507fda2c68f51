//! `fork`: the child's only thread is the one that forked, which becomes a platform thread.
//!
//! libc's `fork` runs unchanged, on the thread pointer of the virtual thread: the program's
//! `pthread_atfork` handlers find their thread-locals and may park. In the child libc puts the
//! caller's TCB into its list of threads and writes the child's thread id into it. It first takes
//! the TCB out of "the list it is in", which works because the TCB is linked to itself. So the
//! forked thread becomes, for libc too, a thread like any other. The carriers' stacks go to libc's
//! cache of unused stacks there.
//!
//! A handler does the rest in the child, so that it covers forks made inside libc (`daemon`,
//! `forkpty`) as well. It is registered before all others, since the program's call
//! interposed functions, and libc calls them in the order of their registration. Libraries may
//! register theirs long before the runtime starts, in constructors that run before ours: so the
//! function that registers them, to which `pthread_atfork` leads, is interposed. In the child
//! * there are no other virtual threads, no carriers, and no spawning: a spawn fails with an error
//!   that says so. Only where `pthread_create` makes virtual threads, the first one starts
//!   [another runtime](pirn_rt::sched::runtime);
//! * until then every interposed function acts as libc does. None needs a lock that another thread
//!   may have held at the fork, nor touches the epoll instance, which is the parent's.

use crate::registry::interposed;
use crate::signals::{information, process_wide, stand_in};
use crate::sync::by_stand_in;
use crate::thread::scheduling;
use crate::{identity, posix};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use libc::pid_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::glibc::thread::move_rseq_here;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched;
use pirn_rt::sched::runtime;
use pirn_rt::vthread::signals;
use pirn_rt::{process, sys, vthread};
use std::sync::OnceLock;

type Handler = Option<unsafe extern "C" fn()>;

interposed! {
    family "Forking" for Correctness;

    Own by hand {
        vfork: "as `fork`, which libc does on the virtual thread; see the limits", _Fork,
        __register_atfork: "`pthread_atfork`; Pirn's own handler is the first",
    }
    Own as { fn __vfork() -> pid_t = vfork(); }
}

/// Whether the handler has been registered, or is just being so.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
/// Whether there is anything that a child has to leave behind.
static IS_NEEDED: AtomicBool = AtomicBool::new(false);

/// Whether a virtual thread has forked this process.
static BY_VIRTUAL: AtomicBool = AtomicBool::new(false);

/// Returns whether a virtual thread has forked this process: the kernel takes that one's carrier
/// for its parent.
pub(super) fn by_virtual_thread() -> bool {
    BY_VIRTUAL.load(Ordering::Relaxed) // Relaxed: set while there was one thread.
}

/// What the crates above do in a child.
static ABOVE: OnceLock<fn()> = OnceLock::new();

/// Makes every child leave the runtime behind from now on, and call `above`. Called once, at the
/// start.
pub fn install(above: fn()) -> Result<(), String> {
    let _ = ABOVE.set(above); // Another attempt to start brings the same function.
    IS_NEEDED.store(true, Ordering::Relaxed); // Relaxed: a child has what its parent's thread saw.
    match register() {
        true => Ok(()),
        false => Err("no memory for a fork handler".into()),
    }
}

/// Registers the handler, unless that has been done. Returns whether it is registered.
fn register() -> bool {
    // Relaxed: no other data. Another thread that registers a handler of its own just now may
    // come first.
    if IS_REGISTERED.swap(true, Ordering::Relaxed) {
        return true;
    }
    // SAFETY: the handler stays valid for ever.
    let error = unsafe { libc::pthread_atfork(None, None, Some(handler)) };
    if error != 0 {
        IS_REGISTERED.store(false, Ordering::Relaxed); // Relaxed: no other data.
    }
    error == 0
}

/// The function that `pthread_atfork`, a part of each program and library, calls.
#[libc_fn]
pub unsafe fn __register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    object: *mut c_void,
) -> c_int {
    register(); // Without memory for it, the start tries again.
    libcs!()
}

/// The first handler of each child.
unsafe extern "C" fn handler() {
    // Relaxed: as in `install`.
    if IS_NEEDED.load(Ordering::Relaxed) {
        // SAFETY: in the child.
        unsafe { in_child() };
    }
}

/// Makes the running thread, the only one of a new process, a platform thread.
unsafe extern "C" fn in_child() {
    let section = NoSuspend::new();
    let carrier = vthread::current().and(sched::carrier(&section));
    BY_VIRTUAL.store(vthread::current().is_some(), Ordering::Relaxed); // Relaxed: no other data.
    if vthread::current().is_some() {
        // The child's only thread has the mask of the thread that forked, and no signal is pending.
        // The kernel gets what that thread has asked for about its scheduling.
        sys::block_only(signals::mask());
        // SAFETY: the running thread was virtual.
        if let Some(requested) = unsafe { scheduling::own() } {
            requested.apply();
        }
        identity::after_fork();
    }
    information::after_fork();
    process_wide::after_fork();
    stand_in::after_fork();
    by_stand_in::after_fork();
    vthread::become_platform_thread();
    process::stop();
    if let Some(above) = ABOVE.get() {
        above();
    }
    if let Some(carrier) = carrier {
        move_rseq_here(carrier.native_tp());
    }
}

/// Calls `fork`, which POSIX allows. The child of a real `vfork` would share the table of
/// descriptors with its parent, and close the parent's in it.
#[libc_fn]
pub fn vfork() -> pid_t {
    // SAFETY: no arguments.
    unsafe { libc::fork() }
}

/// Without the program's handlers.
#[libc_fn]
pub fn _Fork() -> pid_t {
    // SAFETY: no arguments.
    let pid = unsafe { libcs!() };
    if pid == 0 && runtime::is_started() {
        if let Some(threads) = posix::threads() {
            threads.count_anew();
        }
        // SAFETY: in the child.
        unsafe { in_child() };
    }
    pid
}
