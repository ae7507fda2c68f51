//! What a program has asked for about how the kernel schedules its threads.
//!
//! The scheduler of this library decides which virtual thread runs where; the kernel schedules
//! carriers. A thread that changed its carrier would change it for whoever is mounted next. So what
//! a program asks for a virtual thread is noted, is the answer when one asks for it, and has no
//! other effect: each thread may run on all CPUs of the process, with the process's priority.
//!
//! Real-time policies are refused, with `EPERM`, as the kernel refuses them to most users: a
//! program that has one would rely on it.
//!
//! The notes are in the thread's TLS block, at the same distance from the thread pointer in each.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use libc::pthread_t;
use pirn_rt::glibc::tls;
use pirn_rt::sys::{self, Errno, SysResult, call};

/// The notes of one thread.
pub(super) struct Wishes {
    /// The first 64 CPUs that it is bound to; 0: it is not bound.
    cpus: AtomicU64,
    /// Its niceness plus 20, [`SET`], and its policy, from the lowest byte on.
    order: AtomicU64,
}

/// Whether the niceness counts.
const SET: u64 = 1 << 8;
const POLICY_SHIFT: u32 = 16;

thread_local! {
    static WISHES: Wishes = const {
        Wishes {
            cpus: AtomicU64::new(0),
            order: AtomicU64::new(0),
        }
    };
}

/// Returns the notes of a virtual thread.
///
/// # Safety
/// The thread is, or was, a virtual one: the memory of slots stays.
pub(super) unsafe fn of<'a>(thread: pthread_t) -> &'a Wishes {
    // SAFETY: the caller's contract.
    unsafe { &*tls::place_of(&WISHES, thread as usize) }
}

/// Has a new virtual thread begin with its creator's.
///
/// # Safety
/// As for [`of`]; it has not started.
pub unsafe fn inherit(thread: pthread_t) {
    WISHES.with(|own| {
        // Relaxed, here and below: each is complete in itself.
        let (cpus, order) = (own.cpus.load(Relaxed), own.order.load(Relaxed));
        if cpus | order != 0 {
            // SAFETY: the caller's contract.
            let new = unsafe { of(thread) };
            new.cpus.store(cpus, Relaxed);
            new.order.store(order, Relaxed);
        }
    });
}

/// What a thread has asked for, to be given to an OS thread.
#[derive(Clone, Copy)]
pub(crate) struct Wished {
    cpus: u64,
    order: u64,
}

/// Returns what the running thread has asked for; `None`: nothing.
pub(crate) fn own() -> Option<Wished> {
    WISHES.with(|own| {
        let (cpus, order) = (own.cpus.load(Relaxed), own.order.load(Relaxed));
        (cpus | order != 0).then_some(Wished { cpus, order })
    })
}

impl Wished {
    /// Has the kernel give it to the calling OS thread, as far as the user may.
    pub(crate) fn apply(self) {
        let policy = self.order >> POLICY_SHIFT;
        let (none, cpus) = (0_u64, &raw const self.cpus);
        // SAFETY: the kernel reads a priority and eight bytes of CPUs.
        unsafe {
            if policy != libc::SCHED_OTHER as u64 {
                let _ = call!(libc::SYS_sched_setscheduler, 0, policy, &raw const none);
            }
            if self.order & SET != 0 {
                let niceness = (self.order & 0xff) as c_int - 20;
                let _ = call!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, niceness);
            }
            if self.cpus != 0 {
                let _ = call!(libc::SYS_sched_setaffinity, 0, size_of::<u64>(), cpus);
            }
        }
    }
}

impl Wishes {
    /// Writes the CPUs that it may run on. Returns the bytes written.
    ///
    /// # Safety
    /// `set` has room for `size` bytes.
    pub(super) unsafe fn read_cpus(&self, size: usize, set: *mut c_void) -> SysResult {
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
    /// `EINVAL`: it may run on none of them.
    ///
    /// # Safety
    /// `set` has `size` bytes.
    pub(super) unsafe fn bind(&self, size: usize, set: *const c_void) -> SysResult {
        let mut allowed = [0_u64; 128];
        let place = allowed.as_mut_ptr();
        // SAFETY: room for all that the kernel fills; the caller's contract.
        let filled = unsafe {
            let filled = call!(libc::SYS_sched_getaffinity, 0, size_of_val(&allowed), place)?;
            let size = size.min(filled);
            let mut wanted = [0_u64; 128];
            wanted
                .as_mut_ptr()
                .cast::<u8>()
                .copy_from_nonoverlapping(set.cast(), size);
            allowed
                .iter_mut()
                .zip(wanted)
                .for_each(|(may, want)| *may &= want);
            filled / 8
        };
        if allowed.iter().all(|&cpus| cpus == 0) {
            return Err(Errno(libc::EINVAL));
        }
        let many = allowed[1..filled.max(1)].iter().any(|&cpus| cpus != 0);
        self.cpus.store(if many { 0 } else { allowed[0] }, Relaxed);
        Ok(0)
    }

    /// Returns its niceness.
    pub(super) fn niceness(&self) -> c_int {
        let order = self.order.load(Relaxed);
        if order & SET != 0 {
            return (order & 0xff) as c_int - 20;
        }
        // The kernel reports 20 less the niceness.
        // SAFETY: no pointers.
        let raw = unsafe { call!(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
        raw.map_or(0, |raw| 20 - raw as c_int)
    }

    /// Returns whether its user may give it this niceness.
    pub(super) fn may_be(&self, niceness: c_int) -> bool {
        // SAFETY: no arguments.
        niceness.clamp(-20, 19) >= self.niceness() || unsafe { libc::geteuid() } == 0
    }

    /// Notes its niceness.
    ///
    /// # Errors
    /// `EACCES`: it would be less nice, and the user may not do that.
    pub(super) fn set_niceness(&self, niceness: c_int) -> SysResult {
        if !self.may_be(niceness) {
            return Err(Errno(libc::EACCES));
        }
        let niceness = niceness.clamp(-20, 19);
        let policy = self.order.load(Relaxed) & !(SET | 0xff);
        self.order
            .store(policy | SET | (niceness + 20) as u64, Relaxed);
        Ok(0)
    }

    /// Returns its policy.
    pub(super) fn policy(&self) -> c_int {
        (self.order.load(Relaxed) >> POLICY_SHIFT) as c_int
    }

    /// Notes its policy.
    ///
    /// # Errors
    /// `EINVAL`: there is no such policy or priority; `EPERM`: it is a real-time policy.
    pub(super) fn set_policy(&self, policy: c_int, priority: c_int) -> SysResult {
        let policy = policy & !libc::SCHED_RESET_ON_FORK;
        match policy {
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE if priority == 0 => {
                let niceness = self.order.load(Relaxed) & (SET | 0xff);
                self.order
                    .store(niceness | (policy as u64) << POLICY_SHIFT, Relaxed);
                Ok(0)
            }
            libc::SCHED_FIFO | libc::SCHED_RR if (1..=99).contains(&priority) => {
                Err(Errno(libc::EPERM))
            }
            _ => Err(Errno(libc::EINVAL)),
        }
    }
}

/// Returns an error number, as the `pthread` functions do.
pub(super) fn number(result: SysResult) -> c_int {
    result.map_or_else(|e| e.0, |_| 0)
}

/// Returns the result of a function that has none but success.
pub(super) fn to_c(result: SysResult) -> c_int {
    sys::to_c(result.map(|_| 0)) as c_int
}
