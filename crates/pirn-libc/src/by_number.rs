//! The function `syscall(2)`, through which `std`, `parking_lot` and others call futexes, and some
//! programs the rest of the kernel: calls that may wait, or that change the table of descriptors,
//! go to the functions of the same name.
//!
//! The table is for calls that mean the same as libc's function: same arguments, and results that
//! differ only in how an error is reported. Where libc's function differs (`ppoll`, `pselect6`, in
//! which the kernel writes the time left), this file makes up for it, and the ones below.
//!
//! The kernel's calls for signals take the size of a set, which is eight bytes, and the kernel's
//! action has another layout than the C library's. If such a call went to the kernel, it would set
//! the carrier's mask: libunwind blocks all signals by `syscall`, and then locks a mutex, where the
//! thread may go to another carrier.
//!
//! A virtual thread goes from one OS thread to another. So an io_uring that it makes lacks what the
//! kernel ties to the OS thread that made the ring: all of it is optional, and programs do without
//! it on older kernels. A wait for completions (`io_uring_enter`) blocks the carrier, as does any
//! call that is not known here. liburing makes its calls itself: see `docs/limits.md`.

use crate::io::{fcntl, mqueue, poll, rw, select, transfer};
use crate::net::{messages, socket};
use crate::process::credentials::KernelAction;
use crate::process::{exec, os_thread, sysv, wait};
use crate::registry::interposed;
use crate::signals::{alternative, delivery, masks, process_wide, sending, sigwait, stand_in};
use crate::simulated::network;
use crate::thread::{ids, scheduling};
use crate::time::{self, clocks};
use crate::{fs, futex, identity, simulated, virtual_thread};
use core::ffi::{c_int, c_long};
use libc::{fd_set, sigset_t, timespec};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch::legacy;
use pirn_rt::blocking::futex::{
    SYS_FUTEX_REQUEUE, SYS_FUTEX_WAITV, SYS_FUTEX_WAKE, as_futex, futex, wait_many,
};
use pirn_rt::sched::preempt::SIGNAL;
use pirn_rt::sys::{self, Errno, SysResult, call};

interposed! {
    family "System calls by number" for Correctness;

    Parks by hand {
        syscall: "in the calls that wait for descriptors, futexes, time, children, locks or \
            signals; any other may block the carrier",
    }
}

/// It is variadic in C. In the System V ABI a call of a variadic function passes integer
/// arguments exactly like a call of a function with that many parameters, so all seven are
/// declared. Arguments that were not passed hold garbage, which the kernel does not read.
#[libc_fn]
pub unsafe fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let args = [a, b, c, d, e, f];
    match number {
        libc::SYS_futex => sys::to_c(futex(args, futex::call)) as c_long,
        libc::SYS_sched_yield => time::sched_yield().into(),
        libc::SYS_gettid => identity::gettid().into(),
        _ => other(number, args),
    }
}

/// A separate function, so that a futex call does not save the registers that this one
/// needs.
///
/// # Safety
/// As for the system call.
#[inline(never)]
unsafe fn other(number: c_long, args: [usize; 6]) -> c_long {
    // SAFETY: the caller's contract.
    unsafe {
        call_function(number, args)
            .unwrap_or_else(|| sys::to_c(delivery::kernels(number, args)) as c_long)
    }
}

/// Calls functions with these arguments, all of them integers and pointers.
macro_rules! calls {
    ($number:ident, $args:ident; $($(@$old:ident)? $name:ident => $function:path, $count:tt;)*) => {
        match $number {
            $( calls!(@number $($old)? $name) => calls!(@call $function, $args, $count) as c_long, )*
            _ => return None,
        }
    };
    (@number $name:ident) => { libc::$name };
    (@number legacy $name:ident) => { legacy::$name };
    (@call $f:path, $a:ident, 1) => { $f($a[0] as _) };
    (@call $f:path, $a:ident, 2) => { $f($a[0] as _, $a[1] as _) };
    (@call $f:path, $a:ident, 3) => { $f($a[0] as _, $a[1] as _, $a[2] as _) };
    (@call $f:path, $a:ident, 4) => { $f($a[0] as _, $a[1] as _, $a[2] as _, $a[3] as _) };
    (@call $f:path, $a:ident, 5) => {
        $f($a[0] as _, $a[1] as _, $a[2] as _, $a[3] as _, $a[4] as _)
    };
    (@call $f:path, $a:ident, 6) => {
        $f($a[0] as _, $a[1] as _, $a[2] as _, $a[3] as _, $a[4] as _, $a[5] as _)
    };
}

