//! Signal handlers that block, wherever they interrupt a virtual thread or the runtime.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::Duration;

use crate::common::kernel::sleeps_in;
use crate::common::processor::{skip_undefined, undefined};
use crate::common::sys::{self, check, on_signal};
use crate::common::{TempDir, child, on_virtual, watched};
use libc::SIGUSR2;
use pirn::thread;

/// The signal that is sent to carriers. They block all that others usually send, which virtual
/// threads get at safe points (see `pthread_signals`), but none that code may cause by itself:
/// these the kernel delivers, whatever they interrupt.
const SIGNAL: c_int = libc::SIGSYS;

/// The number of times the handler has run to its end.
static HANDLED: AtomicUsize = AtomicUsize::new(0);
/// A pipe that is full most of the time, and a regular file.
static PIPE: AtomicI32 = AtomicI32::new(-1);
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Calls functions that POSIX allows in a handler, and functions that may block.
extern "C" fn block(_signal: c_int) {
    let saved = sys::errno();
    // SAFETY: a string, a buffer, and descriptors that stay open.
    unsafe {
        let fd = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        assert!(fd >= 0);
        assert_eq!(libc::close(fd), 0);
        assert_eq!(
            libc::write(PIPE.load(SeqCst), [7u8; 256].as_ptr().cast(), 256),
            256
        );
        assert_eq!(libc::fsync(FILE.load(SeqCst)), 0);
    }
    HANDLED.fetch_add(1, SeqCst);
    sys::set_errno(saved);
}

/// Returns the ids of the OS threads that are carriers now.
fn carrier_ids() -> Vec<c_int> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let carriers = tasks.filter(|task| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.starts_with("pirn-carrier"))
    });
    let number = |task: fs::DirEntry| task.file_name().to_str()?.parse().ok();
    carriers.filter_map(number).collect()
}

/// Sends [`SIGNAL`] to each carrier, 2,000 times per second, until `over`.
fn hammer(over: &AtomicBool) {
    while !over.load(SeqCst) {
        for carrier in carrier_ids() {
            for _ in 0..10 {
                // SAFETY: no pointers. Failure: a spare carrier that has ended meanwhile.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), carrier, SIGNAL) };
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    }
}

/// Yields, locks, sleeps, reads and writes, and spawns, while being interrupted.
fn work(rounds: usize) {
    let counter = Mutex::new(0);
    let (reader, writer) = io::pipe().unwrap();
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    *counter.lock().unwrap() += 1;
                    thread::yield_now();
                    thread::sleep(Duration::from_micros(50));
                }
            });
        }
        scope.spawn(|| {
            let mut writer = writer;
            for i in 0..rounds {
                writer.write_all(&[i as u8; 100]).unwrap();
            }
        });
        scope.spawn(|| {
            let (mut reader, mut bytes) = (reader, Vec::new());
            reader.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes.len(), 100 * rounds);
        });
        scope.spawn(|| {
            let (sender, receiver) = mpsc::sync_channel(0);
            let sum = thread::spawn(move || receiver.iter().sum::<usize>());
            (0..rounds).for_each(|i| sender.send(i).unwrap());
            drop(sender);
            assert_eq!(sum.join().unwrap(), rounds * (rounds - 1) / 2);
        });
    });
    assert_eq!(counter.into_inner().unwrap(), 20 * rounds);
}

/// Works until 1,000 handlers have run.
fn work_under_fire() {
    let folder = TempDir::new("handlers");
    let file = File::create(folder.join("synced")).unwrap();
    let (mut drain, full) = io::pipe().unwrap();
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(full.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) }).unwrap();
    FILE.store(file.into_raw_fd(), SeqCst);
    PIPE.store(full.into_raw_fd(), SeqCst);
    on_signal(SIGNAL, libc::SA_RESTART, block);
    on_virtual(|| ()); // Starts the carriers.
    // As long as the process lives: the last handlers write, too.
    std::thread::spawn(move || {
        while drain.read(&mut [0; 1024]).is_ok() {
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| hammer(&over));
        while HANDLED.load(SeqCst) < 1_000 {
            work(20);
        }
        over.store(true, SeqCst);
    });
}

