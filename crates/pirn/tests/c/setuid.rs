//! `setuid` and its family: glibc signals every thread it knows and waits for each to answer,
//! which must work while virtual threads are mounted on the carriers.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::common::sys::check;
use crate::common::{carriers, child, on_virtual, skip, watched};
use pirn::thread;

/// Runs `body` on a virtual (or platform) thread while virtual threads compute on every carrier.
fn amid_computation(on_platform: bool, body: fn()) {
    let (over, started) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (over, started) = (&over, &started);
    thread::scope(|scope| {
        for _ in 0..2 * carriers() {
            scope.spawn(move || {
                started.fetch_add(1, SeqCst);
                while !over.load(SeqCst) {
                    // Mounted most of the time, but leaves room for `body`.
                    (0..20_000).for_each(|_| std::hint::spin_loop());
                    thread::yield_now();
                }
            });
        }
        while started.load(SeqCst) < 2 * carriers() {
            thread::yield_now();
        }
        let ended = if on_platform {
            std::thread::spawn(body).join()
        } else {
            thread::spawn(body).join()
        };
        over.store(true, SeqCst);
        assert!(ended.is_ok());
    });
}

/// Sets every identity to its present value.
fn set_all_identities() {
    // SAFETY: none of these touches memory.
    unsafe {
        let (user, group) = (libc::geteuid(), libc::getegid());
        for _ in 0..5 {
            check(libc::setresgid(group, group, group)).unwrap();
            check(libc::setregid(group, group)).unwrap();
            check(libc::setegid(group)).unwrap();
            check(libc::setgid(group)).unwrap();
            check(libc::setresuid(user, user, user)).unwrap();
            check(libc::setreuid(user, user)).unwrap();
            check(libc::seteuid(user)).unwrap();
            check(libc::setuid(user)).unwrap();
            assert_eq!((libc::geteuid(), libc::getegid()), (user, group));
        }
    }
}

#[watched]
fn a_virtual_thread_may_set_its_identity() {
    amid_computation(false, set_all_identities);
}

#[watched]
fn a_platform_thread_may_set_its_identity() {
    amid_computation(true, set_all_identities);
}

#[watched]
fn a_refused_change_is_an_error() {
    child::isolated(&[], || {
        amid_computation(false, || {
            // SAFETY: touches no memory.
            if unsafe { libc::geteuid() } == 0 {
                // SAFETY: touches no memory; this process is here for it alone.
                check(unsafe { libc::setresuid(12345, 12345, 12345) }).unwrap();
            }
            // SAFETY: touches no memory.
            let error = check(unsafe { libc::setresuid(0, 0, 0) }).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        });
    });
}

/// Returns the effective group of each OS thread of this process.
fn groups_of_tasks() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let group_of = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Gid:"))
            .unwrap();
        line.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    tasks.map(|task| group_of(task.unwrap())).collect()
}

#[watched]
fn a_change_reaches_every_os_thread() {
    const GROUP: u32 = 12345;
    // SAFETY: touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        skip("only root may take another group");
        return;
    }
    child::isolated(&[], || {
        // The tasks are looked at while the computing threads hold their carriers.
        amid_computation(false, || {
            // SAFETY: touches no memory; this process is here for it alone.
            check(unsafe { libc::setegid(GROUP) }).unwrap();
            let groups = groups_of_tasks();
            assert!(groups.len() > carriers());
            assert!(groups.iter().all(|group| *group == GROUP), "{groups:?}");
        });
        // SAFETY: touches no memory.
        assert!(on_virtual(|| unsafe { libc::getegid() } == GROUP));
    });
}