/// Calls the function that stands for a system call, if there is one. Returns the result of
/// `syscall`.
///
/// # Safety
/// As for the system call.
unsafe fn call_function(number: c_long, args: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's contract.
    unsafe {
        frequent(number, args)
            .or_else(|| rarely(number, args))
            .or_else(|| simulated::call(number, args).map(|result| sys::to_c(result) as c_long))
            .or_else(|| about_signals(number, args))
            .or_else(|| about_rings(number, args))
            .or_else(|| stand_in::by_number(number, args))
            .or_else(|| os_thread::refused(number, args).map(|result| sys::to_c(result) as c_long))
            .or_else(|| scheduling::call(number, args).map(|result| sys::to_c(result) as c_long))
            .or_else(|| ids::call(number, args))
    }
}

/// Does what [`call_function`] does, for calls that read, write, wait, or change descriptors.
///
/// # Safety
/// As for the system call.
unsafe fn frequent(number: c_long, a: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's contract: each function has the contract of its system call.
    unsafe {
        match number {
            libc::SYS_clock_nanosleep => return Some(clock_nanosleep(a)),
            libc::SYS_ppoll | libc::SYS_pselect6 => return poll_for(number, a),
            _ => {}
        }
        Some(calls! { number, a;
            SYS_read => rw::read, 3;
            SYS_write => rw::write, 3;
            SYS_readv => transfer::readv, 3;
            SYS_writev => transfer::writev, 3;
            SYS_pread64 => transfer::pread, 4;
            SYS_pwrite64 => transfer::pwrite, 4;
            SYS_preadv => transfer::preadv, 4;
            SYS_pwritev => transfer::pwritev, 4;
            SYS_recvfrom => socket::recvfrom, 6;
            SYS_sendto => socket::sendto, 6;
            SYS_recvmsg => socket::recvmsg, 3;
            SYS_sendmsg => socket::sendmsg, 3;
            SYS_recvmmsg => messages::recvmmsg, 5;
            SYS_sendmmsg => messages::sendmmsg, 4;
            SYS_accept => socket::accept, 3;
            SYS_accept4 => socket::accept4, 4;
            SYS_connect => socket::connect, 3;
            SYS_socket => socket::socket, 3;
            SYS_socketpair => socket::socketpair, 4;
            SYS_setsockopt => socket::setsockopt, 5;
            @legacy PIPE => rw::pipe, 1;
            SYS_pipe2 => rw::pipe2, 2;
            SYS_close => rw::close, 1;
            SYS_close_range => rw::close_range, 3;
            SYS_dup => rw::dup, 1;
            @legacy DUP2 => rw::dup2, 2;
            SYS_dup3 => rw::dup3, 3;
            SYS_fcntl => fcntl::fcntl, 3;
            SYS_ioctl => fcntl::ioctl, 3;
            SYS_flock => fs::lock::flock, 2;
            @legacy POLL => poll::poll, 3;
            @legacy SELECT => select::select, 5;
            @legacy EPOLL_WAIT => poll::epoll_wait, 4;
            SYS_epoll_pwait => poll::epoll_pwait, 5;
            SYS_epoll_pwait2 => poll::epoll_pwait2, 5;
            SYS_epoll_create1 => poll::epoll_create1, 1;
            SYS_eventfd2 => poll::eventfd, 2;
            SYS_timerfd_create => poll::timerfd_create, 2;
            SYS_nanosleep => time::nanosleep, 2;
            SYS_wait4 => wait::wait4, 4;
            SYS_execve => exec::execve, 3;
            SYS_execveat => exec::execveat, 5;
            SYS_kill => process_wide::kill, 2;
            @legacy OPEN => fs::open::open, 3;
            SYS_openat => fs::open::openat, 4;
        })
    }
}