#[watched]
fn handlers_block_their_carrier_and_nothing_else() {
    child::with_carriers(&["1", "2", "8"], work_under_fire);
}

/// Closes a descriptor, which gives threads that wait for a file's lock a chance.
extern "C" fn close_one(_signal: c_int) {
    let saved = sys::errno();
    // SAFETY: a string, and a descriptor of our own.
    unsafe {
        let fd = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        assert!(fd >= 0);
        assert_eq!(libc::close(fd), 0);
    }
    HANDLED.fetch_add(1, SeqCst);
    sys::set_errno(saved);
}

/// Waits repeatedly for a lock on a file, while handlers close descriptors.
fn lock_under_fire() {
    let folder = TempDir::new("locked");
    let path = folder.join("locked");
    let file = File::create(&path).unwrap();
    file.lock().unwrap();
    on_signal(SIGNAL, libc::SA_RESTART, close_one);
    on_virtual(|| ()); // Starts the carriers.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..16)
            .map(|_| File::open(&path).unwrap())
            .map(|file| thread::spawn(move || file.lock().unwrap()))
            .collect();
        scope.spawn(|| hammer(&over));
        while HANDLED.load(SeqCst) < 4_000 {
            work(20);
        }
        over.store(true, SeqCst);
        file.unlock().unwrap();
        waiting
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[watched]
fn a_close_in_a_handler_wakes_nobody() {
    child::with_carriers(&["1", "2"], lock_under_fire);
}

/// Makes [`PIPE`] block, as it does already.
extern "C" fn set_flags(_signal: c_int) {
    let saved = sys::errno();
    // SAFETY: no pointers.
    let result = unsafe { libc::fcntl(PIPE.load(SeqCst), libc::F_SETFL, 0) };
    assert_eq!(result, 0);
    HANDLED.fetch_add(1, SeqCst);
    sys::set_errno(saved);
}

/// Sets the flags of a descriptor repeatedly, while handlers do the same.
fn flags_under_fire() {
    on_signal(SIGNAL, libc::SA_RESTART, set_flags);
    on_virtual(|| ()); // Starts the carriers, and with them the table of descriptors.
    let (reader, writer) = io::pipe().unwrap();
    PIPE.store(reader.as_raw_fd(), SeqCst);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| hammer(&over));
        thread::scope(|scope| {
            scope.spawn(|| {
                while HANDLED.load(SeqCst) < 1_000 {
                    for _ in 0..100 {
                        sys::set_nonblocking(&reader, false);
                    }
                    thread::yield_now();
                }
            });
        });
        over.store(true, SeqCst);
    });
    // As long as the process lives: the last signals may still be on their way.
    std::mem::forget((reader, writer));
}

#[watched]
fn a_handler_changes_the_flags_that_it_has_interrupted_a_change_of() {
    child::with_carriers(&["1"], flags_under_fire);
}

/// What [`wake`] wakes: waiters for a futex word, for a semaphore, and a parked thread.
struct Wakes {
    word: AtomicU32,
    semaphore: Semaphore,
    parked: thread::Thread,
}

struct Semaphore(UnsafeCell<libc::sem_t>);
// SAFETY: semaphores are made to be shared.
unsafe impl Sync for Semaphore {}

static WAKES: OnceLock<Wakes> = OnceLock::new();

/// Calls `futex` for a word; the other arguments are zero.
fn futex(word: &AtomicU32, operation: c_int, value: u32) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a valid word, and no timeout.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, 0, 0, 0) };
}

extern "C" fn wake(_signal: c_int) {
    let saved = sys::errno();
    let wakes = WAKES.get().unwrap();
    wakes.word.fetch_add(1, SeqCst);
    futex(&wakes.word, libc::FUTEX_WAKE, c_int::MAX as u32);
    // SAFETY: a semaphore that has been made.
    assert_eq!(unsafe { libc::sem_post(wakes.semaphore.0.get()) }, 0);
    wakes.parked.unpark();
    HANDLED.fetch_add(1, SeqCst);
    sys::set_errno(saved);
}

