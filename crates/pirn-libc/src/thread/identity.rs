//! Attributes of a thread: stack, CPU, id.

use super::scheduling;
use crate::posix;
use crate::registry::interposed;
use core::ffi::{c_int, c_uint, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::{cpu_set_t, pthread_attr_t, pthread_t, size_t};
use pirn_rt::glibc::symbols::real;
use pirn_rt::glibc::tls;
use pirn_rt::stack::{Slot, region};
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::vthread;

interposed! {
    family "Attributes of threads" for Correctness;

    Own by hand {
        pthread_getattr_np, pthread_setattr_default_np, sched_getcpu,
    }
    Kernel by hand {
        gettid: "the carrier's id; the thread's own where `pthread_create` makes virtual threads",
    }
}

unsafe extern "C" {
    fn pthread_attr_setstack(
        attributes: *mut pthread_attr_t,
        stack: *mut c_void,
        size: size_t,
    ) -> c_int;
    fn pthread_attr_setguardsize(attributes: *mut pthread_attr_t, size: size_t) -> c_int;
    fn pthread_attr_setaffinity_np(
        attributes: *mut pthread_attr_t,
        size: size_t,
        set: *const cpu_set_t,
    ) -> c_int;
}

/// The thread of this process that was virtual and has forked, in the child: it is a platform
/// thread in a slot. 0: there is none.
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
    // Relaxed: as above.
    slot_with(thread).filter(|_| FORKED.load(Ordering::Relaxed) != thread as usize)
}

/// Returns the slot of a thread that is virtual, or was.
fn slot_with(thread: pthread_t) -> Option<Slot> {
    region::slot_at(thread as usize).filter(|slot| slot.tp() == thread as usize)
}

/// `pthread_getattr_np`: for a virtual thread, gives its stack.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getattr_np(
    thread: pthread_t,
    attributes: *mut pthread_attr_t,
) -> c_int {
    let Some(slot) = slot_with(thread) else {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(fn pthread_getattr_np(thread: pthread_t, attributes: *mut pthread_attr_t) -> c_int)
        };
    };
    let record = posix::find(thread);
    let (lowest, guard) = match record {
        Some(record) => record.stack(slot),
        None => (slot.bottom(), slot.bottom() - slot.base()),
    };
    let state = match record.is_none_or(|record| record.is_detached()) {
        true => libc::PTHREAD_CREATE_DETACHED,
        false => libc::PTHREAD_CREATE_JOINABLE,
    };
    // SAFETY: the caller's contract: room for attributes, initialised here.
    unsafe {
        match libc::pthread_attr_init(attributes) {
            0 => {}
            e => return e,
        }
        pthread_attr_setguardsize(attributes, guard);
        libc::pthread_attr_setdetachstate(attributes, state);
        pthread_attr_setstack(attributes, lowest as *mut c_void, slot.end() - lowest);
        add_cpus(thread, attributes)
    }
}

/// Adds the CPUs that a thread may run on to its attributes, as libc does: without memory for that
/// there are no attributes.
///
/// # Safety
/// The thread exists, and the attributes are initialised.
unsafe fn add_cpus(thread: pthread_t, attributes: *mut pthread_attr_t) -> c_int {
    let mut cpus = MaybeUninit::<cpu_set_t>::zeroed();
    let (size, cpus) = (size_of::<cpu_set_t>(), cpus.as_mut_ptr());
    // SAFETY: the caller's contract; room for the set.
    unsafe {
        if scheduling::pthread_getaffinity_np(thread, size, cpus) != 0 {
            return 0; // There are more CPUs than such a set has room for.
        }
        let error = pthread_attr_setaffinity_np(attributes, size, cpus);
        if error != 0 {
            libc::pthread_attr_destroy(attributes);
        }
        error
    }
}

/// `pthread_setattr_default_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setattr_default_np(attributes: *const pthread_attr_t) -> c_int {
    posix::note_defaults();
    // SAFETY: the caller's contract.
    unsafe { real!(fn pthread_setattr_default_np(attributes: *const pthread_attr_t) -> c_int) }
}

/// `sched_getcpu`: libc reads the TLS block, in which the kernel stores the number for platform
/// threads only.
#[unsafe(no_mangle)]
pub extern "C" fn sched_getcpu() -> c_int {
    if vthread::current().is_none() {
        // SAFETY: no arguments.
        return unsafe { real!(fn sched_getcpu() -> c_int) };
    }
    let mut cpu: c_uint = 0;
    // SAFETY: the kernel writes one number.
    match unsafe { call!(libc::SYS_getcpu, &raw mut cpu, 0, 0) } {
        Ok(_) => cpu as c_int,
        Err(Errno(e)) => sys::to_c(Err(Errno(e))) as c_int,
    }
}

/// `gettid`: the carrier's id, which changes. Where `pthread_create` makes virtual threads, the
/// program takes it for the thread's: then it is that of the TCB, which glibc's locks use as well.
#[unsafe(no_mangle)]
pub extern "C" fn gettid() -> libc::pid_t {
    if posix::is_on() && vthread::current().is_some() {
        let place = pirn_rt::arch::thread_pointer() + tls::template().tid_offset;
        // SAFETY: the running thread's TCB.
        return unsafe { (place as *const libc::pid_t).read() };
    }
    sys::os_thread_id() as libc::pid_t
}
