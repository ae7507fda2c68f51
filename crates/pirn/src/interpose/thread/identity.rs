//! Attributes of a thread: stack, affinity, scheduling parameters, clock.

use super::pthread::{self, Pthread};
use super::{is_virtual, policy};
use crate::glibc::symbols::real;
use crate::glibc::tls;
use crate::interpose::registry::interposed;
use crate::stack::{Slot, region};
use crate::sys::{self, Errno, call};
use crate::vthread;
use core::ffi::{c_int, c_uint, c_void};
use libc::{clockid_t, cpu_set_t, pthread_attr_t, pthread_t, sched_param, size_t};

interposed! {
    family "Attributes of threads" for Correctness,
        cannot "bind a virtual thread to a CPU, give it a priority, or count its CPU time";

    Own by hand {
        pthread_getattr_np, pthread_getaffinity_np: "the carriers' CPUs", pthread_getschedparam, sched_getcpu,
    }
    Kernel by hand { gettid: "the carrier's id" }
    Refuses by hand {
        pthread_setaffinity_np: "`ENOTSUP`",
        pthread_setschedparam: "`ENOTSUP`, unless it changes nothing", pthread_setschedprio,
        pthread_getcpuclockid: "`ENOENT`",
    }
}

unsafe extern "C" {
    fn pthread_attr_setstack(
        attributes: *mut pthread_attr_t,
        stack: *mut c_void,
        size: size_t,
    ) -> c_int;
    fn pthread_attr_setguardsize(attributes: *mut pthread_attr_t, size: size_t) -> c_int;
}

/// Returns the stack of a virtual thread, given by its `pthread_t`.
pub(in crate::interpose) fn slot_of(thread: pthread_t) -> Option<Slot> {
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
    let Some(slot) = slot_of(thread) else {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(fn pthread_getattr_np(thread: pthread_t, attributes: *mut pthread_attr_t) -> c_int)
        };
    };
    let record = pthread::find(thread);
    let lowest = record.map_or_else(|| slot.bottom(), |record| record.bottom(slot));
    let guard = record.map_or_else(|| lowest - slot.base(), |record| record.guard);
    let state = match record.is_none_or(Pthread::is_detached) {
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
        pthread_attr_setstack(attributes, lowest as *mut c_void, slot.end() - lowest)
    }
}

/// `pthread_getaffinity_np`: a virtual thread may run wherever the carriers may.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getaffinity_np(
    thread: pthread_t,
    size: size_t,
    set: *mut cpu_set_t,
) -> c_int {
    if !is_virtual(thread) {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(fn pthread_getaffinity_np(thread: pthread_t, size: size_t, set: *mut cpu_set_t) -> c_int)
        };
    }
    // SAFETY: the caller's contract: room for `size` bytes, of which the kernel fills as many as it
    // says.
    unsafe {
        match call!(
            libc::SYS_sched_getaffinity,
            0,
            size.min(c_int::MAX as usize),
            set
        ) {
            Ok(filled) => {
                set.cast::<u8>().add(filled).write_bytes(0, size - filled);
                0
            }
            Err(e) => e.0,
        }
    }
}

/// `pthread_setaffinity_np`: the scheduler decides which CPU runs a virtual thread.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setaffinity_np(
    thread: pthread_t,
    size: size_t,
    set: *const cpu_set_t,
) -> c_int {
    if is_virtual(thread) {
        return libc::ENOTSUP;
    }
    // SAFETY: the caller's contract.
    unsafe {
        real!(fn pthread_setaffinity_np(thread: pthread_t, size: size_t, set: *const cpu_set_t) -> c_int)
    }
}

/// `pthread_getschedparam`: virtual threads have no priorities.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getschedparam(
    thread: pthread_t,
    policy: *mut c_int,
    param: *mut sched_param,
) -> c_int {
    // SAFETY: the caller's contract, here and below.
    unsafe {
        if !is_virtual(thread) {
            return real!(
                fn pthread_getschedparam(thread: pthread_t, policy: *mut c_int, param: *mut sched_param) -> c_int
            );
        }
        *policy = libc::SCHED_OTHER;
        (*param).sched_priority = 0;
    }
    0
}

/// `pthread_setschedparam`: for a virtual thread, only its present parameters are accepted.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedparam(
    thread: pthread_t,
    policy: c_int,
    param: *const sched_param,
) -> c_int {
    // SAFETY: the caller's contract, here and below.
    unsafe {
        if !is_virtual(thread) {
            return real!(
                fn pthread_setschedparam(thread: pthread_t, policy: c_int, param: *const sched_param) -> c_int
            );
        }
        if policy == libc::SCHED_OTHER && (*param).sched_priority == 0 {
            0
        } else {
            libc::ENOTSUP
        }
    }
}

/// `pthread_setschedprio`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int {
    if is_virtual(thread) {
        return if priority == 0 { 0 } else { libc::ENOTSUP };
    }
    // SAFETY: the caller's contract.
    unsafe { real!(fn pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int) }
}

/// `pthread_getcpuclockid`: nobody counts a virtual thread's CPU time.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getcpuclockid(thread: pthread_t, clock: *mut clockid_t) -> c_int {
    if is_virtual(thread) {
        return libc::ENOENT;
    }
    // SAFETY: the caller's contract.
    unsafe { real!(fn pthread_getcpuclockid(thread: pthread_t, clock: *mut clockid_t) -> c_int) }
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
    if policy::is_on() && vthread::current().is_some() {
        let place = crate::arch::thread_pointer() + tls::template().tid_offset;
        // SAFETY: the running thread's TCB.
        return unsafe { (place as *const libc::pid_t).read() };
    }
    sys::os_thread_id() as libc::pid_t
}
