//! Signals of the program beside preemption, which uses one of its own.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::hint;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

use super::preemption::{alone, beside};
use crate::common::processor::{skip_undefined, undefined};
use crate::common::sys::check;
use crate::common::watched;
use libc::{SIGILL, SIGURG, SIGUSR1, sigaction, sighandler_t};
use pirn::thread;

/// The number of times that the program's handlers have run.
static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: c_int) {
    HANDLED.fetch_add(1, SeqCst);
}

/// Returns how often the handler runs during `f`.
fn handled(f: impl FnOnce()) -> usize {
    let before = HANDLED.load(SeqCst);
    f();
    HANDLED.load(SeqCst) - before
}

fn action(handler: sighandler_t, flags: c_int) -> sigaction {
    // SAFETY: all zeros is a valid action.
    let mut action: sigaction = unsafe { zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    action
}

/// Installs an action and returns the one before.
fn install(signal: c_int, new: &sigaction) -> sigaction {
    let mut old = action(0, 0);
    // SAFETY: two actions; the handlers here may run at any time.
    check(unsafe { libc::sigaction(signal, new, &mut old) }).unwrap();
    old
}

/// Lets a thread sleep beside computing ones, so that there are preemptions.
fn sleep_for_a_while() {
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(1));
    }
}

#[watched]
fn a_handler_of_the_same_signal_gets_the_programs_signals_only() {
    alone(|| {
        let handler = count as extern "C" fn(c_int) as sighandler_t;
        let mut new = action(handler, libc::SA_NODEFER);
        // SAFETY: a valid set.
        unsafe { libc::sigaddset(&mut new.sa_mask, SIGUSR1) };
        install(SIGURG, &new);
        beside(3, hint::spin_loop, || {
            assert_eq!(handled(sleep_for_a_while), 0);
            // SAFETY: a handler is installed.
            let raised = handled(|| assert_eq!(unsafe { libc::raise(SIGURG) }, 0));
            assert_eq!(raised, 1);
            assert_eq!(handled(sleep_for_a_while), 0);
        });
        let old = install(SIGURG, &action(handler, libc::SA_RESETHAND));
        let flags = old.sa_flags & !0x0400_0000; // the C library's own SA_RESTORER
        assert_eq!((old.sa_sigaction, flags), (handler, libc::SA_NODEFER));
        // SAFETY: a valid set.
        assert_eq!(unsafe { libc::sigismember(&old.sa_mask, SIGUSR1) }, 1);
        beside(3, hint::spin_loop, || {
            // SAFETY: a handler is installed, and without one the signal is ignored.
            let raise = || assert_eq!(unsafe { libc::raise(SIGURG) }, 0);
            assert_eq!(handled(raise), 1);
            assert_eq!(handled(raise), 0);
            sleep_for_a_while();
        });
        // SAFETY: a handler is installed, and without one the signal is ignored.
        unsafe {
            assert_eq!(libc::signal(SIGURG, handler), libc::SIG_DFL);
            assert_eq!(handled(|| assert_eq!(libc::raise(SIGURG), 0)), 1);
            assert_eq!(libc::signal(SIGURG, libc::SIG_IGN), handler);
            assert_eq!(libc::signal(SIGURG, libc::SIG_DFL), libc::SIG_IGN);
        }
        beside(3, hint::spin_loop, sleep_for_a_while);
    });
}

#[watched]
fn the_mask_of_a_handler_is_as_the_program_set_it() {
    alone(|| {
        let handler = count as extern "C" fn(c_int) as sighandler_t;
        let mut with = action(handler, 0);
        // SAFETY: valid sets.
        unsafe {
            libc::sigaddset(&mut with.sa_mask, SIGURG);
            let has = |action: &sigaction| libc::sigismember(&action.sa_mask, SIGURG) == 1;
            install(SIGUSR1, &action(handler, 0));
            assert!(!has(&install(SIGUSR1, &with)));
            assert!(has(&install(SIGUSR1, &action(handler, 0))));
            assert!(!has(&install(SIGUSR1, &action(libc::SIG_DFL, 0))));
        }
    });
}

thread_local!(static NUMBER: Cell<usize> = const { Cell::new(0) });
/// Handlers that ended on another thread, or another alternative stack, than they began.
static MOVED: AtomicUsize = AtomicUsize::new(0);

/// Computes for longer than a short slice.
extern "C" fn compute(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    fn place() -> (usize, usize, c_int) {
        // SAFETY: a query.
        let stack = unsafe {
            let mut stack: libc::stack_t = zeroed();
            libc::sigaltstack(ptr::null(), &mut stack);
            stack
        };
        // SAFETY: no arguments.
        (NUMBER.get(), stack.ss_sp as usize, unsafe {
            libc::gettid()
        })
    }
    let before = place();
    for _ in 0..3_000 {
        hint::spin_loop();
    }
    MOVED.fetch_add(usize::from(place() != before), SeqCst);
    HANDLED.fetch_add(1, SeqCst);
    // SAFETY: the handler of an undefined instruction.
    unsafe { skip_undefined(context) };
}

/// Installs an action by the system call, as a program does that does not trust its C library.
fn install_by_number(signal: c_int, handler: sighandler_t, flags: c_int) {
    #[repr(C)]
    struct KernelAction {
        handler: sighandler_t,
        flags: u64,
        restorer: usize,
        mask: u64,
    }
    let mut known = KernelAction {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let number = libc::SYS_rt_sigaction;
    let none = ptr::null_mut::<c_void>();
    // SAFETY: valid actions. The restorer is libc's, of an action that was installed before.
    unsafe {
        check(libc::syscall(number, signal, none, &raw mut known, 8)).unwrap();
        known.handler = handler;
        known.flags = known.flags & 0x0400_0000 | flags as u64;
        known.mask = 0;
        check(libc::syscall(number, signal, &raw const known, none, 8)).unwrap();
    }
}

#[watched]
fn a_thread_is_not_preempted_in_a_handler() {
    let handler = compute as *const () as sighandler_t;
    let kinds = [
        0,
        libc::SA_NODEFER,
        libc::SA_ONSTACK,
        libc::SA_ONSTACK | libc::SA_NODEFER,
    ];
    let check_all = |install: &dyn Fn(c_int)| {
        for flags in kinds {
            install(flags | libc::SA_RESTART | libc::SA_SIGINFO);
            let numbers = AtomicUsize::new(1);
            let over = AtomicBool::new(false);
            let work = || {
                if NUMBER.get() == 0 {
                    NUMBER.set(numbers.fetch_add(1, Relaxed));
                }
                // Signals to the process do not come to carriers. A fault comes to where it is.
                undefined();
            };
            beside(4, work, || {
                let before = HANDLED.load(SeqCst);
                while HANDLED.load(SeqCst) < before + 30 {
                    thread::sleep(Duration::from_millis(1));
                }
                over.store(true, SeqCst);
            });
            assert!(over.load(SeqCst));
            assert_eq!(MOVED.load(SeqCst), 0, "with flags {flags:#x}");
        }
    };
    alone(|| {
        check_all(&|flags| {
            install(SIGILL, &action(handler, flags));
        });
        check_all(&|flags| install_by_number(SIGILL, handler, flags));
        install(SIGILL, &action(libc::SIG_DFL, 0));
    });
}
