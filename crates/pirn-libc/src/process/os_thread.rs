//! What a program can set of the OS thread that makes a call, and a switch does not carry.
//!
//! On a virtual thread such a setting would be the carrier's: it would hold for other threads, and
//! no longer for the caller once the caller goes on elsewhere. A filter of system calls, a dropped
//! capability or another user would give a false safety. So these calls fail with `ENOTSUP`, and a
//! line on standard error says what to do. On a platform thread they do what libc's do.
//! `docs/limits.md` has the table of all such state.

use crate::forward::args;
use crate::posix;
use crate::process::fork;
use crate::registry::interposed;
use crate::thread::{ids, names};
use core::ffi::{CStr, c_char};
use core::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use libc::pid_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::arch::{self, Extra, legacy};
use pirn_rt::environment;
use pirn_rt::glibc::symbols::real;
use pirn_rt::lock::Lock;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread::identity::C_NAME;
use pirn_rt::vthread::identity::Label;
use pirn_rt::vthread::{self, Core, extra_state};

interposed! {
    family "State of OS threads" for Correctness,
        cannot "set for a virtual thread what the kernel keeps for OS threads: namespaces, users of \
            one thread, capabilities, personality, ports of devices";

    Refuses as {
        fn unshare(what: c_int) -> c_int = plain(libc::SYS_unshare, [what as usize]);
        fn setns(fd: c_int, kind: c_int) -> c_int
            = plain(libc::SYS_setns, [fd as usize, kind as usize]);
        fn capset(header: *mut c_void, data: *const c_void) -> c_int
            = plain(libc::SYS_capset, [header as usize, data as usize]);
        fn personality(persona: c_ulong) -> c_int
            = plain(libc::SYS_personality, [persona as usize]);
        fn iopl(level: c_int) -> c_int = plain(legacy::IOPL, [level as usize]);
        fn ioperm(from: c_ulong, count: c_ulong, on: c_int) -> c_int
            = plain(legacy::IOPERM, [from as usize, count as usize, on as usize]);
        fn setfsuid(user: c_uint) -> c_int = plain(libc::SYS_setfsuid, [user as usize]);
        fn ptrace(request: c_uint, id: pid_t, address: usize, data: usize) -> c_long
            = trace(request, id, address, data);
        fn setfsgid(group: c_uint) -> c_int = plain(libc::SYS_setfsgid, [group as usize]);
    }
    Own as {
        fn arch_prctl(code: c_int, address: usize) -> c_int
            = plain(legacy::ARCH_PRCTL, [code as usize, address]);
        fn __arch_prctl(code: c_int, address: usize) -> c_int = arch_prctl(code, address);
        fn pkey_alloc(flags: c_uint, rights: c_uint) -> c_int
            = plain(libc::SYS_pkey_alloc, [flags as usize, rights as usize]);
    }
    Own by hand { prctl: "its own name; options that change the OS thread fail" }
}

/// Makes a system call, unless a virtual thread may not.
///
/// # Safety
/// As for the system call.
unsafe fn plain<const N: usize>(number: c_long, given: [usize; N]) -> c_int {
    let args = args(given);
    // SAFETY: the caller's contract.
    let call = || unsafe { sys::check(arch::syscall(number, args)) };
    sys::to_c(refused(number, args).unwrap_or_else(call)) as c_int
}

/// `ptrace`: the tracer is an OS thread.
///
/// # Safety
/// As for libc's function of this name.
unsafe fn trace(request: c_uint, id: pid_t, address: usize, data: usize) -> c_long {
    let args = args([request as usize, id as usize, address, data]);
    // SAFETY: the caller's contract.
    unsafe {
        match refused(libc::SYS_ptrace, args) {
            Some(refused) => sys::to_c(refused) as c_long,
            None => ids::call(libc::SYS_ptrace, args).unwrap_or_else(|| {
                real!(
                    fn ptrace(request: c_uint, id: pid_t, address: usize, data: usize) -> c_long
                )
            }),
        }
    }
}

