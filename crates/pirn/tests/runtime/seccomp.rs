//! System calls that a seccomp profile forbids: those with a substitute work, and the others fail
//! with an error that names them.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::process::Command;
use std::time::Duration;

use crate::common::kernel::has_seccomp;
use crate::common::sys::{check, inline};
use crate::common::{child, on_virtual, pipes, watched};
use libc::{c_long, c_ulong, sock_filter, sock_fprog};
use pirn::thread::{self, Builder};

/// One instruction of a filter, without a jump.
fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Loads a word of the filter's input: the number of the call is at byte 0, the low half of its
/// argument `n` at byte 16 + 8 `n`.
pub fn load(byte: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, byte)
}

/// Goes on if the loaded word is `k`, else behind the next `skipped` instructions.
pub fn unless_equal(k: u32, skipped: u8) -> sock_filter {
    sock_filter {
        jf: skipped,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k)
    }
}

pub fn answer(errno: i32) -> sock_filter {
    let refuse = libc::SECCOMP_RET_ERRNO | errno as u32;
    statement(libc::BPF_RET | libc::BPF_K, refuse)
}

/// Makes the kernel answer these calls with `EPERM`, as container profiles do with calls that are
/// newer than the profile. This applies to the calling thread and the threads that it starts, or,
/// with `SECCOMP_FILTER_FLAG_TSYNC` among the flags, to all threads.
fn forbid_with(calls: &[c_long], flags: c_ulong) {
    let mut filter = vec![load(0)];
    for &call in calls {
        filter.extend([unless_equal(call as u32, 1), answer(libc::EPERM)]);
    }
    install(filter, flags);
}

/// Installs a filter that allows what it does not answer.
pub fn install(mut filter: Vec<sock_filter>, flags: c_ulong) {
    let allow = libc::SECCOMP_RET_ALLOW;
    filter.push(statement(libc::BPF_RET | libc::BPF_K, allow));
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: a valid program, which the kernel copies.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)).unwrap();
        let operation = libc::SECCOMP_SET_MODE_FILTER;
        let program = &raw const program;
        check(libc::syscall(libc::SYS_seccomp, operation, flags, program)).unwrap();
    }
}

fn forbid(calls: &[c_long]) {
    forbid_with(calls, 0);
}

#[watched]
fn events_and_timers_arrive_without_epoll_pwait2() {
    if !has_seccomp() {
        return;
    }
    child::isolated(&[], || {
        forbid(&[libc::SYS_epoll_pwait2]);
        let pipes = pipes(100);
        thread::scope(|scope| {
            for (reader, _) in &pipes {
                let mut reader = reader;
                scope.spawn(move || {
                    assert_eq!(reader.read(&mut [0; 2]).unwrap(), 1);
                    thread::sleep(Duration::from_millis(1));
                });
            }
            scope.spawn(|| crate::common::write_to_all(&pipes));
        });
    });
}

#[watched]
fn foreign_event_loops_work_without_epoll_pwait2() {
    if !has_seccomp() {
        return;
    }
    child::isolated(&[], || {
        forbid(&[libc::SYS_epoll_pwait2]);
        let wait = || {
            let epoll = crate::common::sys::own(unsafe_epoll_create()).unwrap();
            epoll_wait_in_vain(&epoll);
        };
        wait();
        on_virtual(wait);
    });
}

/// As before Linux 5.11: what reads the time in the kernel's place must not trust the pointer.
#[watched]
fn a_bad_time_of_epoll_pwait2_is_an_error_without_the_call() {
    if !has_seccomp() {
        return;
    }
    const BAD: libc::timespec = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000_000,
    };
    child::isolated(&[], || {
        forbid(&[libc::SYS_epoll_pwait2]);
        let fails = || {
            let epoll = crate::common::sys::own(unsafe_epoll_create()).unwrap();
            let error = |time: *const libc::timespec| {
                let (number, fd) = (libc::SYS_epoll_pwait2, epoll.as_raw_fd());
                let mut event = libc::epoll_event { events: 0, u64: 0 };
                // SAFETY: room for one event; the time is checked.
                let result = unsafe { libc::syscall(number, fd, &raw mut event, 1, time, 0, 8) };
                assert_eq!(result, -1);
                std::io::Error::last_os_error().raw_os_error()
            };
            let nowhere = std::ptr::without_provenance(16);
            assert_eq!(error(nowhere), Some(libc::EFAULT));
            assert_eq!(error(&BAD), Some(libc::EINVAL));
        };
        fails();
        on_virtual(fails);
    });
}

fn unsafe_epoll_create() -> RawFd {
    // SAFETY: no pointers.
    unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }
}

fn epoll_wait_in_vain(epoll: &impl AsRawFd) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event.
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), &mut event, 1, 5) };
    assert_eq!(check(count).unwrap(), 0);
}

