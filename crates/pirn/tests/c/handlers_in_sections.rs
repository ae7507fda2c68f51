//! Handlers of signals to a platform thread that stop all others, as a garbage collector's do: they
//! wait until each has answered. So they must not run where the platform thread holds what another
//! one needs to answer.
//!
//! A stop takes long, so a signal comes after some instructions only, at most [`LONGEST`]. Each run
//! begins at another one of these: `PIRN_STEP_OFFSET` says at which, a number or `all`.

use std::env;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Condvar, Mutex, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use crate::common::processor::{can_step, set_step_flag};
use crate::common::sys::on_signal;
use crate::common::{child, watched};
use libc::{SIGTRAP, SIGUSR1, SIGUSR2, pthread_t};
use pirn::thread;

/// The threads that are stopped.
static THREADS: OnceLock<Vec<pthread_t>> = OnceLock::new();
static STOPS: AtomicUsize = AtomicUsize::new(0);
static STOPPED: AtomicUsize = AtomicUsize::new(0);

/// Stops all threads, and lets them go on.
extern "C" fn stop_the_world(_signal: c_int) {
    let threads = THREADS.get().unwrap();
    STOPPED.store(0, SeqCst);
    for thread in threads {
        // SAFETY: it runs until the end of the test.
        assert_eq!(unsafe { libc::pthread_kill(*thread, SIGUSR2) }, 0);
    }
    while STOPPED.load(SeqCst) < threads.len() {
        std::thread::yield_now();
    }
    STOPS.fetch_add(1, SeqCst);
}

extern "C" fn stop(_signal: c_int) {
    let stops = STOPS.load(SeqCst);
    STOPPED.fetch_add(1, SeqCst);
    while STOPS.load(SeqCst) == stops {
        std::thread::yield_now();
    }
}

/// The variable with the number of instructions before the first signal.
const OFFSET: &str = "PIRN_STEP_OFFSET";
/// The largest number of instructions from a signal to the next.
const LONGEST: usize = 50;

/// The number of instructions that [`stepped`] has executed, and after how many a signal comes.
static STEPS: AtomicUsize = AtomicUsize::new(0);
static STRIDE: AtomicUsize = AtomicUsize::new(0);

/// Runs after each instruction while the trap flag is set.
extern "C" fn trapped(_signal: c_int) {
    if !STEPS
        .fetch_add(1, SeqCst)
        .is_multiple_of(STRIDE.load(SeqCst))
    {
        return;
    }
    // SAFETY: no pointers.
    unsafe {
        let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
        libc::syscall(libc::SYS_tgkill, process, thread, SIGUSR1);
    }
}

/// Has a signal come after every `stride` instructions of `f`.
fn stepped(stride: usize, f: impl FnOnce()) {
    let before = STOPS.load(SeqCst);
    let offset: usize = env::var(OFFSET).unwrap().parse().unwrap();
    STEPS.store(stride - offset % stride, SeqCst);
    STRIDE.store(stride, SeqCst);
    set_step_flag(true);
    f();
    set_step_flag(false);
    // Optimised, an unpark is some twenty instructions.
    assert!(STOPS.load(SeqCst) > before);
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    turn: Mutex<usize>,
    changed: Condvar,
}

impl Shared {
    /// Waits for what the platform thread does, until the end.
    fn wait(&self) {
        while !self.over.load(SeqCst) {
            let turn = self.turn.lock().unwrap();
            let seen = *turn;
            let over = || self.over.load(SeqCst);
            drop(self.changed.wait_while(turn, |now| *now == seen && !over()));
        }
    }

    fn yields(&self) {
        while !self.over.load(SeqCst) {
            thread::yield_now();
        }
    }

    fn notify(&self) {
        *self.turn.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

/// The steps of a platform thread that others wait for.
fn step_everywhere() {
    const THREADS_OF_EACH_KIND: usize = 1;
    let all = 2 * THREADS_OF_EACH_KIND;
    let (shared, ready) = (Shared::default(), Barrier::new(all + 1));
    let ids = Mutex::new(Vec::new());
    on_signal(SIGUSR1, libc::SA_RESTART, stop_the_world);
    on_signal(SIGUSR2, libc::SA_RESTART, stop);
    on_signal(SIGTRAP, libc::SA_RESTART, trapped);
    thread::scope(|scope| {
        let (shared, ready, ids) = (&shared, &ready, &ids);
        for i in 0..all {
            scope.spawn(move || {
                // SAFETY: no arguments.
                ids.lock().unwrap().push(unsafe { libc::pthread_self() });
                ready.wait();
                match i % 2 {
                    0 => shared.wait(),
                    _ => shared.yields(),
                }
            });
        }
        ready.wait();
        THREADS.set(ids.lock().unwrap().clone()).unwrap();
        stepped(3, || shared.notify());
        let mut new = None;
        stepped(LONGEST, || new = Some(scope.spawn(|| ())));
        new.unwrap().join().unwrap();
        let sleeper = thread::spawn(thread::park);
        stepped(2, || sleeper.thread().unpark());
        stepped(5, || sleeper.thread().interrupt());
        sleeper.join().unwrap();
        shared.over.store(true, SeqCst);
        shared.notify();
    });
}

/// Returns where the runs begin: anywhere, unless it is said from outside.
fn offsets() -> Vec<usize> {
    match env::var(OFFSET).as_deref() {
        Ok("all") => (0..LONGEST).collect(),
        Ok(offset) => vec![offset.parse().unwrap()],
        Err(_) => vec![UNIX_EPOCH.elapsed().unwrap().as_nanos() as usize % LONGEST],
    }
}

#[watched(limit = Duration::from_secs(120) * offsets().len() as u32)]
fn a_handler_that_stops_the_world_may_come_at_each_instruction_of_a_platform_thread() {
    if !can_step() {
        return;
    }
    for offset in offsets() {
        println!("{OFFSET}={offset}");
        let offset = &*offset.to_string().leak();
        let setting = |count| [("PIRN_PARALLELISM", count), (OFFSET, offset)];
        child::isolated_each(["1", "2", "8"].map(setting), step_everywhere);
    }
}
