//! The system calls that the simulation answers in the kernel's place, but for sockets; and those
//! that it refuses, because they would be in real time or beside the simulation.

use crate::{clock, disk, entropy, program, timers, world};
use core::ffi::{c_int, c_long, c_void};
use core::mem::zeroed;
use libc::{iovec, off_t, pid_t, rusage, sigset_t, size_t, tms};
use pirn_libc::simulated::Kernel;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched::simulation;
use pirn_rt::sys::{self, Errno, SysResult, call};
use std::ptr;

/// The system calls of a simulation's threads.
pub(crate) struct Calls;

impl Kernel for Calls {
    unsafe fn call(&self, number: c_long, args: [usize; 6]) -> Option<SysResult> {
        if !world::is_inside_run() {
            return None;
        }
        // SAFETY: the caller's contract.
        unsafe {
            match number {
                libc::SYS_clone if !program::is_on() => refuse(
                    "a child process in a simulation: it would run in real time; run its code in a \
                     thread, or on a node",
                ),
                libc::SYS_clone3 if !program::is_on() => refuse(
                    "a platform thread in a simulation: it would run beside it; leave out \
                     PIRN_PLATFORM and pirn_keep_platform",
                ),
                libc::SYS_io_uring_setup => refuse(
                    "io_uring_setup in a simulation: the kernel would answer in real time; make \
                     the program use plain calls, as on a kernel without io_uring",
                ),
                libc::SYS_getrandom => {
                    Some(Ok(
                        entropy::getrandom(args[0] as *mut c_void, args[1], 0) as usize
                    ))
                }
                libc::SYS_kill => kill(args[0] as pid_t, args[1] as c_int),
                libc::SYS_getrusage => usage(args),
                _ => timers::call(number, args)
                    .or_else(|| entropy::call(number, args))
                    .or_else(|| disk::call(number, args)),
            }
        }
    }

    fn opened(&self, fd: c_int, by_stdio: bool) {
        if world::is_inside_run() {
            disk::opened(fd, by_stdio);
        }
    }
}

/// Returns the buffers of a call that reads or writes.
///
/// # Safety
/// As for `readv`.
pub(crate) unsafe fn buffers<'a>([_, place, count, ..]: [usize; 6]) -> &'a [iovec] {
    match count {
        0 => &[],
        // SAFETY: the caller's contract.
        _ => unsafe { core::slice::from_raw_parts(place as *const iovec, count) },
    }
}

/// Refuses a call, as a kernel without it does.
pub(crate) fn refuse(call: &'static str) -> Option<SysResult> {
    world::refused(call);
    Some(Err(Errno(libc::ENOSYS)))
}

/// Makes a system call of a simulation's thread. `None`: the kernel, or libc, is to make it.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn simulated(number: c_long, args: [usize; 6]) -> Option<SysResult> {
    if !simulation::is_running() || pirn_libc::virtual_thread().is_none() {
        return None;
    }
    // SAFETY: the caller's contract.
    unsafe { Calls.call(number, args) }
}

/// `kill`, of the process itself. The kernel would give the signal to a platform thread, in real
/// time; the calling thread takes it, as POSIX allows, unless it blocks it.
fn kill(process: pid_t, signal: c_int) -> Option<SysResult> {
    let own = process == 0 || process.cast_unsigned() == std::process::id();
    if !own || !(1..=64).contains(&signal) {
        return None;
    }
    // SAFETY: no bits is a set.
    let mut blocked: sigset_t = unsafe { zeroed() };
    // SAFETY: room for a set; a set.
    let is_blocked = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut blocked);
        libc::sigismember(&raw const blocked, signal) == 1
    };
    if is_blocked {
        return refuse(
            "kill of the own process in a simulation, by a thread that blocks the signal: use \
             pthread_kill, of the thread that takes it",
        );
    }
    // SAFETY: no pointers.
    let raised = unsafe { libc::raise(signal) };
    Some(match raised {
        0 => Ok(0),
        _ => Err(Errno(sys::errno())),
    })
}

/// `getrusage`: virtual time, as the clocks of CPU time show it.
///
/// # Safety
/// As for the system call.
unsafe fn usage([_, place, ..]: [usize; 6]) -> Option<SysResult> {
    // SAFETY: numbers.
    let mut usage: rusage = unsafe { zeroed() };
    let time = pirn_rt::time::timespec(clock::now() - clock::START);
    usage.ru_utime = libc::timeval {
        tv_sec: time.tv_sec,
        tv_usec: time.tv_nsec / 1000,
    };
    // SAFETY: the caller's contract.
    unsafe { (place as *mut rusage).write(usage) };
    Some(Ok(0))
}

/// `times`: virtual time, as the clocks of CPU time show it.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn times(to: *mut tms) -> libc::clock_t {
    if !simulation::is_running() || !world::is_inside_run() {
        // SAFETY: the caller's contract.
        return unsafe { real!(fn times(to: *mut tms) -> libc::clock_t) };
    }
    const TICK: u64 = 10_000_000; // `sysconf(_SC_CLK_TCK)` is 100 on Linux.
    let ticks = |nanos: u64| (nanos / TICK) as libc::clock_t;
    if !to.is_null() {
        // SAFETY: numbers; the caller's contract.
        unsafe {
            to.write(tms {
                tms_utime: ticks(clock::now() - clock::START),
                ..zeroed()
            });
        }
    }
    ticks(clock::now())
}

/// `fork`.
#[unsafe(no_mangle)]
pub extern "C" fn fork() -> pid_t {
    // SAFETY: it is refused, or libc's own; no pointers.
    unsafe {
        match simulated(libc::SYS_clone, [0; 6]) {
            Some(result) => sys::to_c(result) as pid_t,
            None => real!(fn fork() -> pid_t),
        }
    }
}

/// Defines `mmap` by its two names.
macro_rules! map {
    ($($name:ident)*) => { $(
        /// Maps memory, but no file of a simulated disk for writing.
        ///
        /// # Safety
        /// As for libc's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            address: *mut c_void,
            length: size_t,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: off_t,
        ) -> *mut c_void {
            let refused = simulation::is_running()
                && disk::refuses_to_map(fd, protection, flags)
                && world::is_inside_run();
            let kernels = || {
                // SAFETY: the caller's contract.
                unsafe { call!(libc::SYS_mmap, address, length, protection, flags, fd, offset) }
            };
            sys::to_c(match refused {
                true => Err(Errno(libc::ENODEV)),
                false => kernels(),
            }) as *mut c_void
        }
    )* };
}

map! { mmap mmap64 }
