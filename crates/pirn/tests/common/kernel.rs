//! What the kernel can do, or an emulator that stands for it. A test asks before it does something
//! that an emulator of system calls lacks; where the answer is no, the reason is printed.

use std::fmt::Display;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::{fs, ptr};

use libc::{c_int, c_long, c_void};

use super::skip;
use super::sys::{check, inline, mask, waitpid};

/// Returns whether a process can have the kernel answer its system calls.
pub fn has_seccomp() -> bool {
    const SECCOMP_GET_ACTION_AVAIL: c_int = 2; // linux/seccomp.h
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: a query with a valid pointer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    say(
        result == 0,
        "there are no filters of system calls (seccomp)",
    )
}

/// Returns whether a new process can use its parent's memory until it executes a program: only then
/// can `posix_spawn` tell that there is no such program.
pub fn has_vfork() -> bool {
    static SHARED: AtomicBool = AtomicBool::new(false);
    extern "C" fn run(_: *mut c_void) -> c_int {
        SHARED.store(true, SeqCst);
        0
    }
    let mut stack = vec![0u128; 4096];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: a stack of its own, for a function that needs little of it; the parent waits.
    let child = unsafe {
        libc::clone(
            run,
            stack.as_mut_ptr_range().end.cast(),
            flags,
            ptr::null_mut(),
        )
    };
    waitpid(check(child).unwrap()).unwrap();
    say(
        SHARED.load(SeqCst),
        "a new process cannot use its parent's memory (vfork)",
    )
}

/// Returns whether a thread can have restartable sequences. Where not, libc ends the process if one
/// of its own functions starts a thread for a virtual thread, whose area for them is blank.
pub fn has_rseq() -> bool {
    let result = inline(libc::SYS_rseq, 0, 0, 0, 0, 0);
    say(
        result != -(libc::ENOSYS as isize),
        "there are no restartable sequences (rseq)",
    )
}

/// Returns whether the number of an error comes with a signal that is sent with one: the runtime
/// notes there what it has changed.
pub fn passes_errno_of_signals() -> bool {
    const NUMBER: c_int = 77;
    let signal = libc::SIGUSR2;
    let set = mask(libc::SIG_BLOCK, signal).unwrap();
    // SAFETY: valid structures; the signal comes to this thread, which blocks it.
    let number = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        (info.si_signo, info.si_code, info.si_errno) = (signal, libc::SI_QUEUE, NUMBER);
        let [process, thread] = [libc::getpid(), libc::gettid()].map(|id| id as usize);
        let place = (&raw const info).addr();
        let number = libc::SYS_rt_tgsigqueueinfo;
        let sent = inline(number, process, thread, signal as usize, place, 0);
        assert_eq!(sent, 0);
        assert_eq!(libc::sigwaitinfo(&set, &mut info), signal);
        info.si_errno
    };
    mask(libc::SIG_UNBLOCK, signal).unwrap();
    say(
        number == NUMBER,
        "signals come without the number of an error that they are sent with",
    )
}

/// Returns whether a read that finds the end does not care for its buffer: so the runtime tells
/// whether a FIFO has a writer.
pub fn reads_the_end_first() -> bool {
    static CONSTANT: u8 = 0;
    let (reader, _) = std::io::pipe().unwrap();
    let place = (&raw const CONSTANT).addr();
    let result = inline(libc::SYS_read, reader.as_raw_fd() as usize, place, 1, 0, 0);
    say(
        result == 0,
        "a read looks at its buffer before it looks for the end",
    )
}

/// Returns whether the kernel keeps a limit of the address space. A child tries it.
pub fn limits_address_space() -> bool {
    let limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: one valid `rlimit`; a mapping that is not used; the child only makes system calls.
    let status = unsafe {
        let child = check(libc::fork()).unwrap();
        if child == 0 {
            libc::setrlimit(libc::RLIMIT_AS, &limit);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let place = libc::mmap(ptr::null_mut(), 1 << 16, libc::PROT_NONE, flags, -1, 0);
            libc::_exit(i32::from(place != libc::MAP_FAILED));
        }
        waitpid(child).unwrap()
    };
    say(status == 0, "no limit of the address space is kept")
}

/// Returns whether the kernel shows in which system calls threads are, by their numbers here.
pub fn shows_calls() -> bool {
    say(
        has_own_numbers(),
        "calls in /proc have another processor's numbers",
    )
}

/// Returns whether an OS thread of this process sleeps in one of these system calls, or has ended.
/// Where the kernel does not show it, any sleep counts.
pub fn sleeps_in(id: impl Display, calls: &[c_long]) -> bool {
    let file = |name| fs::read_to_string(format!("/proc/self/task/{id}/{name}"));
    if has_own_numbers() {
        return file("syscall").map_or(true, |line| is_one_of(&line, calls));
    }
    file("stat").map_or(true, |line| line.contains(") S "))
}

/// Returns whether the number of this thread's own call is what it should be.
fn has_own_numbers() -> bool {
    fs::read_to_string("/proc/thread-self/syscall")
        .is_ok_and(|line| is_one_of(&line, &[libc::SYS_read]))
}

fn is_one_of(line: &str, calls: &[c_long]) -> bool {
    let number = line.split(' ').next().unwrap_or_default();
    calls.iter().any(|call| call.to_string() == number)
}

fn say(is_so: bool, otherwise: &str) -> bool {
    if !is_so {
        skip(otherwise);
    }
    is_so
}
