//! `sched.h`, and what `pthread.h` and `sys/resource.h` have like it: CPUs, policies and niceness
//! of threads.
//!
//! The runtime decides which virtual thread runs where; the kernel schedules carriers. A thread
//! that changed its carrier's scheduling would change it for the thread that is mounted next. So a
//! request is only stored: it is the answer to later queries, and the OS threads that start
//! programs for the thread get it ([`inherit`](crate::process::inherit)). It has no other effect:
//! each virtual thread runs on all CPUs of the process, with the process's priority.
//!
//! Real-time policies are refused, with `EPERM`, as the kernel refuses them to most users: a
//! program that has one would rely on it.
//!
//! [`virtually`] does each of these calls on a virtual thread, by its number in the kernel.
//! Programs make them by number as well: GLib gives each thread of a pool the attributes of the
//! thread that has begun to use it.

use crate::forward::{args, number};
use crate::identity::{self, Whose, is_virtual};
use crate::posix;
use crate::registry::interposed;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::offset_of;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use libc::{cpu_set_t, id_t, pid_t, pthread_t, sched_attr, sched_param, size_t, timespec};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch;
use pirn_rt::glibc::tls;
use pirn_rt::sys::{self, Errno, SysResult, call};

interposed! {
    family "Scheduling of threads" for Correctness,
        cannot "bind a virtual thread to a CPU or give it a priority: what is asked for is noted, \
            and has no effect; real-time policies are `EPERM`. All is `ENOTSUP` for threads that \
            `pthread_create` has not made";

    Own by hand {
        pthread_getaffinity_np, pthread_setaffinity_np, pthread_getschedparam,
        pthread_setschedparam, pthread_setschedprio, sched_getaffinity, getpriority, nice,
    }
    Own as {
        fn sched_setaffinity(id: pid_t, size: size_t, set: *const cpu_set_t) -> c_int
            = to_c(libc::SYS_sched_setaffinity, [id as usize, size, set as usize]);
        fn sched_getscheduler(id: pid_t) -> c_int
            = to_c(libc::SYS_sched_getscheduler, [id as usize]);
        fn sched_setscheduler(id: pid_t, policy: c_int, param: *const sched_param) -> c_int
            = to_c(libc::SYS_sched_setscheduler, [id as usize, policy as usize, param as usize]);
        fn sched_getparam(id: pid_t, param: *mut sched_param) -> c_int
            = to_c(libc::SYS_sched_getparam, [id as usize, param as usize]);
        fn sched_setparam(id: pid_t, param: *const sched_param) -> c_int
            = to_c(libc::SYS_sched_setparam, [id as usize, param as usize]);
        fn sched_rr_get_interval(id: pid_t, interval: *mut timespec) -> c_int
            = to_c(libc::SYS_sched_rr_get_interval, [id as usize, interval as usize]);
        fn setpriority(which: c_int, who: id_t, niceness: c_int) -> c_int
            = to_c(libc::SYS_setpriority, [which as usize, who as usize, niceness as usize]);
        fn __sched_getscheduler(id: pid_t) -> c_int = sched_getscheduler(id);
        fn __sched_setscheduler(id: pid_t, policy: c_int, param: *const sched_param) -> c_int
            = sched_setscheduler(id, policy, param);
        fn __sched_getparam(id: pid_t, param: *mut sched_param) -> c_int
            = sched_getparam(id, param);
    }
}

interposed! {
    /// Functions that glibc has since 2.41.
    ATTRIBUTES:
    family "Attributes of scheduling" for Scaling,
        cannot "give a virtual thread a deadline or a real-time policy (`EPERM`), or limits of \
            utilization, which are left out, nor be seen by libraries that use them in an \
            executable linked with glibc before 2.41";

    Own as {
        fn sched_getattr(id: pid_t, attributes: *mut sched_attr, size: c_uint, flags: c_uint)
            -> c_int
            = to_c(libc::SYS_sched_getattr, [
                id as usize, attributes as usize, size as usize, flags as usize,
            ]);
        fn sched_setattr(id: pid_t, attributes: *mut sched_attr, flags: c_uint) -> c_int
            = to_c(libc::SYS_sched_setattr, [id as usize, attributes as usize, flags as usize]);
    }
}

