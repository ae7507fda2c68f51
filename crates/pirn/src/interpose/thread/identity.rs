//! Attributes of a thread: stack, name, affinity, scheduling parameters, clock.

use super::pthread::{self, Pthread};
use super::{is_virtual, policy};
use crate::glibc::symbols::real;
use crate::glibc::tls;
use crate::interpose::registry::interposed;
use crate::stack::{Slot, region};
use crate::sys::{self, Errno, call};
use crate::vthread;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU64, Ordering};
use libc::{clockid_t, cpu_set_t, pthread_attr_t, pthread_t, sched_param, size_t};

interposed! {
    family "Attributes of threads" for Correctness,
        cannot "bind a virtual thread to a CPU, give it a priority, or count its CPU time";

    Own by hand {
        pthread_getattr_np, pthread_setname_np, pthread_getname_np,
        prctl: "its own name; all other options concern the carrier",
        pthread_getaffinity_np: "the carriers' CPUs", pthread_getschedparam, sched_getcpu,
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
    static program_invocation_short_name: *const c_char;
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

/// Length of a thread's longest name with its final zero, as in the kernel.
const NAME: usize = 16;

thread_local! {
    /// The name that was set. It is in each thread's own TLS block at the same distance from the
    /// thread pointer, so that others find it there. It is atomic, so that a reader never sees part
    /// of a letter.
    static NAME_SET: [AtomicU64; NAME / 8] = const { [const { AtomicU64::new(0) }; NAME / 8] };
}

/// Returns the place of a virtual thread's name.
///
/// # Safety
/// `thread` is a virtual thread that has not ended.
unsafe fn place_of_name<'a>(thread: pthread_t) -> &'a [AtomicU64; NAME / 8] {
    let own = NAME_SET.with(|name| core::ptr::from_ref(name) as usize);
    let distance = crate::arch::thread_pointer() - own;
    // SAFETY: the program's own TLS is at the same place in every thread's block; the caller
    // vouches for the thread.
    unsafe { &*((thread as usize - distance) as *const _) }
}

/// Sets the name of a virtual thread.
///
/// # Safety
/// As for [`place_of_name`].
unsafe fn set_name(thread: pthread_t, name: &[u8]) {
    let mut bytes = [0; NAME];
    bytes[..name.len()].copy_from_slice(name);
    // SAFETY: the caller's contract.
    let place = unsafe { place_of_name(thread) };
    for (place, part) in place.iter().zip(bytes.as_chunks().0) {
        place.store(u64::from_ne_bytes(*part), Ordering::Relaxed); // Relaxed: only letters.
    }
}

/// Returns the name set with `pthread_setname_np`; or else that of the program, if `pthread_create`
/// has made the thread; or else, for the calling thread only, its own name, truncated.
///
/// # Safety
/// As for [`place_of_name`].
unsafe fn name(thread: pthread_t) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    // SAFETY: the caller's contract.
    let place = unsafe { place_of_name(thread) };
    for (place, part) in place.iter().zip(bytes.as_chunks_mut().0) {
        *part = place.load(Ordering::Relaxed).to_ne_bytes(); // Relaxed: as above.
    }
    if bytes[0] == 0 && pthread::find(thread).is_some() {
        // SAFETY: libc's own name of the program: a C string that stays.
        let program = unsafe { CStr::from_ptr(program_invocation_short_name) }.to_bytes();
        let length = program.len().min(NAME - 1);
        bytes[..length].copy_from_slice(&program[..length]);
    } else if bytes[0] == 0
        && let Some(core) = vthread::current()
        && core.slot() == slot_of(thread)
    {
        let own = core.name().unwrap_or_default();
        let length = own.floor_char_boundary(NAME - 1);
        bytes[..length].copy_from_slice(&own.as_bytes()[..length]);
    }
    bytes
}

/// `pthread_setname_np`: sets a virtual thread's name for C, not its carrier's.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int {
    // SAFETY: the caller's contract, here and below.
    unsafe {
        if !is_virtual(thread) {
            return real!(fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int);
        }
        let name = CStr::from_ptr(name).to_bytes();
        if name.len() >= NAME {
            return libc::ERANGE;
        }
        set_name(thread, name);
    }
    0
}

/// `pthread_getname_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getname_np(
    thread: pthread_t,
    buffer: *mut c_char,
    length: size_t,
) -> c_int {
    if !is_virtual(thread) {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(fn pthread_getname_np(thread: pthread_t, buffer: *mut c_char, length: size_t) -> c_int)
        };
    }
    if length < NAME {
        return libc::ERANGE;
    }
    // SAFETY: the caller's contract: room for `length` bytes.
    unsafe { buffer.cast::<[u8; NAME]>().write_unaligned(name(thread)) };
    0
}

/// `prctl`: a virtual thread has a name of its own; all other options concern the process or the
/// carrier. Variadic in C; see [`syscall`](crate::interpose::futex::syscall).
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    // SAFETY: the caller's contract: a string, or room for one; here and below.
    unsafe {
        match option {
            libc::PR_SET_NAME if vthread::current().is_some() => {
                let name = CStr::from_ptr(a as *const c_char).to_bytes();
                set_name(libc::pthread_self(), &name[..name.len().min(NAME - 1)]);
                0
            }
            libc::PR_GET_NAME if vthread::current().is_some() => {
                (a as *mut [u8; NAME]).write_unaligned(name(libc::pthread_self()));
                0
            }
            _ => sys::to_c(call!(libc::SYS_prctl, option, a, b, c, d)) as c_int,
        }
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