/// Has threads wait for handlers, again and again, while they interrupt threads that work.
fn wait_for_handlers() {
    const ROUNDS: usize = 300;
    let parked = thread::spawn(|| (0..ROUNDS).for_each(|_| thread::park()));
    let wakes = WAKES.get_or_init(|| Wakes {
        word: AtomicU32::new(0),
        // SAFETY: all zeros is a semaphore of the process with the value 0.
        semaphore: unsafe { std::mem::zeroed() },
        parked: parked.thread().clone(),
    });
    on_signal(SIGNAL, libc::SA_RESTART, wake);
    let over = AtomicBool::new(false);
    let wait_for_word = || {
        for _ in 0..ROUNDS {
            let seen = wakes.word.load(SeqCst);
            while wakes.word.load(SeqCst) == seen {
                futex(&wakes.word, libc::FUTEX_WAIT, seen);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| hammer(&over));
        let working = scope.spawn(|| {
            while !over.load(SeqCst) {
                work(20);
            }
        });
        thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(wait_for_word)));
            for _ in 0..4 {
                // SAFETY: as in `wake`.
                let take = || unsafe { libc::sem_wait(wakes.semaphore.0.get()) };
                scope.spawn(move || (0..ROUNDS / 4).for_each(|_| assert_eq!(take(), 0)));
            }
        });
        parked.join().unwrap();
        over.store(true, SeqCst);
        working.join().unwrap();
    });
}

#[watched]
fn handlers_wake_threads_whatever_they_have_interrupted() {
    child::with_carriers(&["1", "2", "8"], wait_for_handlers);
}