#[watched]
fn reading_and_writing_work_without_the_calls_that_take_flags() {
    if !has_seccomp() {
        return;
    }
    child::isolated(&[], || {
        forbid(&[
            libc::SYS_preadv2,
            libc::SYS_pwritev2,
            libc::SYS_openat2,
            libc::SYS_statx,
        ]);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let read = thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        on_virtual(move || {
            thread::sleep(Duration::from_millis(1));
            writer.write_all(b"through a pipe").unwrap();
        });
        assert_eq!(read.join().unwrap(), "through a pipe");
        let folder = crate::common::TempDir::new("seccomp");
        let path = folder.join("file");
        on_virtual(move || {
            fs::write(&path, b"a file").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"a file");
        });
    });
}

#[watched]
fn a_start_that_is_forbidden_says_which_call_and_why() {
    if !has_seccomp() {
        return;
    }
    let calls = [
        ("eventfd2", libc::SYS_eventfd2),
        ("epoll_create1", libc::SYS_epoll_create1),
        ("epoll_pwait", libc::SYS_epoll_pwait),
    ];
    let each = calls.map(|(name, _)| [("FORBIDDEN", name)]);
    child::isolated_each(each, || {
        let name = std::env::var("FORBIDDEN").unwrap();
        let (_, number) = calls.into_iter().find(|(call, _)| *call == name).unwrap();
        forbid(&[number, libc::SYS_epoll_pwait2]);
        let error = Builder::new().spawn(|| ()).unwrap_err().to_string();
        assert!(error.contains(&name), "{error}");
        assert!(error.contains("seccomp"), "{error}");
        assert!(!error.contains("ulimit"), "{error}");
    });
}

#[watched]
fn a_start_without_descriptors_left_says_so() {
    child::isolated(&[], || {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: reads one `rlimit`.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }).unwrap();
        let error = Builder::new().spawn(|| ()).unwrap_err().to_string();
        assert!(error.contains("ulimit -n"), "{error}");
        assert!(!error.contains("seccomp"), "{error}");
    });
}

#[watched]
fn without_its_epoll_instance_the_runtime_ends_and_says_why() {
    if child::is_here() {
        on_virtual(|| ());
        for entry in fs::read_dir("/proc/self/fd").unwrap() {
            let path = entry.unwrap().path();
            if fs::read_link(&path).is_ok_and(|to| to.ends_with("anon_inode:[eventpoll]")) {
                let number: RawFd = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
                assert_eq!(inline(libc::SYS_close, number as usize, 0, 0, 0, 0), 0);
            }
        }
        on_virtual(|| thread::sleep(Duration::from_secs(3600)));
    }
    let output = child::run(&[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        error.contains("pirn: fatal: waiting for events failed"),
        "{error}"
    );
    assert!(error.contains("Bad file descriptor"), "{error}");
}

#[watched]
fn a_call_for_which_there_is_no_thread_says_so_and_is_made() {
    if !has_seccomp() {
        return;
    }
    if child::is_here() {
        let mut child = on_virtual(|| Command::new("sleep").arg("3").spawn().unwrap());
        let threads = [libc::SYS_clone, libc::SYS_clone3];
        forbid_with(&threads, libc::SECCOMP_FILTER_FLAG_TSYNC);
        on_virtual(move || {
            let mut status = 0;
            // SAFETY: room for a status. For any child: that takes a platform thread.
            let pid = check(unsafe { libc::waitpid(-1, &mut status, libc::WUNTRACED) }).unwrap();
            assert_eq!((pid as u32, status), (child.id(), 0));
            assert!(child.wait().is_err()); // It has been waited for.
        });
        return;
    }
    let output = child::run(&[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.contains("no more platform threads"), "{error}");
}

/// A signal that comes in the attempt ends it with `EINTR`: for a semaphore also one whose handler
/// has `SA_RESTART`, such as the runtime's. Here each attempt ends so: it has a timeout, and the
/// wait has none.
#[watched]
fn a_wait_for_a_semaphore_outlives_a_signal_in_its_attempt() {
    if !has_seccomp() {
        return;
    }
    child::isolated(&[], || {
        // SAFETY: no pointers.
        let semaphores = check(unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) }).unwrap();
        let operate = move |change| {
            let mut operation = libc::sembuf {
                sem_num: 0,
                sem_op: change,
                sem_flg: 0,
            };
            // SAFETY: one operation.
            check(unsafe { libc::semop(semaphores, &mut operation, 1) })
        };
        install(
            vec![
                load(0),
                unless_equal(libc::SYS_semtimedop as u32, 4),
                load(16 + 8 * 3),
                unless_equal(0, 1),
                statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
                answer(libc::EINTR),
            ],
            0,
        );
        let taken = thread::spawn(move || operate(-1));
        let given = thread::spawn(move || operate(1));
        let results = [taken.join().unwrap(), given.join().unwrap()];
        // SAFETY: no pointers.
        check(unsafe { libc::semctl(semaphores, 0, libc::IPC_RMID) }).unwrap();
        for result in results {
            result.unwrap();
        }
    });
}