/// The requests for one thread. Relaxed throughout: no other data.
pub(crate) struct Requested {
    /// The first 64 CPUs that it is bound to; 0: it is not bound.
    cpus: AtomicU64,
    policy: AtomicI32,
    /// 20 less its niceness, as the kernel reports it; 0: the process's.
    priority: AtomicI32,
}

thread_local! {
    static REQUESTED: Requested = const {
        Requested {
            cpus: AtomicU64::new(0),
            policy: AtomicI32::new(libc::SCHED_OTHER),
            priority: AtomicI32::new(0),
        }
    };
}

/// Returns the requests for a virtual thread.
///
/// # Safety
/// The thread is, or was, a virtual one: the memory of slots stays.
unsafe fn of<'a>(thread: pthread_t) -> &'a Requested {
    // SAFETY: the caller's contract.
    unsafe { &*tls::place_of(&REQUESTED, tls::template().tp_of(thread as usize)) }
}

/// Returns the requests for the running virtual thread, if there are any.
///
/// # Safety
/// The running thread is, or was, a virtual one.
pub(crate) unsafe fn own<'a>() -> Option<&'a Requested> {
    // SAFETY: the caller's contract.
    let own = unsafe { &*tls::place_of(&REQUESTED, arch::thread_pointer()) };
    (!own.is_empty()).then_some(own)
}

/// Copies the requests for its creator, the running thread, to a new virtual thread.
///
/// # Safety
/// The thread is a virtual one, which has not started.
pub unsafe fn inherit(thread: pthread_t) {
    REQUESTED.with(|own| {
        if !own.is_empty() {
            // SAFETY: the caller's contract.
            let new = unsafe { of(thread) };
            new.cpus.store(own.cpus.load(Relaxed), Relaxed);
            new.policy.store(own.policy.load(Relaxed), Relaxed);
            new.priority.store(own.priority.load(Relaxed), Relaxed);
        }
    });
}

impl Requested {
    fn is_empty(&self) -> bool {
        self.cpus.load(Relaxed) == 0
            && self.policy.load(Relaxed) == libc::SCHED_OTHER
            && self.priority.load(Relaxed) == 0
    }

