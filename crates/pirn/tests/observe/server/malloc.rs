//! Dumps of a process whose threads keep `malloc` locked.

use std::ffi::{c_char, c_int, c_void};

use pirn_dump::State;

use super::bare::Program;
use super::target::{dump_of, functions_of, monitor_of, rests, signal, tasks, until};
use crate::common::watched;
use pirn::thread;

/// Settings of glibc that have all threads share one lock, and take it for each block.
const ONE_LOCK: [(&str, &str); 2] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"),
];

/// Waits until a dump has the thread that parks all the time, with its stack.
fn has_the_parked_thread(program: &Program) {
    let waits = |thread: &pirn_dump::Thread| thread.state == State::Waiting;
    let functions = until(|| functions_of(&dump_of(program.pid()), waits).pop());
    let parks = functions.iter().any(|name| name.contains("park"));
    assert!(parks, "{functions:?}");
}

/// Allocates and frees blocks of many sizes, for ever.
#[inline(never)]
fn allocate() {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for round in 0_usize.. {
        let size = 1 << (round * 7 % 17);
        kept.push(Vec::with_capacity(size + round % 100));
        if kept.len() > 50 {
            kept.swap_remove(round * 31 % 50);
        }
    }
}

/// Locks each arena for long, for ever.
fn trim() {
    loop {
        // SAFETY: takes the lock of each arena in turn.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Allocates all the time, on each of two carriers.
pub fn allocates() {
    let parked = thread::spawn(thread::park);
    for _ in 0..2 {
        thread::spawn(allocate);
    }
    parked.join().unwrap();
}

/// The same, while others keep malloc locked.
pub fn fights() {
    for _ in 0..2 {
        std::thread::spawn(trim);
    }
    allocates();
}

#[watched]
fn a_dump_is_made_while_threads_fight_for_malloc() {
    for settings in [&ONE_LOCK[..], &[]] {
        let program = Program::start("fights for malloc", settings);
        has_the_parked_thread(&program);
        has_the_parked_thread(&program);
    }
}

/// A thread that stands still while its stack is read may have malloc's lock: nothing is allocated
/// meanwhile, or it would not stand still for long enough.
#[watched]
fn a_thread_that_has_the_lock_of_malloc_has_its_stack() {
    let variables = [&ONE_LOCK[..], &[("PIRN_PARALLELISM", "2")]].concat();
    let program = Program::start("allocates", &variables);
    let runs = |thread: &pirn_dump::Thread| thread.state == State::Running;
    let mut seen = 0;
    until(|| {
        let functions = functions_of(&dump_of(program.pid()), runs);
        seen += functions.iter().filter(|it| has_the_lock(it)).count();
        (seen >= 3).then_some(())
    });
}

/// Returns whether a thread is in a function that `malloc` calls when it has the lock. (`free` does
/// some of its work without.)
fn has_the_lock(functions: &[String]) -> bool {
    // Which of libc's functions have a name there differs between releases of glibc.
    let is_libc = |name: &&String| name.contains("libc.so") || name.ends_with("malloc");
    let depth = functions.iter().take_while(is_libc).count();
    let locks = ["lll_lock", "futex", "arena"];
    depth >= 2
        && !locks.iter().any(|part| functions[0].contains(part))
        && functions.get(depth).is_some_and(|caller| {
            caller.contains("alloc") && !caller.contains("dealloc") && !caller.contains("drop")
        })
}

unsafe extern "C" {
    fn malloc_stats();
    static mut stderr: *mut libc::FILE;
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, calls: Calls) -> *mut libc::FILE;
    fn setvbuf(file: *mut libc::FILE, buffer: *mut c_char, mode: c_int, size: usize) -> c_int;
}

/// `cookie_io_functions_t`.
#[repr(C)]
struct Calls {
    read: *const c_void,
    write: extern "C" fn(*mut c_void, *const c_char, usize) -> isize,
    seek: *const c_void,
    close: *const c_void,
}

/// Stops until standard input ends.
extern "C" fn stop(_: *mut c_void, _: *const c_char, len: usize) -> isize {
    // SAFETY: a buffer of this length.
    unsafe { libc::syscall(libc::SYS_read, 0, [0u8].as_mut_ptr(), 1) };
    len as isize
}

/// Has a platform thread stop while it holds the lock of the main thread's arena: libc writes its
/// statistics under it.
pub fn stops() {
    const UNBUFFERED: c_int = 2; // _IONBF
    let parked = thread::spawn(thread::park);
    let calls = Calls {
        read: std::ptr::null(),
        write: stop,
        seek: std::ptr::null(),
        close: std::ptr::null(),
    };
    // SAFETY: a mode, and functions of these types; the file stays open, and no other code uses it.
    let file = unsafe {
        let file = fopencookie(std::ptr::null_mut(), c"w".as_ptr(), calls);
        assert!(!file.is_null());
        setvbuf(file, std::ptr::null_mut(), UNBUFFERED, 0);
        file.expose_provenance()
    };
    std::thread::spawn(move || {
        // SAFETY: nothing else in this process writes with C's functions.
        unsafe {
            stderr = std::ptr::with_exposed_provenance_mut(file);
            malloc_stats();
        }
    });
    parked.join().unwrap();
}

/// Starts it, and waits until that thread has stopped.
fn start_and_stop(parallelism: &str) -> Program {
    let program = Program::start("stops in malloc", &[("PIRN_PARALLELISM", parallelism)]);
    until(|| {
        let mut tasks = tasks(program.pid()).unwrap();
        let stopped = tasks.any(|task| task.read("syscall").starts_with("0 0x0 "));
        stopped.then_some(())
    });
    program
}

/// Returns whether a thread of this name waits for a lock of libc.
fn waits_for_libc(program: &Program, name: &str) -> bool {
    let futex = libc::SYS_futex.to_string();
    tasks(program.pid()).unwrap().any(|task| {
        let call = task.read("syscall");
        let mut words = call.split(' ');
        // FUTEX_WAIT_PRIVATE, by which libc's own locks wait; the runtime's have a bit mask.
        let waits = words.next() == Some(&futex) && words.nth(1) == Some("0x80");
        waits && task.name() == name
    })
}

/// Threads that need that lock wait, perhaps the server's as well: it answers in the end.
#[watched]
fn a_thread_that_stops_in_malloc_for_a_while_does_no_harm() {
    for parallelism in ["1", "2"] {
        let mut program = start_and_stop(parallelism);
        let pid = program.pid();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| dump_of(pid));
            // It has been asked, and may have answered.
            let listens = || tasks(pid).unwrap().any(|it| it.name() == "pirn-observe");
            let waits = || waits_for_libc(&program, "pirn-server");
            until(|| (asking.is_finished() || listens() || waits()).then_some(()));
            program.end_input();
            asking.join().unwrap();
        });
        has_the_parked_thread(&program);
    }
}

/// The monitor goes on for as long as the thread has stopped, and does what it is asked to.
#[watched]
fn a_thread_that_stops_in_malloc_for_good_does_not_stop_the_monitor() {
    for parallelism in ["1", "2"] {
        let program = start_and_stop(parallelism);
        let monitor = until(|| monitor_of(program.pid()));
        let begin = rests(program.pid(), monitor);
        until(|| {
            signal(program.pid());
            // If it waited for malloc's lock, it would rest no more. (When it starts a thread, it
            // may wait for another lock of libc, for a moment.)
            (rests(program.pid(), monitor) >= begin + 20).then_some(())
        });
    }
}
