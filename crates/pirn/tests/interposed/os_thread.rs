//! Calls that change the OS thread: a virtual thread is refused them, and its carrier stays as it
//! was.

use std::ptr;

use libc::{c_int, c_long, c_uint, c_ulong};

use super::checked;
use crate::common::{child, on_virtual, sys, watched};
use pirn_rt::arch::legacy;

unsafe extern "C" {
    fn setfsuid(user: c_uint) -> c_int;
    fn setfsgid(group: c_uint) -> c_int;
    fn capset(header: *mut u32, data: *const u32) -> c_int;
    fn arch_prctl(code: c_int, address: usize) -> c_int;
    fn __arch_prctl(code: c_int, address: usize) -> c_int;
    fn ioperm(from: c_ulong, count: c_ulong, on: c_int) -> c_int;
    fn iopl(level: c_int) -> c_int;
}

/// The calls by number that are refused, with arguments that could otherwise do something.
const REFUSED: [(c_long, [usize; 4]); 22] = [
    (libc::SYS_unshare, [libc::CLONE_FILES as usize, 0, 0, 0]),
    (libc::SYS_setns, [0, 0, 0, 0]),
    (libc::SYS_setuid, [12345, 0, 0, 0]),
    (libc::SYS_setgid, [12345, 0, 0, 0]),
    (libc::SYS_setreuid, [12345, 12345, 0, 0]),
    (libc::SYS_setregid, [12345, 12345, 0, 0]),
    (libc::SYS_setresuid, [12345, 12345, 12345, 0]),
    (libc::SYS_setresgid, [12345, 12345, 12345, 0]),
    (libc::SYS_setgroups, [0, 0, 0, 0]),
    (libc::SYS_capset, [0, 0, 0, 0]),
    (
        libc::SYS_personality,
        [libc::ADDR_NO_RANDOMIZE as usize, 0, 0, 0],
    ),
    (libc::SYS_seccomp, [1, 0, 0, 0]),
    (libc::SYS_landlock_restrict_self, [0, 0, 0, 0]),
    (libc::SYS_ioprio_set, [1, 0, 3 << 13, 0]),
    (libc::SYS_set_mempolicy, [1, 0, 0, 0]),
    (legacy::IOPL, [3, 0, 0, 0]),
    (legacy::IOPERM, [0x80, 1, 1, 0]),
    (libc::SYS_keyctl, [1, 0, 0, 0]),
    (libc::SYS_set_robust_list, [0, 24, 0, 0]),
    (legacy::ARCH_PRCTL, [0x1012, 0, 0, 0]),
    (
        libc::SYS_prctl,
        [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0],
    ),
    (
        libc::SYS_prctl,
        [libc::PR_SET_TIMERSLACK as usize, 77, 0, 0],
    ),
];

// linux/prctl.h
const PR_SVE_SET_VL: c_int = 50;
const PR_SET_SPECULATION_CTRL: c_int = 53;
const PR_PAC_RESET_KEYS: c_int = 54;
const PR_SET_TAGGED_ADDR_CTRL: c_int = 55;
const PR_PAC_SET_ENABLED_KEYS: c_int = 60;
const PR_SME_SET_VL: c_int = 63;
const PR_SET_SHADOW_STACK_STATUS: c_int = 75;

/// The options of `prctl` that are.
const OPTIONS: [c_int; 16] = [
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_SET_SECCOMP,
    libc::PR_CAPBSET_DROP,
    libc::PR_SET_SECUREBITS,
    libc::PR_SET_KEEPCAPS,
    libc::PR_CAP_AMBIENT,
    libc::PR_SET_TSC,
    PR_SET_SPECULATION_CTRL,
    libc::PR_SET_TIMERSLACK,
    libc::PR_MCE_KILL,
    PR_SVE_SET_VL,
    PR_PAC_RESET_KEYS,
    PR_SET_TAGGED_ADDR_CTRL,
    PR_PAC_SET_ENABLED_KEYS,
    PR_SME_SET_VL,
    PR_SET_SHADOW_STACK_STATUS,
];

