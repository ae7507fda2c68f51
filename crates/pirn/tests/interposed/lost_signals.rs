//! No signal is lost: one that is sent to the process is taken by a thread that does not block it,
//! when the signal comes or when the thread begins, and one to a thread is taken before its end.

use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;
use std::{hint, mem, ptr};

use libc::c_int;
use pirn::thread;

use super::children::in_process_of_its_own;
use crate::common::kernel::passes_errno_of_signals;
use crate::common::{on_virtual, sys, watched};

const SIGNAL: c_int = libc::SIGUSR1;

fn send() {
    // SAFETY: a number.
    assert_eq!(unsafe { libc::kill(libc::getpid(), SIGNAL) }, 0);
}

/// The runtime's helper hands a signal to the thread that waits for it, while that takes another.
#[watched]
fn between_two_waits() {
    if !passes_errno_of_signals() {
        return;
    }
    in_process_of_its_own(&[], || {
        let set = sys::mask(libc::SIG_BLOCK, SIGNAL).unwrap();
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
                sys::mask(libc::SIG_BLOCK, SIGNAL).unwrap();
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
            sys::mask(libc::SIG_BLOCK, SIGNAL).unwrap();
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
        let set = sys::mask(libc::SIG_BLOCK, libc::SIGPIPE).unwrap();
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

static TAKEN: AtomicUsize = AtomicUsize::new(0);
extern "C" fn count(_: c_int) {
    TAKEN.fetch_add(1, SeqCst);
}

/// The only thread that takes the signal ends meanwhile: it has taken it, or the process still has
/// it.
#[watched]
fn at_the_end_of_the_thread() {
    in_process_of_its_own(&[], || {
        // SAFETY: a handler that counts.
        unsafe { libc::signal(SIGNAL, count as *const () as usize) };
        let set = sys::mask(libc::SIG_BLOCK, SIGNAL).unwrap();
        for round in 1..=2000 {
            let (mut begun, mut begin) = io::pipe().unwrap();
            let taker = thread::spawn(move || {
                sys::mask(libc::SIG_UNBLOCK, SIGNAL).unwrap();
                begin.write_all(&[0]).unwrap();
                (0..round % 100).for_each(|_| hint::spin_loop());
            });
            begun.read_exact(&mut [0]).unwrap();
            // Not by `kill`, of which the runtime knows: as from another process.
            let (process, signal) = (std::process::id() as usize, SIGNAL as usize);
            assert_eq!(sys::inline(libc::SYS_kill, process, signal, 0, 0, 0), 0);
            if round % 2 == 0 {
                taker.join().unwrap();
            }
            while TAKEN.load(SeqCst) < round {
                let time = sys::timespec(Duration::from_millis(1));
                // SAFETY: a set and a time.
                if unsafe { libc::sigtimedwait(&set, ptr::null_mut(), &time) } == SIGNAL {
                    TAKEN.fetch_add(1, SeqCst);
                }
            }
            assert_eq!(TAKEN.load(SeqCst), round);
        }
    });
}

/// A signal to a thread, sent before the thread's last step: its handler runs.
#[watched(alone)]
fn before_the_end_of_the_thread() {
    sys::on_signal(SIGNAL, libc::SA_RESTART, count);
    for round in 1..=2000 {
        let (told, tell) = mpsc::channel();
        static SENT: AtomicUsize = AtomicUsize::new(0);
        let taker = thread::spawn(move || {
            // SAFETY: no arguments.
            told.send(unsafe { libc::pthread_self() }).unwrap();
            while SENT.load(SeqCst) < round {
                hint::black_box(vec![0_u8; 100]); // In the C library, mostly.
            }
        });
        let id = tell.recv().unwrap();
        // SAFETY: it waits for what comes below.
        assert_eq!(unsafe { libc::pthread_kill(id, SIGNAL) }, 0);
        SENT.store(round, SeqCst);
        taker.join().unwrap();
        assert_eq!(TAKEN.load(SeqCst), round);
    }
}
