//! `sched_getattr` and `sched_setattr`: all that the kernel knows of how it schedules a thread. A
//! virtual thread's are [wishes](crate::thread::wishes).
//!
//! glibc has the functions since 2.41. Programs make these calls by number as well: GLib gives each
//! thread of a pool the attributes of the thread that has begun to use it.

use crate::registry::interposed;
use crate::thread::scheduling::{by_id, wishes_by_id};
use crate::thread::wishes::{Wishes, to_c};
use core::ffi::{c_int, c_uint};
use core::mem::offset_of;
use libc::{pid_t, sched_attr};
use pirn_rt::sys::{self, Errno, SysResult, call};

interposed! {
    family "Attributes of scheduling" for Scaling,
        cannot "give a virtual thread a deadline or a real-time policy (`EPERM`), or limits of \
            utilization, which are left out, nor be seen by libraries that use them in an \
            executable linked with glibc before 2.41";

    Own as {
        fn sched_getattr(id: pid_t, attributes: *mut sched_attr, size: c_uint, flags: c_uint)
            -> c_int = to_c(raw_get(id, attributes, size, flags));
        fn sched_setattr(id: pid_t, attributes: *mut sched_attr, flags: c_uint) -> c_int
            = to_c(raw_set(id, attributes, flags));
    }
}

/// The system call `sched_getattr`.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn raw_get(
    id: pid_t,
    attributes: *mut sched_attr,
    size: c_uint,
    flags: c_uint,
) -> SysResult {
    let Some(wishes) = by_id(id)? else {
        // SAFETY: the caller's contract.
        return unsafe { call!(libc::SYS_sched_getattr, id, attributes, size, flags) };
    };
    // SAFETY: the caller's contract. Where the kernel has written, there is room for all of it.
    unsafe {
        // The carrier's are the ordinary ones.
        call!(libc::SYS_sched_getattr, 0, attributes, size, flags)?;
        (&raw mut (*attributes).sched_policy).write_unaligned(wishes.policy() as u32);
        (&raw mut (*attributes).sched_nice).write_unaligned(wishes.niceness());
    }
    Ok(0)
}

/// The system call `sched_setattr`.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn raw_set(id: pid_t, attributes: *mut sched_attr, flags: c_uint) -> SysResult {
    match wishes_by_id(id)? {
        Some(_) if flags != 0 || attributes.is_null() => Err(Errno(libc::EINVAL)),
        Some(wishes) => Wanted::fetch(attributes.addr())?.note(wishes),
        // SAFETY: the caller's contract.
        None => unsafe { call!(libc::SYS_sched_setattr, id, attributes, flags) },
    }
}

/// What a program asks for.
struct Wanted {
    policy: c_int,
    flags: u64,
    niceness: c_int,
    priority: u32,
}

impl Wanted {
    /// Reads it, as the kernel does.
    fn fetch(place: usize) -> Result<Wanted, Errno> {
        /// What the first kernel with this call took, which may be given as 0; and the most.
        const FIRST: u32 = 48;
        const LARGEST: u32 = 4096;
        let size = sys::fetch_u32(place + offset_of!(sched_attr, size))?;
        if size != 0 && !(FIRST..=LARGEST).contains(&size) {
            return Err(Errno(libc::E2BIG));
        }
        Ok(Wanted {
            policy: sys::fetch_u32(place + offset_of!(sched_attr, sched_policy))?.cast_signed(),
            flags: sys::fetch_u64(place + offset_of!(sched_attr, sched_flags))?,
            niceness: sys::fetch_u32(place + offset_of!(sched_attr, sched_nice))?.cast_signed(),
            priority: sys::fetch_u32(place + offset_of!(sched_attr, sched_priority))?,
        })
    }

    /// Notes it, if the thread may have it.
    fn note(self, wishes: &Wishes) -> SysResult {
        let has = |flag: c_int| self.flags & flag as u64 != 0;
        let policy = match has(libc::SCHED_FLAG_KEEP_POLICY) {
            true => wishes.policy(),
            false => self.policy,
        };
        if self.flags & !(libc::SCHED_FLAG_ALL as u64) != 0
            || policy & libc::SCHED_RESET_ON_FORK != 0
        {
            return Err(Errno(libc::EINVAL));
        }
        if policy == libc::SCHED_DEADLINE {
            return Err(Errno(libc::EPERM));
        }
        if has(libc::SCHED_FLAG_KEEP_PARAMS) {
            return Ok(0); // The kernel keeps the policy with them.
        }
        if !wishes.may_be(self.niceness) {
            return Err(Errno(libc::EPERM));
        }
        wishes.set_policy(policy, self.priority.cast_signed())?;
        wishes.set_niceness(self.niceness)
    }
}
