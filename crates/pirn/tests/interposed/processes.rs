//! Functions of libc that fork, that close many descriptors, and that wait for threads.

use std::ffi::CStr;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::{io, ptr};

use libc::{c_char, c_int};

use super::{checked, nowhere};
use crate::common::{block_then, child, most_carriers, on_virtual, watched};
use pirn::thread;

#[watched]
fn closing_all_from_one_on_wakes_who_reads() {
    unsafe extern "C" {
        fn closefrom(first: c_int);
    }
    const FIRST: c_int = 700; // above all that the runtime and the harness have
    child::isolated(&[], || {
        let (reader, _writer) = io::pipe().unwrap();
        // SAFETY: no pointers. Nothing else uses the new number.
        let fd = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST) };
        assert!(fd >= FIRST);
        let read = |_| {
            let mut byte = 0u8;
            // SAFETY: room for one.
            let result = unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
            assert_eq!(checked(result as i64), Err(libc::EBADF));
        };
        block_then(most_carriers() + 4, read, || {
            thread::sleep(std::time::Duration::from_millis(20)); // so that most of them park
            // SAFETY: no pointers.
            unsafe { closefrom(FIRST) };
        });
        // SAFETY: a query.
        let result = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        assert_eq!(checked(result), Err(libc::EBADF));
    });
}

#[watched]
fn a_child_on_a_terminal_of_its_own() {
    let f = || {
        let mut master = 0;
        let none = ptr::null_mut();
        // SAFETY: room for the descriptor; the child makes system calls only.
        let pid = unsafe { libc::forkpty(&mut master, none, ptr::null(), ptr::null()) };
        if pid == 0 {
            // SAFETY: a buffer of that length; the process ends here.
            unsafe {
                libc::write(1, b"hello\n".as_ptr().cast(), 6);
                libc::_exit(7);
            }
        }
        assert!(checked(pid).is_ok());
        // SAFETY: just opened.
        let mut master = unsafe { std::fs::File::from_raw_fd(master) };
        let mut text = [0; 7];
        master.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"hello\r\n");
        let mut status = 0;
        // SAFETY: room for the status.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7);
    };
    f();
    on_virtual(f);
}

#[watched]
fn a_daemon_goes_on() {
    if !child::is_here() {
        let output = child::run(&[]);
        assert!(output.status.success(), "{}", child::report(&output));
        return;
    }
    let (mut reader, mut writer) = io::pipe().unwrap();
    let f = move || {
        // The parent ends in libc, so a child of this process becomes the daemon.
        // SAFETY: the child of the fork makes system calls, and writes to a pipe.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                if libc::daemon(0, 0) == 0 {
                    let _ = writer.write_all(b"here");
                }
                libc::_exit(0);
            }
            let mut status = 1;
            assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
            assert_eq!(status, 0);
        }
        drop(writer);
    };
    on_virtual(f);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "here");
}

#[watched]
fn a_thread_cannot_join_itself() {
    // SAFETY: no pointers that are followed.
    let f = || unsafe { libc::pthread_join(libc::pthread_self(), ptr::null_mut()) };
    assert_eq!(std::thread::spawn(f).join().unwrap(), libc::EDEADLK);
    assert_eq!(on_virtual(f), libc::EDEADLK);
}

#[watched]
fn waiting_for_any_child() {
    unsafe extern "C" {
        fn __wait(status: *mut c_int) -> c_int;
        fn __vfork() -> c_int;
    }
    // In a process of its own: it would take the children of other tests.
    child::isolated(&[], || {
        let f = || {
            // SAFETY: the child ends at once; room for the status.
            unsafe {
                let pid = __vfork();
                if pid == 0 {
                    libc::_exit(3);
                }
                let mut status = 0;
                assert_eq!(__wait(&mut status), pid);
                assert_eq!(libc::WEXITSTATUS(status), 3);
                assert_eq!(checked(__wait(&mut status)), Err(libc::ECHILD));
            }
        };
        f();
        on_virtual(f);
    });
}

#[watched]
fn streams_under_glibcs_own_names() {
    unsafe extern "C" {
        fn _IO_fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE;
        fn _IO_popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE;
        fn _IO_fclose(stream: *mut libc::FILE) -> c_int;
    }
    let f = || {
        let mut line = [0u8; 16];
        // SAFETY: texts, streams that are open, and a buffer of that length.
        unsafe {
            let stream = _IO_fopen(c"/proc/self/comm".as_ptr(), c"r".as_ptr());
            assert!(!libc::fgets(line.as_mut_ptr().cast(), 16, stream).is_null());
            assert_eq!(_IO_fclose(stream), 0);
            let stream = _IO_popen(c"echo hello".as_ptr(), c"r".as_ptr());
            assert!(!libc::fgets(line.as_mut_ptr().cast(), 16, stream).is_null());
            assert_eq!(CStr::from_bytes_until_nul(&line).unwrap(), c"hello\n");
            assert_eq!(libc::pclose(stream), 0);
        }
    };
    f();
    on_virtual(f);
}

/// The kernel's view of a status call by its alias.
#[watched]
fn file_systems_under_glibcs_own_name() {
    unsafe extern "C" {
        fn __statfs(path: *const c_char, out: *mut libc::statfs) -> c_int;
    }
    let f = || {
        // SAFETY: a path and room for the answer; the kernel copes with any address.
        unsafe {
            let mut out: libc::statfs = std::mem::zeroed();
            assert_eq!(__statfs(c"/proc".as_ptr(), &mut out), 0);
            assert_eq!(out.f_type, libc::PROC_SUPER_MAGIC);
            let bad = __statfs(nowhere(), &mut out);
            assert_eq!(checked(bad), Err(libc::EFAULT));
        }
    };
    f();
    on_virtual(f);
}