#[watched]
fn what_would_change_the_carrier_is_refused() {
    on_virtual(|| {
        let before = carrier();
        for (number, [a, b, c, d]) in REFUSED {
            // SAFETY: it is refused.
            let result = unsafe { libc::syscall(number, a, b, c, d) };
            assert_eq!(checked(result), Err(libc::ENOTSUP), "{number}");
        }
        for option in OPTIONS {
            // SAFETY: it is refused.
            let result = unsafe { libc::prctl(option, 2, 0, 0, 0) };
            assert_eq!(checked(result), Err(libc::ENOTSUP), "{option}");
        }
        // SAFETY: it is refused.
        let results = unsafe {
            [
                libc::unshare(libc::CLONE_FS),
                libc::setns(0, 0),
                libc::personality(libc::ADDR_NO_RANDOMIZE as c_ulong),
                capset(ptr::null_mut(), ptr::null()),
                iopl(3),
                ioperm(0x80, 1, 1),
                arch_prctl(0x1012, 0),
                __arch_prctl(0x1012, 0),
            ]
        };
        assert!(
            results
                .map(checked)
                .iter()
                .all(|&it| it == Err(libc::ENOTSUP))
        );
        // SAFETY: numbers.
        unsafe {
            assert_eq!(setfsuid(12345), libc::geteuid() as c_int);
            assert_eq!(setfsuid(!0), libc::geteuid() as c_int);
            assert_eq!(setfsgid(12345), libc::getegid() as c_int);
            assert_eq!(setfsgid(!0), libc::getegid() as c_int);
            let rseq = libc::syscall(libc::SYS_rseq, 0, 0, 0, 0);
            assert_eq!(checked(rseq), Err(libc::ENOSYS));
        }
        assert_eq!(carrier(), before);
    });
}

/// Returns some of the state of this OS thread.
fn carrier() -> [isize; 5] {
    let ask = |option: c_int| sys::inline(libc::SYS_prctl, option as usize, 0, 0, 0, 0);
    [
        ask(libc::PR_GET_NO_NEW_PRIVS),
        ask(libc::PR_GET_TIMERSLACK),
        ask(libc::PR_GET_SECUREBITS),
        ask(libc::PR_GET_SECCOMP),
        sys::inline(libc::SYS_personality, !0, 0, 0, 0, 0),
    ]
}

/// The tracer would be a carrier: the caller, on another one, could not let the tracee go on.
#[watched(alone)]
fn tracing_is_refused_before_it_hangs() {
    on_virtual(|| {
        // SAFETY: a child that only makes system calls.
        unsafe {
            let attached = libc::ptrace(libc::PTRACE_ATTACH, libc::getppid(), 0_usize, 0_usize);
            assert_eq!(checked(attached), Err(libc::ENOTSUP));
            let child = libc::fork();
            if child == 0 {
                let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0_usize, 0_usize);
                libc::_exit(i32::from(checked(traced) != Err(libc::ENOTSUP)));
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
    });
    // SAFETY: a child that only makes system calls. A platform thread's child may.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0_usize, 0_usize);
            libc::raise(libc::SIGSTOP);
            libc::_exit(0);
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFSTOPPED(status));
        assert_eq!(libc::ptrace(libc::PTRACE_CONT, child, 0_usize, 0_usize), 0);
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0);
    }
}

#[watched]
fn what_only_asks_is_answered() {
    on_virtual(|| {
        // SAFETY: queries.
        unsafe {
            assert!(checked(libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)).is_ok());
            assert!(checked(libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0)).is_ok());
            assert!(checked(libc::personality(0xffff_ffff)).is_ok());
            let result = libc::syscall(libc::SYS_set_mempolicy, 0, 0, 0);
            assert_ne!(checked(result), Err(libc::ENOTSUP));
            let key = libc::syscall(libc::SYS_pkey_alloc, 0, 0);
            assert_ne!(checked(key), Err(libc::ENOTSUP));
        }
    });
}

#[watched]
fn a_platform_thread_may_change_itself() {
    child::isolated(&[], || {
        on_virtual(|| ()); // There is a runtime.
        std::thread::spawn(|| {
            // SAFETY: numbers, for this thread alone.
            unsafe {
                assert_eq!(libc::prctl(libc::PR_SET_TIMERSLACK, 77, 0, 0, 0), 0);
                assert_eq!(libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0), 77);
                assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
                assert_eq!(libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
                assert_eq!(checked(libc::unshare(libc::CLONE_FS)), Ok(0));
            }
        })
        .join()
        .unwrap();
    });
}

#[watched]
fn the_refusal_is_told_once() {
    if child::is_here() {
        return on_virtual(|| {
            for _ in 0..3 {
                // SAFETY: it is refused.
                unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            }
        });
    }
    let output = child::run(&[]);
    let text = String::from_utf8_lossy(&output.stderr);
    let told = text.matches("may not change its `no_new_privs`").count();
    assert_eq!(told, 1, "{}", child::report(&output));
}