extern "C" fn first(_signal: c_int) {}
extern "C" fn second(_signal: c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

unsafe extern "C" {
    fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
    fn bsd_signal(signal: c_int, handler: usize) -> usize;
    fn ssignal(signal: c_int, handler: usize) -> usize;
    fn __sysv_signal(signal: c_int, handler: usize) -> usize;
    fn sysv_signal(signal: c_int, handler: usize) -> usize;
    fn sigset(signal: c_int, handler: usize) -> usize;
    fn siginterrupt(signal: c_int, interrupts: c_int) -> c_int;
}

#[watched(alone)]
fn a_program_gets_back_the_handlers_that_it_installed() {
    let (one, two) = (first as *const () as usize, second as *const () as usize);
    type Signal = unsafe extern "C" fn(c_int, usize) -> usize;
    let functions: [Signal; 6] = [
        libc::signal,
        bsd_signal,
        ssignal,
        __sysv_signal,
        sysv_signal,
        sigset,
    ];
    // SAFETY: functions of the right signature, and the values that `signal` takes.
    unsafe {
        for signal in functions {
            assert_eq!(signal(SIGUSR2, one), libc::SIG_DFL);
            assert_eq!(signal(SIGUSR2, two), one);
            assert_eq!(signal(SIGUSR2, libc::SIG_IGN), two);
            assert_eq!(signal(SIGUSR2, libc::SIG_DFL), libc::SIG_IGN);
            assert_eq!(signal(libc::SIGKILL, one), libc::SIG_ERR);
        }
        for sigaction in [libc::sigaction, __sigaction] {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = two;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            let mut old: libc::sigaction = std::mem::zeroed();
            assert_eq!(sigaction(SIGUSR2, &action, &mut old), 0);
            assert_eq!(old.sa_sigaction, libc::SIG_DFL);
            assert_eq!(sigaction(SIGUSR2, std::ptr::null(), &mut old), 0);
            assert_eq!(old.sa_sigaction, two);
            assert_eq!(old.sa_flags & libc::SA_NODEFER, libc::SA_NODEFER);
            // The same action is new and old.
            let both = &raw mut action;
            (*both).sa_sigaction = one;
            assert_eq!(sigaction(SIGUSR2, both, both), 0);
            assert_eq!((*both).sa_sigaction, two);
            (*both).sa_sigaction = libc::SIG_DFL;
            assert_eq!(sigaction(SIGUSR2, both, both), 0);
            assert_eq!((*both).sa_sigaction, one);
            assert_eq!(sigaction(65, std::ptr::null(), std::ptr::null_mut()), -1);
            assert_eq!(sys::errno(), libc::EINVAL);
        }
    }
}

/// Holds a signal, and has calls end after its handler, by System V's and BSD's functions.
fn hold_and_interrupt() {
    const SIG_HOLD: usize = 2;
    let one = first as *const () as usize;
    // SAFETY: handlers of the right type, and room for what is asked for.
    unsafe {
        let is_blocked = || {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
            libc::sigismember(&set, SIGUSR2) == 1
        };
        assert_eq!(sigset(SIGUSR2, one), libc::SIG_DFL);
        assert_eq!((sigset(SIGUSR2, SIG_HOLD), is_blocked()), (one, true));
        assert_eq!((sigset(SIGUSR2, SIG_HOLD), is_blocked()), (SIG_HOLD, true));
        assert_eq!(
            (sigset(SIGUSR2, libc::SIG_DFL), is_blocked()),
            (SIG_HOLD, false)
        );
        assert_eq!(sigset(SIGUSR2, libc::SIG_ERR), libc::SIG_ERR);
        let restarts = || {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(SIGUSR2, std::ptr::null(), &mut action);
            action.sa_flags & libc::SA_RESTART != 0
        };
        for (interrupts, expected) in [(1, false), (0, true)] {
            libc::signal(SIGUSR2, one);
            assert_eq!(
                (siginterrupt(SIGUSR2, interrupts), restarts()),
                (0, expected)
            );
            libc::signal(SIGUSR2, one);
            assert_eq!(restarts(), expected);
        }
        libc::signal(SIGUSR2, libc::SIG_DFL);
        assert_eq!(siginterrupt(libc::SIGKILL, 1), -1);
    }
}

#[watched(alone)]
fn signals_are_held_and_interrupt_as_their_thread_says() {
    hold_and_interrupt();
    on_virtual(hold_and_interrupt);
}

/// What the interrupted code waits for, and what the handler does.
static OUTER: thread::Semaphore = thread::Semaphore::new(0);
static INNER: thread::Semaphore = thread::Semaphore::new(0);
/// Whether a handler waits, and whether each permit was there when its wait had ended.
static ENTERED: AtomicBool = AtomicBool::new(false);
static INNER_IS_GIVEN: AtomicBool = AtomicBool::new(false);
static INNER_WAS_GIVEN: AtomicBool = AtomicBool::new(false);

extern "C" fn acquire_inner(_signal: c_int) {
    ENTERED.store(true, SeqCst);
    drop(INNER.acquire_interruptible());
    INNER_WAS_GIVEN.store(INNER_IS_GIVEN.load(SeqCst), SeqCst);
    HANDLED.fetch_add(1, SeqCst);
}

/// Waits until a platform thread sleeps in the kernel in a futex, or has ended.
fn until_it_sleeps(id: c_int) {
    crate::common::until(|| sleeps_in(id, &[libc::SYS_futex]));
}

/// Each wait ends by what it waits for, in both orders: they do not share a word.
#[watched]
fn a_wait_in_a_handler_and_the_wait_that_it_has_interrupted_are_two() {
    child::isolated(&[], || {
        on_signal(SIGUSR2, 0, acquire_inner);
        thread::spawn(|| ()).join().unwrap(); // There is a runtime.
        for inner_first in [true, false] {
            let outer_is_given = AtomicBool::new(false);
            let id = AtomicI32::new(0);
            std::thread::scope(|scope| {
                let outer = scope.spawn(|| {
                    // SAFETY: no arguments.
                    id.store(unsafe { libc::gettid() }, SeqCst);
                    drop(OUTER.acquire_interruptible().unwrap());
                    assert!(outer_is_given.load(SeqCst), "inner first: {inner_first}");
                });
                crate::common::until(|| id.load(SeqCst) != 0);
                until_it_sleeps(id.load(SeqCst));
                let pid = std::process::id() as c_int;
                // SAFETY: no pointers.
                check(unsafe { libc::syscall(libc::SYS_tgkill, pid, id.load(SeqCst), SIGUSR2) })
                    .unwrap();
                crate::common::until(|| ENTERED.load(SeqCst));
                until_it_sleeps(id.load(SeqCst));
                let give_outer = || {
                    outer_is_given.store(true, SeqCst);
                    OUTER.add_permits(1);
                };
                let handled = HANDLED.load(SeqCst);
                if !inner_first {
                    give_outer();
                    until_it_sleeps(id.load(SeqCst));
                }
                INNER_IS_GIVEN.store(true, SeqCst);
                INNER.add_permits(1);
                crate::common::until(|| HANDLED.load(SeqCst) > handled);
                assert!(INNER_WAS_GIVEN.load(SeqCst), "inner first: {inner_first}");
                if inner_first {
                    until_it_sleeps(id.load(SeqCst));
                    assert!(!outer.is_finished());
                    give_outer();
                }
                outer.join().unwrap();
            });
            assert_eq!([&OUTER, &INNER].map(|it| it.available_permits()), [1, 1]);
            for semaphore in [&OUTER, &INNER] {
                std::mem::forget(semaphore.try_acquire());
            }
            for flag in [&ENTERED, &INNER_IS_GIVEN] {
                flag.store(false, SeqCst);
            }
        }
    });
}

extern "C" fn open_a_scope(_signal: c_int) {
    let sum = thread::scope(|scope| {
        let one = scope.spawn(|| 1);
        1 + one.join().unwrap()
    });
    let forked = pirn::scope::open(|scope| {
        let one = scope.fork(|| Ok::<_, std::io::Error>(1));
        let joined = scope.join().map_err(|unjoined| unjoined.into_error())?;
        Ok::<_, pirn::scope::JoinError<_>>(one.get(&joined))
    });
    HANDLED.fetch_add(sum + forked.unwrap_or(0), SeqCst);
}

/// The handler of `SIGPIPE` runs inside the call, on the virtual thread: it waits in place.
#[watched]
fn a_handler_on_a_virtual_thread_waits_for_the_threads_of_its_scope() {
    const TURNS: usize = 200;
    child::isolated(&[("PIRN_PARALLELISM", "4")], || {
        on_signal(libc::SIGPIPE, 0, open_a_scope);
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        thread::spawn(move || {
            for _ in 0..TURNS {
                let error = writer.write(b"x").unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            }
        })
        .join()
        .unwrap();
        assert_eq!(HANDLED.load(SeqCst), 3 * TURNS);
    });
}

/// How often handlers of faults have gone on.
static FAULTS: AtomicUsize = AtomicUsize::new(0);

/// Goes on behind the instruction, and lets others run before: where it waits, the carrier does.
extern "C" fn skip_instruction(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    thread::yield_now();
    thread::park_timeout(Duration::from_millis(1));
    pirn::block_on(async { thread::yield_now() });
    thread::scope(|scope| _ = scope.spawn(|| ()).join());
    FAULTS.fetch_add(1, SeqCst);
    // SAFETY: the handler of an undefined instruction.
    unsafe { skip_undefined(context) };
}

/// A handler of a fault does not leave its carrier, whose other threads have faults as well.
#[watched]
fn a_handler_of_a_fault_never_parks() {
    const THREADS: usize = 20;
    child::isolated(&[("PIRN_PARALLELISM", "2")], || {
        // SAFETY: an action that reads no memory but its arguments.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = skip_instruction as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            check(libc::sigaction(libc::SIGILL, &action, std::ptr::null_mut())).unwrap();
        }
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(undefined);
            }
        });
        assert_eq!(FAULTS.load(SeqCst), THREADS);
    });
}
