//! `sched.h`, and what `pthread.h` and `sys/resource.h` have like it: CPUs, policies and priorities
//! of threads. A virtual thread's are [wishes](crate::thread::wishes).

use crate::identity::{self, Whose, is_virtual};
use crate::posix;
use crate::registry::interposed;
use crate::thread::wishes::{self, Wishes, number, to_c};
use core::ffi::{c_int, c_void};
use libc::{cpu_set_t, id_t, pid_t, pthread_t, sched_param, size_t, timespec};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{Errno, SysResult, call};

interposed! {
    family "Scheduling of threads" for Correctness,
        cannot "bind a virtual thread to a CPU or give it a priority: what is asked for is noted, \
            and has no effect; real-time policies are `EPERM`. All is `ENOTSUP` for threads that \
            `pthread_create` has not made";

    Own by hand {
        pthread_getaffinity_np, pthread_setaffinity_np, pthread_getschedparam,
        pthread_setschedparam, pthread_setschedprio,
        sched_getaffinity, sched_setaffinity, sched_getscheduler, sched_setscheduler,
        sched_getparam, sched_setparam, sched_rr_get_interval, getpriority, setpriority, nice,
    }
    Own as {
        fn __sched_getscheduler(id: pid_t) -> c_int = sched_getscheduler(id);
        fn __sched_setscheduler(id: pid_t, policy: c_int, param: *const sched_param) -> c_int
            = sched_setscheduler(id, policy, param);
        fn __sched_getparam(id: pid_t, param: *mut sched_param) -> c_int
            = sched_getparam(id, param);
    }
}

/// Returns the wishes of a virtual thread, given by its `pthread_t`, or `None` for a platform
/// thread.
fn of(thread: pthread_t) -> Option<&'static Wishes> {
    // SAFETY: a virtual thread, in a slot.
    is_virtual(thread).then(|| unsafe { wishes::of(thread) })
}

/// Returns the wishes of the virtual thread with an id, or `None` if it is the kernel's.
pub(super) fn by_id<'a>(id: pid_t) -> Result<Option<&'a Wishes>, Errno> {
    Ok(match identity::find(id)? {
        // SAFETY: as above.
        Whose::Virtual(thread) => Some(unsafe { wishes::of(thread) }),
        Whose::Kernels => None,
    })
}

/// Returns whether wishes of this thread may be noted: a thread that `pthread_create` has made.
fn may_wish(thread: pthread_t) -> Result<(), Errno> {
    match posix::find(thread) {
        Some(_) => Ok(()),
        None => Err(Errno(libc::ENOTSUP)),
    }
}

/// The same for a virtual thread that is given by its id.
pub(super) fn wishes_by_id<'a>(id: pid_t) -> Result<Option<&'a Wishes>, Errno> {
    match identity::find(id)? {
        Whose::Virtual(thread) => {
            may_wish(thread)?;
            // SAFETY: as above.
            Ok(Some(unsafe { wishes::of(thread) }))
        }
        Whose::Kernels => Ok(None),
    }
}

/// `pthread_getaffinity_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getaffinity_np(
    thread: pthread_t,
    size: size_t,
    set: *mut cpu_set_t,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        match of(thread) {
            Some(wishes) => number(read_cpus(wishes, size, set)),
            None => real!(
                fn pthread_getaffinity_np(thread: pthread_t, size: size_t, set: *mut cpu_set_t)
                    -> c_int
            ),
        }
    }
}

/// Writes a set of CPUs, of which the kernel fills as many bytes as it says.
///
/// # Safety
/// `set` has room for `size` bytes.
unsafe fn read_cpus(wishes: &Wishes, size: size_t, set: *mut cpu_set_t) -> SysResult {
    // SAFETY: the caller's contract.
    unsafe {
        let filled = wishes.read_cpus(size.min(c_int::MAX as usize), set.cast())?;
        set.cast::<u8>().add(filled).write_bytes(0, size - filled);
    }
    Ok(0)
}

/// `pthread_setaffinity_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setaffinity_np(
    thread: pthread_t,
    size: size_t,
    set: *const cpu_set_t,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        match of(thread) {
            Some(wishes) => number(may_wish(thread).and_then(|()| wishes.bind(size, set.cast()))),
            None => real!(
                fn pthread_setaffinity_np(thread: pthread_t, size: size_t, set: *const cpu_set_t)
                    -> c_int
            ),
        }
    }
}

/// `pthread_getschedparam`.
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
        let Some(wishes) = of(thread) else {
            return real!(
                fn pthread_getschedparam(
                    thread: pthread_t, policy: *mut c_int, param: *mut sched_param
                ) -> c_int
            );
        };
        *policy = wishes.policy();
        (*param).sched_priority = 0;
    }
    0
}

/// `pthread_setschedparam`. What changes nothing is accepted for every virtual thread.
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
        let Some(wishes) = of(thread) else {
            return real!(
                fn pthread_setschedparam(
                    thread: pthread_t, policy: c_int, param: *const sched_param
                ) -> c_int
            );
        };
        let priority = (*param).sched_priority;
        if policy == wishes.policy() && priority == 0 {
            return 0;
        }
        number(may_wish(thread).and_then(|()| wishes.set_policy(policy, priority)))
    }
}

/// `pthread_setschedprio`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int {
    match of(thread) {
        Some(_) if priority == 0 => 0,
        Some(wishes) => {
            number(may_wish(thread).and_then(|()| wishes.set_policy(wishes.policy(), priority)))
        }
        // SAFETY: the caller's contract.
        None => unsafe {
            real!(fn pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int)
        },
    }
}

