//! Child processes, signals and libraries: the functions that `std` does not call.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::{mem, ptr};

use libc::{c_char, c_int, c_void, pid_t, sigset_t};

use super::{checked, everywhere};
use crate::common::kernel::has_vfork;
use crate::common::{child, on_virtual, watched};

unsafe extern "C" {
    fn _Fork() -> pid_t;
    fn vfork() -> pid_t;
    fn wait3(status: *mut c_int, options: c_int, usage: *mut libc::rusage) -> pid_t;
    fn pthread_sigqueue(thread: libc::pthread_t, signal: c_int, value: libc::sigval) -> c_int;
}

#[watched]
fn forking_and_waiting_by_all_names() {
    // By itself: `wait3` would take the children of other tests.
    child::isolated(&[], || {
        let f = || {
            // SAFETY: the children end at once; room for the answers.
            unsafe {
                let mut usage: libc::rusage = mem::zeroed();
                let child = |fork: &dyn Fn() -> pid_t| {
                    let pid = fork();
                    if pid == 0 {
                        libc::_exit(3);
                    }
                    pid
                };
                let mut status = 0;
                let pid = child(&|| vfork());
                assert_eq!(wait3(&mut status, 0, &mut usage), pid);
                assert_eq!(libc::WEXITSTATUS(status), 3);
                let pid = child(&|| libc::fork());
                assert_eq!(libc::wait(&mut status), pid);
                assert_eq!(libc::WEXITSTATUS(status), 3);
                let pid = child(&|| _Fork());
                assert_eq!(libc::wait4(pid, &mut status, 0, &mut usage), pid);
                assert_eq!(libc::WEXITSTATUS(status), 3);
                let pid = child(&|| libc::fork());
                let mut info: libc::siginfo_t = mem::zeroed();
                let waited = libc::waitid(libc::P_PID, pid as u32, &mut info, libc::WEXITED);
                assert_eq!(checked(waited), Ok(0));
                assert_eq!((info.si_pid(), info.si_status()), (pid, 3));
            }
        };
        f();
        on_virtual(f);
    });
}

#[watched]
fn spawning() {
    let is_told = has_vfork();
    everywhere(move || {
        let arguments = [c"sh", c"-c", c"exit 4"].map(|text| text.as_ptr().cast_mut());
        let [a, b, c] = arguments;
        let arguments = [a, b, c, ptr::null_mut()];
        let environment: [*mut c_char; 1] = [ptr::null_mut()];
        let (arguments, environment) = (arguments.as_ptr(), environment.as_ptr());
        let wait = |pid: pid_t| {
            let mut status = 0;
            // SAFETY: room for the status.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            assert_eq!(libc::WEXITSTATUS(status), 4);
        };
        // SAFETY: paths and lists that end with null.
        unsafe {
            let (path, file, mut pid) = (c"/bin/sh".as_ptr(), c"sh".as_ptr(), 0);
            let (none, no) = (ptr::null(), ptr::null());
            assert_eq!(
                libc::posix_spawn(&mut pid, path, none, no, arguments, environment),
                0
            );
            wait(pid);
            assert_eq!(
                libc::posix_spawnp(&mut pid, file, none, no, arguments, environment),
                0
            );
            wait(pid);
            if is_told {
                let path = c"/none".as_ptr();
                let error = libc::posix_spawn(&mut pid, path, none, no, arguments, environment);
                assert_eq!(error, libc::ENOENT);
            }
            assert_eq!(libc::WEXITSTATUS(libc::system(c"exit 5".as_ptr())), 5);
        }
    });
}

/// Runs `f` in a child process without other threads.
pub fn in_process_of_its_own(settings: &[(&str, &str)], f: impl FnOnce()) {
    child::isolated(settings, || {
        // SAFETY: this process has not started the runtime, nor anything that holds locks.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
                libc::_exit(result.is_err().into());
            }
            let mut status = 1;
            assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
            assert_eq!(status, 0);
        }
    });
}

#[watched]
fn waiting_for_signals() {
    const SIGNAL: c_int = libc::SIGUSR1;
    // The signal must be blocked in all threads, so this process's first thread is this one.
    in_process_of_its_own(&[], || {
        // SAFETY: sets, and room for the answers. All threads to come inherit the mask.
        unsafe {
            let mut set: sigset_t = mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, SIGNAL);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
            let send = || assert_eq!(libc::kill(libc::getpid(), SIGNAL), 0);
            let f = move || {
                let (mut signal, mut info) = (0, mem::zeroed::<libc::siginfo_t>());
                send();
                assert_eq!(libc::sigwait(&set, &mut signal), 0);
                assert_eq!(signal, SIGNAL);
                send();
                assert_eq!(libc::sigwaitinfo(&set, &mut info), SIGNAL);
                assert_eq!(info.si_pid(), libc::getpid());
                send();
                let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
                assert_eq!(libc::sigtimedwait(&set, &mut info, &time(100, 0)), SIGNAL);
                extern "C" fn handle(_: c_int) {}
                libc::signal(SIGNAL, handle as *const () as usize);
                let mut none: sigset_t = mem::zeroed();
                libc::sigemptyset(&mut none);
                send();
                assert_eq!(checked(libc::sigsuspend(&none)), Err(libc::EINTR));
                let short = [time(0, 0), time(0, 1_000_000)];
                for time in short {
                    let result = libc::sigtimedwait(&set, &mut info, &time);
                    assert_eq!(checked(result), Err(libc::EAGAIN));
                }
            };
            f();
            on_virtual(f);
        }
    });
}

#[watched]
fn a_signal_with_a_value_to_oneself() {
    static VALUE: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handle(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: the signal comes with a value.
        VALUE.fetch_add(unsafe { (*info).si_value().sival_ptr } as usize, SeqCst);
    }
    child::isolated(&[], || {
        // SAFETY: a handler that only counts; the running thread.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, ptr::null_mut()), 0);
            let f = || {
                let value = libc::sigval {
                    sival_ptr: 5 as *mut c_void,
                };
                assert_eq!(
                    pthread_sigqueue(libc::pthread_self(), libc::SIGUSR2, value),
                    0
                );
            };
            f();
            on_virtual(f);
        }
        assert_eq!(VALUE.load(SeqCst), 10);
    });
}

#[watched]
fn libraries_by_all_names() {
    everywhere(|| {
        // SAFETY: libraries that do nothing at their start; a C function.
        unsafe {
            let name = c"libm.so.6".as_ptr();
            let open: [&dyn Fn() -> *mut c_void; 2] =
                [&|| libc::dlopen(name, libc::RTLD_NOW), &|| {
                    libc::dlmopen(libc::LM_ID_BASE, name, libc::RTLD_NOW)
                }];
            for open in open {
                let library = open();
                assert!(!library.is_null());
                let cos = libc::dlsym(library, c"cos".as_ptr());
                let cos: extern "C" fn(f64) -> f64 = mem::transmute(cos);
                assert_eq!(cos(0.0), 1.0);
                assert_eq!(libc::dlclose(library), 0);
            }
            assert!(libc::dlopen(c"libnone.so".as_ptr(), libc::RTLD_NOW).is_null());
            let text = CStr::from_ptr(libc::dlerror()).to_str().unwrap();
            assert!(text.contains("libnone.so"));
        }
    });
}