/// Does what [`call_function`] does, for calls about threads, and rarer ones.
///
/// # Safety
/// As for the system call.
unsafe fn rarely(number: c_long, a: [usize; 6]) -> Option<c_long> {
    // SAFETY: as in `call_function`.
    unsafe {
        let result = match number {
            SYS_FUTEX_WAITV => wait_many(a),
            SYS_FUTEX_WAKE..=SYS_FUTEX_REQUEUE => as_futex(number, a)?,
            libc::SYS_tgkill => sending::to_id(Some(a[0] as _), a[1] as _, a[2] as _),
            libc::SYS_tkill => sending::to_id(None, a[0] as _, a[1] as _),
            // The kernel would write there at the carrier's end.
            libc::SYS_set_tid_address if virtual_thread().is_some() => {
                return Some(identity::gettid().into());
            }
            _ => {
                return Some(calls! { number, a;
                    SYS_clock_gettime => clocks::read, 2;
                    SYS_clock_getres => clocks::clock_getres, 2;
                    SYS_getrusage => clocks::getrusage, 2;
                    SYS_prctl => os_thread::prctl, 5;
                    SYS_msgsnd => sysv::msgsnd, 4;
                    SYS_msgrcv => sysv::msgrcv, 5;
                    SYS_semop => sysv::semop, 3;
                    SYS_semtimedop => sysv::semtimedop, 4;
                    SYS_mq_timedsend => mqueue::mq_timedsend, 5;
                    SYS_mq_timedreceive => mqueue::mq_timedreceive, 5;
                });
            }
        };
        Some(sys::to_c(result) as c_long)
    }
}

/// Calls `ppoll` or `pselect` and stores the time left, as the kernel does. Returns `None` if the
/// call is the kernel's: on a platform thread.
///
/// # Safety
/// As for the system call.
unsafe fn poll_for(number: c_long, a: [usize; 6]) -> Option<c_long> {
    virtual_thread()?;
    let (time, mask) = match number {
        libc::SYS_ppoll => (a[2], a[3]),
        _ if a[5] == 0 => (a[4], 0),
        _ => (a[4], sys::fetch_u64(a[5]).ok()? as usize), // The mask's address and its size.
    };
    let mask = mask as *const sigset_t;
    let time = time as *mut timespec;
    let timeout = sys::fetch_timeout(time);
    let start = sys::now();
    // SAFETY: the caller's contract.
    unsafe {
        let result = match number {
            libc::SYS_ppoll => poll::ppoll(a[0] as _, a[1] as _, time, mask),
            _ => {
                let sets = [a[1], a[2], a[3]].map(|set| set as *mut fd_set);
                select::pselect(a[0] as _, sets[0], sets[1], sets[2], time, mask)
            }
        };
        if let Ok(Some(nanos @ 1..)) = timeout {
            let left = nanos.saturating_sub(sys::now() - start);
            sys::store_timespec(time, sys::timespec(left));
        }
        Some(result.into())
    }
}

/// Calls `clock_nanosleep`, which returns an error number.
unsafe fn clock_nanosleep([clock, flags, request, remaining, ..]: [usize; 6]) -> c_long {
    let (request, remaining) = (request as *const _, remaining as *mut _);
    // SAFETY: the caller's contract.
    match unsafe { time::clock_nanosleep(clock as c_int, flags as c_int, request, remaining) } {
        0 => 0,
        e => sys::to_c(Err(Errno(e))) as c_long,
    }
}

/// Does what a system call about signals does. Returns `None` if the call is the kernel's.
///
/// # Safety
/// As for the system call.
unsafe fn about_signals(number: c_long, a: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's contract: each function's is its system call's.
    unsafe {
        let result = match number {
            libc::SYS_rt_sigaction => rt_sigaction(a)?,
            libc::SYS_rt_sigprocmask => masks::by_number(a)?,
            _ => return like_libcs(number, a),
        };
        Some(sys::to_c(result) as c_long)
    }
}

/// Does this for the calls that are like libc's functions. The kernel refuses a set of another
/// size.
///
/// # Safety
/// As for the system call.
unsafe fn like_libcs(number: c_long, a: [usize; 6]) -> Option<c_long> {
    virtual_thread()?;
    // SAFETY: the caller's contract.
    let result = unsafe {
        match number {
            libc::SYS_sigaltstack => alternative::sigaltstack(a[0] as _, a[1] as _),
            libc::SYS_rt_sigpending if a[1] == SIGSET => masks::sigpending(a[0] as _),
            libc::SYS_rt_sigsuspend if a[1] == SIGSET => sigwait::sigsuspend(a[0] as _),
            libc::SYS_rt_sigtimedwait if a[3] == SIGSET => {
                sigwait::sigtimedwait(a[0] as _, a[1] as _, a[2] as _)
            }
            legacy::PAUSE => sigwait::pause(),
            _ => return None,
        }
    };
    Some(result.into())
}