/// `sched_getaffinity`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getaffinity(id: pid_t, size: size_t, set: *mut cpu_set_t) -> c_int {
    // SAFETY: the caller's contract.
    to_c(by_id(id).and_then(|wishes| unsafe {
        match wishes {
            Some(wishes) => read_cpus(wishes, size, set),
            None => {
                let most = size.min(c_int::MAX as usize);
                let filled = call!(libc::SYS_sched_getaffinity, id, most, set)?;
                set.cast::<u8>().add(filled).write_bytes(0, size - filled);
                Ok(0)
            }
        }
    }))
}

/// The system call of this name, which returns the number of bytes that it fills.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn raw_getaffinity(id: pid_t, size: usize, set: *mut c_void) -> SysResult {
    // SAFETY: the caller's contract.
    by_id(id).and_then(|wishes| unsafe {
        match wishes {
            Some(wishes) => wishes.read_cpus(size, set),
            None => call!(libc::SYS_sched_getaffinity, id, size, set),
        }
    })
}

/// `sched_setaffinity`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setaffinity(
    id: pid_t,
    size: size_t,
    set: *const cpu_set_t,
) -> c_int {
    // SAFETY: the caller's contract.
    to_c(wishes_by_id(id).and_then(|wishes| unsafe {
        match wishes {
            Some(wishes) => wishes.bind(size, set.cast()),
            None => call!(libc::SYS_sched_setaffinity, id, size, set),
        }
    }))
}

/// `sched_getscheduler`.
#[unsafe(no_mangle)]
pub extern "C" fn sched_getscheduler(id: pid_t) -> c_int {
    let result = by_id(id).and_then(|wishes| match wishes {
        Some(wishes) => Ok(wishes.policy() as usize),
        // SAFETY: no pointers.
        None => unsafe { call!(libc::SYS_sched_getscheduler, id) },
    });
    pirn_rt::sys::to_c(result) as c_int
}

/// `sched_setscheduler`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setscheduler(
    id: pid_t,
    policy: c_int,
    param: *const sched_param,
) -> c_int {
    // SAFETY: the caller's contract.
    to_c(wishes_by_id(id).and_then(|wishes| unsafe {
        match wishes {
            Some(wishes) => wishes.set_policy(policy, (*param).sched_priority),
            None => call!(libc::SYS_sched_setscheduler, id, policy, param),
        }
    }))
}

/// `sched_getparam`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getparam(id: pid_t, param: *mut sched_param) -> c_int {
    // SAFETY: the caller's contract.
    to_c(by_id(id).and_then(|wishes| unsafe {
        match wishes {
            Some(_) => {
                (*param).sched_priority = 0;
                Ok(0)
            }
            None => call!(libc::SYS_sched_getparam, id, param),
        }
    }))
}

/// `sched_setparam`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setparam(id: pid_t, param: *const sched_param) -> c_int {
    // SAFETY: the caller's contract.
    to_c(by_id(id).and_then(|wishes| unsafe {
        match wishes {
            Some(wishes) => wishes.set_policy(wishes.policy(), (*param).sched_priority),
            None => call!(libc::SYS_sched_setparam, id, param),
        }
    }))
}

/// `sched_rr_get_interval`: that of a virtual thread is its carrier's.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_rr_get_interval(id: pid_t, interval: *mut timespec) -> c_int {
    // SAFETY: the caller's contract.
    to_c(by_id(id).and_then(|wishes| unsafe {
        let id = if wishes.is_some() { 0 } else { id };
        call!(libc::SYS_sched_rr_get_interval, id, interval)
    }))
}

/// Returns the wishes of the virtual thread that `getpriority` and `setpriority` are about.
fn of_priority<'a>(which: c_int, who: id_t) -> Result<Option<&'a Wishes>, Errno> {
    match which == libc::PRIO_PROCESS as c_int {
        true => by_id(who.cast_signed()),
        false => Ok(None),
    }
}

/// `getpriority`.
#[unsafe(no_mangle)]
pub extern "C" fn getpriority(which: c_int, who: id_t) -> c_int {
    // The kernel reports 20 less the niceness.
    match raw_getpriority(which, who) {
        Ok(raw) => 20 - raw as c_int,
        Err(e) => to_c(Err(e)),
    }
}

/// The system call of this name.
pub(crate) fn raw_getpriority(which: c_int, who: id_t) -> SysResult {
    match of_priority(which, who)? {
        Some(wishes) => Ok((20 - wishes.niceness()) as usize),
        // SAFETY: no pointers.
        None => unsafe { call!(libc::SYS_getpriority, which, who) },
    }
}

/// `setpriority`.
#[unsafe(no_mangle)]
pub extern "C" fn setpriority(which: c_int, who: id_t, niceness: c_int) -> c_int {
    to_c(of_priority(which, who).and_then(|wishes| match wishes {
        Some(wishes) => wishes.set_niceness(niceness),
        // SAFETY: no pointers.
        None => unsafe { call!(libc::SYS_setpriority, which, who, niceness) },
    }))
}

/// `nice`.
#[unsafe(no_mangle)]
pub extern "C" fn nice(more: c_int) -> c_int {
    let process = libc::PRIO_PROCESS as c_int;
    let now = raw_getpriority(process, 0).map_or(0, |raw| 20 - raw as c_int);
    let wanted = now.saturating_add(more).clamp(-20, 19);
    let result = of_priority(process, 0).and_then(|wishes| match wishes {
        Some(wishes) => wishes.set_niceness(wanted),
        // SAFETY: no pointers.
        None => unsafe { call!(libc::SYS_setpriority, process, 0, wanted) },
    });
    match result {
        Ok(_) => wanted,
        Err(Errno(libc::EACCES)) => to_c(Err(Errno(libc::EPERM))), // As POSIX and libc have it.
        Err(e) => to_c(Err(e)),
    }
}
