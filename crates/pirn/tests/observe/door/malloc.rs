//! Dumps of a process whose threads keep `malloc` locked.

use pirn_dump::State;

use super::bare::Program;
use super::target::{dump_of, functions_of, until};
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
    let functions = until(|| functions_of(&dump_of(program.pid()), waits));
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

/// Fights for malloc's locks with as many threads as there are carriers, and more.
pub fn fights() {
    let parked = thread::spawn(thread::park);
    for _ in 0..2 {
        std::thread::spawn(trim);
        thread::spawn(allocate);
    }
    parked.join().unwrap();
}

/// The threads that allocate stand still while their stacks are read, and have malloc's lock more
/// often than not: nothing may be allocated meanwhile.
#[watched]
fn a_dump_is_made_while_threads_fight_for_malloc() {
    for settings in [&ONE_LOCK[..], &[]] {
        let mut variables = settings.to_vec();
        variables.push(("PIRN_PARALLELISM", "2"));
        let program = Program::start("fights for malloc", &variables);
        has_the_parked_thread(&program);
        let mut seen = 0;
        while seen < 3 {
            let dump = dump_of(program.pid());
            let runs = |thread: &pirn_dump::Thread| thread.state == State::Running;
            let functions = functions_of(&dump, runs).unwrap_or_default();
            seen += usize::from(functions.iter().any(|name| name.contains("allocate")));
        }
    }
}