    /// Applies the requests to the calling OS thread, as far as the user may.
    pub(crate) fn apply(&self) {
        let (none, cpus) = (0_u64, self.cpus.load(Relaxed));
        let (policy, priority) = (self.policy.load(Relaxed), self.priority.load(Relaxed));
        // SAFETY: the kernel reads a priority and eight bytes of CPUs.
        unsafe {
            if policy != libc::SCHED_OTHER {
                let _ = call!(libc::SYS_sched_setscheduler, 0, policy, &raw const none);
            }
            if priority != 0 {
                let _ = call!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, 20 - priority);
            }
            if cpus != 0 {
                let (size, cpus) = (size_of_val(&cpus), &raw const cpus);
                let _ = call!(libc::SYS_sched_setaffinity, 0, size, cpus);
            }
        }
    }

    /// Writes the CPUs that it may run on. Returns the bytes written.
    ///
    /// # Safety
    /// `set` has room for `size` bytes.
    unsafe fn read_cpus(&self, size: usize, set: *mut c_void) -> SysResult {
        // SAFETY: the caller's contract. Every carrier may run where the process may.
        unsafe {
            let filled = call!(libc::SYS_sched_getaffinity, 0, size, set)?;
            let cpus = self.cpus.load(Relaxed);
            if cpus != 0 {
                let words = set.cast::<u64>();
                let allowed = words.read_unaligned() & cpus;
                words.cast::<u8>().write_bytes(0, filled);
                words.write_unaligned(allowed);
            }
            Ok(filled)
        }
    }

    /// Notes the CPUs that it is bound to.
    ///
    /// # Errors
    /// `EINVAL`: the process may not run on any of them.
    ///
    /// # Safety
    /// `set` has `size` bytes.
    unsafe fn bind(&self, size: usize, set: *const u8) -> SysResult {
        let (mut allowed, mut wanted) = ([0_u64; 128], [0_u64; 128]);
        let place = allowed.as_mut_ptr();
        // SAFETY: room for all that the kernel fills; the caller's contract.
        unsafe {
            let filled = call!(libc::SYS_sched_getaffinity, 0, size_of_val(&allowed), place)?;
            let bytes = wanted.as_mut_ptr().cast::<u8>();
            bytes.copy_from_nonoverlapping(set, size.min(filled));
        }
        for (may, want) in allowed.iter_mut().zip(wanted) {
            *may &= want;
        }
        let [first, others @ ..] = allowed;
        match others.iter().all(|&cpus| cpus == 0) {
            true if first == 0 => return Err(Errno(libc::EINVAL)),
            true => self.cpus.store(first, Relaxed),
            false => self.cpus.store(0, Relaxed),
        }
        Ok(0)
    }

    fn niceness(&self) -> c_int {
        match self.priority.load(Relaxed) {
            // SAFETY: no pointers.
            0 => unsafe { call!(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) }
                .map_or(0, |priority| 20 - priority as c_int),
            priority => 20 - priority,
        }
    }

    /// Returns whether its user may give it this niceness.
    fn may_be(&self, niceness: c_int) -> bool {
        // SAFETY: no arguments.
        niceness.clamp(-20, 19) >= self.niceness() || unsafe { libc::geteuid() } == 0
    }

    /// Notes its niceness.
    ///
    /// # Errors
    /// `EACCES`: it would be less nice, and the user may not do that.
    fn set_niceness(&self, niceness: c_int) -> SysResult {
        if !self.may_be(niceness) {
            return Err(Errno(libc::EACCES));
        }
        self.priority.store(20 - niceness.clamp(-20, 19), Relaxed);
        Ok(0)
    }

    /// Notes its policy.
    ///
    /// # Errors
    /// `EINVAL`: there is no such policy or priority; `EPERM`: it is a real-time policy.
    fn set_policy(&self, policy: c_int, priority: u32) -> SysResult {
        let policy = policy & !libc::SCHED_RESET_ON_FORK;
        match policy {
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE if priority == 0 => {
                self.policy.store(policy, Relaxed);
                Ok(0)
            }
            libc::SCHED_FIFO | libc::SCHED_RR if (1..=99).contains(&priority) => {
                Err(Errno(libc::EPERM))
            }
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    /// Notes what a `sched_attr` asks for, which is read as the kernel does.
    fn set_attributes(&self, place: usize) -> SysResult {
        /// What the first kernel with this call took, which may be given as 0; and the most.
        const FIRST: u32 = 48;
        const LARGEST: u32 = 4096;
        let word = |offset| sys::fetch_u32(place + offset);
        let size = word(offset_of!(sched_attr, size))?;
        if size != 0 && !(FIRST..=LARGEST).contains(&size) {
            return Err(Errno(libc::E2BIG));
        }
        let flags = sys::fetch_u64(place + offset_of!(sched_attr, sched_flags))?;
        let has = |flag: c_int| flags & flag as u64 != 0;
        let policy = match has(libc::SCHED_FLAG_KEEP_POLICY) {
            true => self.policy.load(Relaxed),
            false => word(offset_of!(sched_attr, sched_policy))?.cast_signed(),
        };
        if flags & !(libc::SCHED_FLAG_ALL as u64) != 0 || policy & libc::SCHED_RESET_ON_FORK != 0 {
            return Err(Errno(libc::EINVAL));
        }
        if policy == libc::SCHED_DEADLINE {
            return Err(Errno(libc::EPERM));
        }
        if has(libc::SCHED_FLAG_KEEP_PARAMS) {
            return Ok(0); // The kernel keeps the policy with them.
        }
        let niceness = word(offset_of!(sched_attr, sched_nice))?.cast_signed();
        if !self.may_be(niceness) {
            return Err(Errno(libc::EPERM));
        }
        self.set_policy(policy, word(offset_of!(sched_attr, sched_priority))?)?;
        self.set_niceness(niceness)
    }
}

/// Does what a system call about the scheduling of a thread does, if the thread is a virtual one.
/// Returns `None` if the kernel must make the call.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn call(number: c_long, args: [usize; 6]) -> Option<SysResult> {
    const PROCESS: c_int = libc::PRIO_PROCESS as c_int;
    let id = match number {
        libc::SYS_sched_getaffinity
        | libc::SYS_sched_setaffinity
        | libc::SYS_sched_getscheduler
        | libc::SYS_sched_setscheduler
        | libc::SYS_sched_getparam
        | libc::SYS_sched_setparam
        | libc::SYS_sched_rr_get_interval
        | libc::SYS_sched_getattr
        | libc::SYS_sched_setattr => args[0],
        libc::SYS_getpriority | libc::SYS_setpriority if args[0] as c_int == PROCESS => args[1],
        _ => return None,
    };
    match identity::find(id as pid_t) {
        // SAFETY: the caller's contract, and a virtual thread.
        Ok(Whose::Virtual(thread)) => Some(unsafe { virtually(thread, number, args) }),
        Ok(Whose::Kernels) => None,
        Err(e) => Some(Err(e)),
    }
}