/// Returns the result of a system call that a virtual thread may not make, or `None` if it may make
/// the call. If the call sets up a GS base or a protection key, switches carry them from now on.
pub(crate) fn refused(number: c_long, args: [usize; 6]) -> Option<SysResult> {
    if Extra::is_prepared_by(number, args) {
        extra_state::carry();
    }
    if number == libc::SYS_ptrace
        && args[0] == libc::PTRACE_TRACEME as usize
        && fork::by_virtual_thread()
    {
        sys::complain(&[
            "pirn: a process that a virtual thread has forked cannot have itself traced \
             (PTRACE_TRACEME: ENOTSUP): fork it on a platform thread\n",
        ]);
        return Some(Err(Errno(libc::ENOTSUP)));
    }
    let thread = vthread::current()?;
    say(&thread, changes(number, args)?);
    Some(match number {
        // They have no errors, and return the id that is in force.
        // SAFETY: no pointers; no such user or group.
        libc::SYS_setfsuid | libc::SYS_setfsgid => unsafe { call!(number, NOBODY) },
        libc::SYS_rseq => Err(Errno(libc::ENOSYS)), // For which its users are prepared.
        _ => Err(Errno(libc::ENOTSUP)),
    })
}

/// No user, and no group.
const NOBODY: usize = u32::MAX as usize;

/// Returns what is changed of the OS thread by a system call, or `None`.
fn changes(number: c_long, [a, b, ..]: [usize; 6]) -> Option<&'static str> {
    /// linux/seccomp.h: filters for all threads, and `SECCOMP_GET_*`.
    const ALL_THREADS: usize = 1;
    const FIRST_QUERY: usize = 2;
    /// linux/keyctl.h
    const JOIN_SESSION: usize = 1;
    const SET_REQUEST: usize = 14;
    const SESSION_TO_PARENT: usize = 18;
    /// asm/prctl.h: faulting `cpuid`, and all from the shadow stack on.
    const SET_CPUID: usize = 0x1012;
    const SHADOW_STACK: core::ops::RangeInclusive<usize> = 0x5001..=0x5003;
    Some(match number {
        libc::SYS_unshare | libc::SYS_setns => "its namespaces or shared tables",
        libc::SYS_setuid
        | libc::SYS_setgid
        | libc::SYS_setreuid
        | libc::SYS_setregid
        | libc::SYS_setresuid
        | libc::SYS_setresgid
        | libc::SYS_setgroups => "its user or groups",
        libc::SYS_setfsuid | libc::SYS_setfsgid if a as u32 != u32::MAX => "its user or group",
        libc::SYS_capset => "its capabilities",
        libc::SYS_personality if a as u32 != u32::MAX => "its personality",
        libc::SYS_seccomp if a < FIRST_QUERY && (a == 0 || b & ALL_THREADS == 0) => {
            "its filter of system calls"
        }
        libc::SYS_landlock_restrict_self => "its Landlock rules",
        libc::SYS_ioprio_set if a == IOPRIO_WHO_PROCESS => "its I/O priority",
        libc::SYS_set_mempolicy if a != 0 => "its memory policy",
        legacy::IOPL | legacy::IOPERM => "its access to ports",
        libc::SYS_keyctl if matches!(a, JOIN_SESSION | SET_REQUEST | SESSION_TO_PARENT) => {
            "its keyrings"
        }
        libc::SYS_set_robust_list => "its list of robust mutexes",
        libc::SYS_ptrace => "the processes that it traces",
        libc::SYS_rseq => "its restartable sequences",
        legacy::ARCH_PRCTL if a == SET_CPUID || SHADOW_STACK.contains(&a) => "its processor's mode",
        libc::SYS_prctl => return of_prctl(a as c_int, b),
        _ => return None,
    })
}

const IOPRIO_WHO_PROCESS: usize = 1;

