//! No signal that is sent to the process is lost: a thread that does not block it takes it, when
//! the signal comes or when the thread begins.

use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::{hint, mem, ptr};

use libc::{c_int, sigset_t};
use pirn::thread;

use super::children::in_process_of_its_own;
use crate::common::{on_virtual, watched};

const SIGNAL: c_int = libc::SIGUSR1;

/// Blocks or unblocks a signal for the running thread. Returns the set of this signal.
fn mask(how: c_int, signal: c_int) -> sigset_t {
    // SAFETY: a set, to which a signal is added.
    unsafe {
        let mut set: sigset_t = mem::zeroed();
        libc::sigaddset(&mut set, signal);
        assert_eq!(libc::pthread_sigmask(how, &set, ptr::null_mut()), 0);
        set
    }
}

fn send() {
    // SAFETY: a number.
    assert_eq!(unsafe { libc::kill(libc::getpid(), SIGNAL) }, 0);
}

/// The runtime's helper hands a signal to the thread that waits for it, while that takes another.
#[watched]
fn between_two_waits() {
    in_process_of_its_own(&[], || {
        let set = mask(libc::SIG_BLOCK, SIGNAL);
        on_virtual(move || {
            for _ in 0..3000 {
                send();
                // SAFETY: a set, and room for the answer.
                let info = unsafe {
                    let mut info = mem::zeroed::<libc::siginfo_t>();
                    assert_eq!(libc::sigwaitinfo(&set, &mut info), SIGNAL);
                    info
                };
                // SAFETY: of a signal that a process has sent.
                let told = (info.si_code, info.si_errno, unsafe { info.si_pid() });
                assert_eq!(told, (libc::SI_USER, 0, std::process::id() as i32));
            }
        });
    });
}

/// The only thread that takes the signal has been made, but has not begun.
#[watched]
fn before_the_thread_begins() {
    static SENT: AtomicBool = AtomicBool::new(false);
    static TAKEN: AtomicBool = AtomicBool::new(false);
    extern "C" fn take(_: c_int) {
        TAKEN.store(true, SeqCst);
    }
    in_process_of_its_own(
        &[("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")],
        || {
            // SAFETY: a handler that stores a word.
            unsafe { libc::signal(SIGNAL, take as *const () as usize) };
            let (mut begun, mut begin) = io::pipe().unwrap();
            let first = thread::spawn(move || {
                mask(libc::SIG_BLOCK, SIGNAL);
                thread::no_preemption(|| {
                    begin.write_all(&[0]).unwrap();
                    while !SENT.load(SeqCst) {
                        hint::spin_loop();
                    }
                });
            });
            begun.read_exact(&mut [0]).unwrap();
            let taker = thread::spawn(|| {
                while !TAKEN.load(SeqCst) {
                    thread::yield_now();
                }
            });
            mask(libc::SIG_BLOCK, SIGNAL);
            send();
            SENT.store(true, SeqCst);
            first.join().unwrap();
            taker.join().unwrap();
        },
    );
}

/// Carriers do not block `SIGPIPE`, so the kernel gives them one that main blocks.
#[watched]
fn a_broken_pipe_of_another_process() {
    in_process_of_its_own(&[], || {
        // SAFETY: the default action. Rust ignores the signal.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let set = mask(libc::SIG_BLOCK, libc::SIGPIPE);
        on_virtual(|| {});
        for _ in 0..20 {
            let kill = format!("kill -PIPE {}", std::process::id());
            let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
            assert!(status.success());
            let mut signal = 0;
            // SAFETY: a set, and room for the answer.
            assert_eq!(unsafe { libc::sigwait(&set, &mut signal) }, 0);
            assert_eq!(signal, libc::SIGPIPE);
        }
    });
}