/// Does what such a call does for a virtual thread.
///
/// # Safety
/// As for the system call; the thread is, or was, a virtual one.
unsafe fn virtually(thread: pthread_t, number: c_long, args: [usize; 6]) -> SysResult {
    // SAFETY: the caller's contract.
    let requested = unsafe { of(thread) };
    let (policy, [_, b, c, d, ..]) = (requested.policy.load(Relaxed), args);
    let wanted = match number {
        libc::SYS_sched_setscheduler => Some((b as c_int, sys::fetch_u32(c)?)),
        libc::SYS_sched_setparam => Some((policy, sys::fetch_u32(b)?)),
        _ => None,
    };
    let changes = wanted.is_some_and(|wanted| wanted != (policy, 0))
        || matches!(
            number,
            libc::SYS_sched_setaffinity | libc::SYS_sched_setattr
        );
    if changes && posix::find(thread).is_none() {
        return Err(Errno(libc::ENOTSUP));
    }
    if let Some((policy, priority)) = wanted {
        return requested.set_policy(policy, priority);
    }
    // SAFETY: the caller's contract.
    unsafe {
        match number {
            libc::SYS_sched_getaffinity => requested.read_cpus(b, c as *mut c_void),
            libc::SYS_sched_setaffinity => requested.bind(b, c as *const u8),
            libc::SYS_sched_getscheduler => Ok(policy as usize),
            libc::SYS_getpriority => Ok((20 - requested.niceness()) as usize),
            libc::SYS_setpriority => requested.set_niceness(c as c_int),
            libc::SYS_sched_setattr if b == 0 || c != 0 => Err(Errno(libc::EINVAL)),
            libc::SYS_sched_setattr => requested.set_attributes(b),
            libc::SYS_sched_getattr => {
                // The carrier's are the ordinary ones. Where the kernel has written, there is room
                // for all of it.
                call!(number, 0, b, c, d)?;
                let attributes = b as *mut sched_attr;
                (&raw mut (*attributes).sched_policy).write_unaligned(policy as u32);
                (&raw mut (*attributes).sched_nice).write_unaligned(requested.niceness());
                Ok(0)
            }
            _ => call!(number, 0, b), // As the carrier's: a priority of 0, an interval.
        }
    }
}

/// Does what such a call does for a thread of either kind.
///
/// # Safety
/// As for the system call.
unsafe fn any(number: c_long, args: [usize; 6]) -> SysResult {
    // SAFETY: the caller's contract.
    unsafe { call(number, args).unwrap_or_else(|| sys::check(arch::syscall(number, args))) }
}

