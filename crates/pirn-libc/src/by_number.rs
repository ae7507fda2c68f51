//! System calls made by number, through `syscall`: those that may wait, or that change the table of
//! descriptors, go to the functions of the same name.
//!
//! The table is for calls that mean the same as libc's function: same arguments, and results that
//! differ only in how an error is reported. Where libc's function differs (`ppoll`, `pselect6`, in
//! which the kernel writes the time left), this file makes up for it, and the ones below.

mod rings;
mod signals;

use crate::io::{fcntl, mqueue, poll, rw, select, transfer};
use crate::net::{messages, socket};
use crate::process::{exec, os_thread, sysv, wait};
use crate::signals::{by_id, directed, process_wide};
use crate::thread::{ids, sched_attr, scheduling};
use crate::time::{self, clocks};
use crate::{fs, identity, virtual_thread};
use core::ffi::{c_int, c_long};
use libc::{fd_set, sigset_t, timespec};
use pirn_rt::blocking::futex::{
    SYS_FUTEX_REQUEUE, SYS_FUTEX_WAITV, SYS_FUTEX_WAKE, as_futex, wait_many,
};
use pirn_rt::runtime;
use pirn_rt::sys::{self, Errno};

/// Calls functions with these arguments, all of them integers and pointers.
macro_rules! calls {
    ($number:ident, $args:ident; $($name:ident => $function:path, $count:tt;)*) => {
        match $number {
            $( libc::$name => calls!(@call $function, $args, $count) as c_long, )*
            _ => return None,
        }
    };
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
pub(super) unsafe fn call(number: c_long, args: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's contract.
    unsafe {
        frequent(number, args)
            .or_else(|| rarely(number, args))
            .or_else(|| signals::call(number, args))
            .or_else(|| rings::call(number, args))
            .or_else(|| directed::by_number(number, args))
            .or_else(|| os_thread::refused(number, args).map(|result| sys::to_c(result) as c_long))
            .or_else(|| ids::call(number, args))
    }
}

/// Does that for calls that read, write, wait, or change descriptors.
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
            SYS_pread64 => transfer::pread64, 4;
            SYS_pwrite64 => transfer::pwrite64, 4;
            SYS_preadv => transfer::preadv64, 4;
            SYS_pwritev => transfer::pwritev64, 4;
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
            SYS_pipe => rw::pipe, 1;
            SYS_pipe2 => rw::pipe2, 2;
            SYS_close => rw::close, 1;
            SYS_close_range => rw::close_range, 3;
            SYS_dup => rw::dup, 1;
            SYS_dup2 => rw::dup2, 2;
            SYS_dup3 => rw::dup3, 3;
            SYS_fcntl => fcntl::fcntl, 3;
            SYS_ioctl => fcntl::ioctl, 3;
            SYS_flock => fs::lock::flock, 2;
            SYS_poll => poll::poll, 3;
            SYS_select => select::select, 5;
            SYS_epoll_wait => poll::epoll_wait, 4;
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
            SYS_open => fs::open::open64, 3;
            SYS_openat => fs::open::openat64, 4;
        })
    }
}

/// Does the same for calls about threads, and rarer ones.
///
/// # Safety
/// As for the system call.
unsafe fn rarely(number: c_long, a: [usize; 6]) -> Option<c_long> {
    // SAFETY: as in `call`.
    unsafe {
        let result = match number {
            SYS_FUTEX_WAITV => wait_many(a),
            SYS_FUTEX_WAKE..=SYS_FUTEX_REQUEUE if runtime::is_started() => as_futex(number, a)?,
            libc::SYS_tgkill => by_id::send(Some(a[0] as _), a[1] as _, a[2] as _),
            libc::SYS_tkill => by_id::send(None, a[0] as _, a[1] as _),
            // The kernel would write there at the carrier's end.
            libc::SYS_set_tid_address if virtual_thread().is_some() => {
                return Some(identity::gettid().into());
            }
            libc::SYS_getpriority => scheduling::raw_getpriority(a[0] as _, a[1] as _),
            libc::SYS_sched_getattr => {
                sched_attr::raw_get(a[0] as _, a[1] as _, a[2] as _, a[3] as _)
            }
            libc::SYS_sched_setattr => sched_attr::raw_set(a[0] as _, a[1] as _, a[2] as _),
            libc::SYS_sched_getaffinity => scheduling::raw_getaffinity(a[0] as _, a[1], a[2] as _),
            _ => {
                return Some(calls! { number, a;
                    SYS_setpriority => scheduling::setpriority, 3;
                    SYS_sched_setaffinity => scheduling::sched_setaffinity, 3;
                    SYS_sched_getscheduler => scheduling::sched_getscheduler, 1;
                    SYS_sched_setscheduler => scheduling::sched_setscheduler, 3;
                    SYS_sched_getparam => scheduling::sched_getparam, 2;
                    SYS_sched_setparam => scheduling::sched_setparam, 2;
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