/// Returns what is changed of the OS thread by an option of `prctl` with this first argument, or
/// `None`.
fn of_prctl(option: c_int, a: usize) -> Option<&'static str> {
    // linux/prctl.h. A processor knows some of them; the others answer EINVAL.
    const PR_SVE_SET_VL: c_int = 50;
    const PR_SET_SPECULATION_CTRL: c_int = 53;
    const PR_PAC_RESET_KEYS: c_int = 54;
    const PR_SET_TAGGED_ADDR_CTRL: c_int = 55;
    const PR_SET_IO_FLUSHER: c_int = 57;
    const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
    const PR_PAC_SET_ENABLED_KEYS: c_int = 60;
    const PR_SCHED_CORE: c_int = 62; // Its first command is a query.
    const PR_SME_SET_VL: c_int = 63;
    const PR_SET_SHADOW_STACK_STATUS: c_int = 75;
    const PR_LOCK_SHADOW_STACK_STATUS: c_int = 76;
    const AMBIENT_IS_SET: usize = 1;
    Some(match option {
        libc::PR_SET_NO_NEW_PRIVS => "its `no_new_privs`",
        libc::PR_SET_SECCOMP => "its filter of system calls",
        libc::PR_CAPBSET_DROP | libc::PR_SET_SECUREBITS | libc::PR_SET_KEEPCAPS => {
            "its capabilities"
        }
        libc::PR_CAP_AMBIENT if a != AMBIENT_IS_SET => "its capabilities",
        libc::PR_SET_TSC | PR_SET_SHADOW_STACK_STATUS | PR_LOCK_SHADOW_STACK_STATUS => {
            "its processor's mode"
        }
        // A parked thread's stack has return addresses that were signed with the old keys.
        PR_PAC_RESET_KEYS | PR_PAC_SET_ENABLED_KEYS => "its keys of pointer authentication",
        PR_SVE_SET_VL | PR_SME_SET_VL => "its length of vectors",
        PR_SET_TAGGED_ADDR_CTRL => "its treatment of tagged addresses",
        PR_SET_SPECULATION_CTRL => "its speculation controls",
        libc::PR_SET_TIMERSLACK => "its timer slack",
        libc::PR_MCE_KILL | PR_SET_IO_FLUSHER => "its flags of memory",
        PR_SET_SYSCALL_USER_DISPATCH => "its dispatch of system calls",
        PR_SCHED_CORE if a != 0 => "its core's cookie",
        _ => return None,
    })
}

/// Names a refusal, the first of its kind.
#[cold]
fn say(thread: &Core, what: &'static str) {
    static SAID: Lock<Vec<&'static str>> = Lock::new(Vec::new());
    let mut said = SAID.lock();
    if said.contains(&what) {
        return;
    }
    said.push(what);
    drop(said);
    let instead = match posix::is_on() {
        true => "`--platform`, `pirn_create_platform`",
        false => "`std::thread`",
    };
    environment::notice(&format!(
        "virtual thread {} may not change {what}, which an OS thread has: ENOTSUP; use a platform \
         thread ({instead})",
        Label::of(thread),
    ));
}

/// A virtual thread has a name of its own; all other options concern the process, or are
/// [refused]. Variadic in C; see [`syscall`](crate::by_number::syscall).
#[libc_fn]
pub unsafe fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    let is_virtual = vthread::current().is_some();
    // SAFETY: the caller's contract: a string, or room for one; here and below.
    unsafe {
        match option {
            libc::PR_SET_NAME => {
                if !is_virtual {
                    let result = call!(libc::SYS_prctl, option, a, b, c, d);
                    if result.is_err() {
                        return sys::to_c(result) as c_int;
                    }
                }
                let name = CStr::from_ptr(a as *const c_char).to_bytes();
                names::set_name(libc::pthread_self(), &name[..name.len().min(C_NAME - 1)]);
                0
            }
            libc::PR_GET_NAME if is_virtual => {
                (a as *mut [u8; C_NAME]).write_unaligned(names::name(libc::pthread_self()));
                0
            }
            _ => plain(libc::SYS_prctl, [option as usize, a, b, c, d]),
        }
    }
}