/// Does what [`any`] does, for a function of C.
///
/// # Safety
/// As for the system call.
unsafe fn to_c<const N: usize>(number: c_long, given: [usize; N]) -> c_int {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe { any(number, args(given)) }) as c_int
}

/// Writes a set of CPUs: the bytes that `read` fills, then zeros.
///
/// # Safety
/// `set` has room for `size` bytes.
unsafe fn fill(
    size: size_t,
    set: *mut cpu_set_t,
    read: impl FnOnce([usize; 6]) -> SysResult,
) -> SysResult {
    let filled = read(args([0, size.min(c_int::MAX as usize), set as usize]))?;
    // SAFETY: the caller's contract.
    unsafe { set.cast::<u8>().add(filled).write_bytes(0, size - filled) };
    Ok(0)
}

#[libc_fn]
pub unsafe fn pthread_getaffinity_np(
    thread: pthread_t,
    size: size_t,
    set: *mut cpu_set_t,
) -> c_int {
    match is_virtual(thread) {
        true => number(fill(size, set, |args| {
            virtually(thread, libc::SYS_sched_getaffinity, args)
        })),
        false => libcs!(),
    }
}

#[libc_fn]
pub unsafe fn sched_getaffinity(id: pid_t, size: size_t, set: *mut cpu_set_t) -> c_int {
    let read = |[_, size, set, ..]: [usize; 6]| {
        any(libc::SYS_sched_getaffinity, args([id as usize, size, set]))
    };
    sys::to_c(fill(size, set, read)) as c_int
}

#[libc_fn]
pub unsafe fn pthread_setaffinity_np(
    thread: pthread_t,
    size: size_t,
    set: *const cpu_set_t,
) -> c_int {
    let given = args([0, size, set as usize]);
    match is_virtual(thread) {
        true => number(virtually(thread, libc::SYS_sched_setaffinity, given)),
        false => libcs!(),
    }
}

#[libc_fn]
pub unsafe fn pthread_getschedparam(
    thread: pthread_t,
    policy: *mut c_int,
    param: *mut sched_param,
) -> c_int {
    if !is_virtual(thread) {
        return libcs!();
    }
    *policy = of(thread).policy.load(Relaxed);
    (*param).sched_priority = 0;
    0
}

/// For every virtual thread, a request that changes nothing is accepted.
#[libc_fn]
pub unsafe fn pthread_setschedparam(
    thread: pthread_t,
    policy: c_int,
    param: *const sched_param,
) -> c_int {
    let given = args([0, policy as usize, param as usize]);
    match is_virtual(thread) {
        true => number(virtually(thread, libc::SYS_sched_setscheduler, given)),
        false => libcs!(),
    }
}

#[libc_fn]
pub unsafe fn pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int {
    let given = args([0, (&raw const priority).addr()]);
    match is_virtual(thread) {
        true => number(virtually(thread, libc::SYS_sched_setparam, given)),
        false => libcs!(),
    }
}

#[libc_fn]
pub fn getpriority(which: c_int, who: id_t) -> c_int {
    let given = args([which as usize, who as usize]);
    // The kernel reports 20 less the niceness.
    // SAFETY: no pointers.
    match unsafe { any(libc::SYS_getpriority, given) } {
        Ok(priority) => 20 - priority as c_int,
        Err(e) => sys::to_c(Err(e)) as c_int,
    }
}

#[libc_fn]
pub fn nice(more: c_int) -> c_int {
    const PROCESS: usize = libc::PRIO_PROCESS as usize;
    let before = getpriority(libc::PRIO_PROCESS as c_int, 0);
    let wanted = before.saturating_add(more).clamp(-20, 19);
    // SAFETY: no pointers.
    match unsafe { any(libc::SYS_setpriority, args([PROCESS, 0, wanted as usize])) } {
        Ok(_) => wanted,
        // As POSIX and libc have it.
        Err(Errno(libc::EACCES)) => sys::to_c(Err(Errno(libc::EPERM))) as c_int,
        Err(e) => sys::to_c(Err(e)) as c_int,
    }
}
