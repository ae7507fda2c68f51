//! Which thread an id, or a `pthread_t`, means.
//!
//! The id of a virtual thread is in its TCB: above all ids that the kernel gives out, and below
//! `FUTEX_TID_MASK`, since it becomes the owner of locks. The id leads to the slot, and the id in
//! the slot's TCB tells whether that thread is still there. So functions that take an id know at
//! once whose it is:
//!
//! ```text
//!   0                    the caller
//!   below 2^22           the kernel's: a platform thread, or a process
//!   from 2^22 on         a virtual thread's, or no thread's
//! ```

use crate::posix;
use crate::registry::interposed;
use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use libc::{pid_t, pthread_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::glibc::tls;
use pirn_rt::stack::{Slot, region};
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::vthread::{self, Core, table};
use pirn_rt::{arch, sched::runtime};

interposed! {
    family "Identities of threads" for Correctness;

    Own by hand { sched_getcpu }
    Kernel by hand {
        gettid: "the carrier's id; the thread's own where `pthread_create` makes virtual threads",
    }
}

/// The thread of this process that was virtual and has forked, in the child: it is a platform
/// thread in a slot. 0: no thread has forked.
static FORKED: AtomicUsize = AtomicUsize::new(0);

/// Makes the running virtual thread, which has forked, a thread of libc's to all functions here.
pub(crate) fn after_fork() {
    if let Some(threads) = posix::threads() {
        threads.forget_own();
    }
    // SAFETY: no arguments.
    let own = unsafe { libc::pthread_self() } as usize;
    FORKED.store(own, Ordering::Relaxed); // Relaxed: there is one thread.
}

/// Returns the stack of a virtual thread, given by its `pthread_t`.
pub fn slot_of(thread: pthread_t) -> Option<Slot> {
    // Relaxed: written by the thread that forked, before this child had a second thread.
    slot_with(thread).filter(|_| FORKED.load(Ordering::Relaxed) != thread as usize)
}

/// Returns whether a thread is a virtual one.
pub fn is_virtual(thread: pthread_t) -> bool {
    runtime::is_started() && slot_of(thread).is_some()
}

/// Returns the slot of a thread that is virtual, or was.
pub(crate) fn slot_with(thread: pthread_t) -> Option<Slot> {
    region::slot_at(thread as usize).filter(|slot| slot.pthread() == thread as usize)
}

/// libc reads the TLS block, in which the kernel stores the number for platform threads only.
#[libc_fn]
pub fn sched_getcpu() -> c_int {
    if vthread::current().is_none() {
        // SAFETY: no arguments.
        return unsafe { libcs!() };
    }
    let mut cpu: c_uint = 0;
    // SAFETY: the kernel writes one number.
    let result = unsafe { call!(libc::SYS_getcpu, &raw mut cpu, 0, 0) };
    sys::to_c(result.map(|_| cpu as usize)) as c_int
}

/// The carrier's id, which changes. Where `pthread_create` makes virtual threads, the
/// program expects an id that stays: it gets the one in the TCB, which glibc's locks use as well.
#[libc_fn]
pub fn gettid() -> pid_t {
    if posix::is_on() && vthread::current().is_some() {
        return own_id();
    }
    sys::os_thread_id() as pid_t
}

/// Whose an id is.
pub(crate) enum Whose {
    /// A virtual thread's.
    Virtual(pthread_t),
    /// The kernel knows.
    Kernels,
}

/// Returns whose an id is.
///
/// # Errors
/// `ESRCH`: it is the id of a virtual thread that does not exist any more.
pub(crate) fn find(id: pid_t) -> Result<Whose, Errno> {
    if id == 0 {
        return Ok(match vthread::current() {
            // SAFETY: no arguments.
            Some(_) => Whose::Virtual(unsafe { libc::pthread_self() }),
            None => Whose::Kernels,
        });
    }
    let Some(slot) = Slot::of_tid(id.cast_unsigned()) else {
        return Ok(Whose::Kernels);
    };
    let may_be = runtime::is_started() && region::exists(slot);
    match may_be && is_in(slot, id) && table::has_thread(slot) {
        true => Ok(Whose::Virtual(slot.pthread() as pthread_t)),
        false => Err(Errno(libc::ESRCH)),
    }
}

/// Returns whether the thread in a slot that exists has this id, or the last one there had it.
fn is_in(slot: Slot, id: pid_t) -> bool {
    let place = tls::template().tid_place(slot.tp());
    // SAFETY: in a slot, whose memory is there for good. Relaxed: the program has ordered it.
    unsafe { AtomicU32::from_ptr(place) }.load(Ordering::Relaxed) == id as u32
}

/// Calls `f` with the virtual thread in a slot, if there is one, and it has this id, if one is
/// given. The thread may end at any time until `f` is called, and then its slot is another's.
///
/// As [`table::visit`]: `f` is short, and no handler that visits a thread may run meanwhile.
pub(crate) fn visit<R>(slot: Slot, id: Option<pid_t>, f: impl FnOnce(&Core) -> R) -> Option<R> {
    let is_it = || id.is_none_or(|id| is_in(slot, id));
    table::visit(slot, |core| is_it().then(|| f(core))).flatten()
}

/// Returns the running virtual thread's own id, if this one, the kernel's, is its carrier's: what
/// `gettid` gives in Rust programs.
pub(crate) fn of_own_carrier(id: pid_t) -> Option<pid_t> {
    let is_carriers = vthread::current().is_some() && id.cast_unsigned() == sys::os_thread_id();
    is_carriers.then(own_id)
}

/// Returns the id in the running thread's TCB.
fn own_id() -> pid_t {
    let place = tls::template().tid_place(arch::thread_pointer());
    // SAFETY: the running thread's TCB.
    unsafe { place.read() }.cast_signed()
}

/// Returns the id that the kernel knows: the process has it in place of a virtual thread.
///
/// # Errors
/// `ESRCH`: the thread does not exist any more.
pub(crate) fn process_of(id: pid_t) -> Result<pid_t, Errno> {
    match id {
        ..=0 => Ok(id),
        _ => Ok(match find(id)? {
            Whose::Virtual(_) => std::process::id().cast_signed(),
            Whose::Kernels => id,
        }),
    }
}