/// The size of the kernel's set of signals.
const SIGSET: usize = size_of::<u64>();

/// Calls `rt_sigaction` so that the signal of preemption is blocked in handlers. `sigaction` sets
/// the action of that signal itself.
///
/// # Safety
/// As for the system call.
unsafe fn rt_sigaction([signal, new, old, size, ..]: [usize; 6]) -> Option<SysResult> {
    if new == 0 || size != SIGSET {
        return None;
    }
    let word = |i: usize| sys::fetch_u64(new + i * size_of::<u64>());
    let fetched = (|| {
        Ok(KernelAction {
            handler: word(0)? as usize,
            flags: word(1)?,
            restorer: word(2)? as usize,
            mask: word(3)?,
        })
    })();
    let mut action = match fetched {
        Ok(action) => action,
        Err(e) => return Some(Err(e)),
    };
    if action.handler <= libc::SIG_IGN {
        return None;
    }
    action.mask |= 1 << (SIGNAL - 1);
    let place = &raw const action;
    // SAFETY: our copy of the action; the caller's contract for `old`.
    Some(unsafe { call!(libc::SYS_rt_sigaction, signal, place, old, size) })
}

// linux/io_uring.h
const COOP_TASKRUN: u32 = 1 << 8;
const TASKRUN_FLAG: u32 = 1 << 9;
const SINGLE_ISSUER: u32 = 1 << 12;
const DEFER_TASKRUN: u32 = 1 << 13;
const REGISTERED_FD_ONLY: u32 = 1 << 15;
const REGISTER_RING_FDS: u32 = 20;
const USE_REGISTERED_RING: u32 = 1 << 31;

/// A ring with these takes requests from one OS thread only (`EEXIST` for all others), or leaves
/// its completions to that thread until it enters the kernel.
const OF_ONE_THREAD: u32 = COOP_TASKRUN | TASKRUN_FLAG | SINGLE_ISSUER | DEFER_TASKRUN;

/// The place of the flags in `struct io_uring_params`.
const RING_FLAGS: usize = 8;

/// Does what a system call about io_uring does. Returns `None` if the call is the kernel's.
///
/// # Safety
/// As for the system call.
unsafe fn about_rings(number: c_long, a: [usize; 6]) -> Option<c_long> {
    virtual_thread()?;
    match number {
        libc::SYS_io_uring_setup if let Some(network) = network() => {
            network.refused("io_uring_setup");
            Some(sys::to_c(Err(Errno(libc::ENOSYS))) as c_long)
        }
        // SAFETY: the caller's contract.
        libc::SYS_io_uring_setup => unsafe { set_up_ring(a) },
        libc::SYS_io_uring_register => {
            // The number that this call gives out is in a table of the OS thread.
            let what = a[1] as u32 & !USE_REGISTERED_RING;
            (what == REGISTER_RING_FDS).then(unknown)
        }
        _ => None,
    }
}

/// Returns the answer of a kernel that does not know a flag.
fn unknown() -> c_long {
    sys::to_c(Err(Errno(libc::EINVAL))) as c_long
}

/// `io_uring_setup`, without the flags that tie a ring to an OS thread.
///
/// # Safety
/// As for the system call.
unsafe fn set_up_ring([entries, params, ..]: [usize; 6]) -> Option<c_long> {
    let place = params.wrapping_add(RING_FLAGS);
    let flags = sys::fetch_u32(place).ok()?;
    if flags & REGISTERED_FD_ONLY != 0 {
        return Some(unknown());
    }
    if flags & OF_ONE_THREAD == 0 {
        return None;
    }
    // SAFETY: it was read just now, and only the kernel writes there meanwhile.
    unsafe { (place as *mut u32).write_unaligned(flags & !OF_ONE_THREAD) };
    // SAFETY: the caller's contract.
    Some(sys::to_c(unsafe { call!(libc::SYS_io_uring_setup, entries, params) }) as c_long)
}
