//! A whole program as one run: what `libpirn.so` makes of `pirn run --seed`.
//!
//! ```text
//!   first thread of the process               virtual threads, on the carrier
//!   run(): begins ------------------------->  the program's `main`, and what it makes
//!     |  waits                                  |
//!     |                                         +--> exit(): the process ends, with `line`
//!     +<-- all threads wait: returns why -------+
//! ```
//!
//! The program has one process, which is simulated until it ends. Its children are not: they have
//! the machine's time and threads.

use crate::run::prepare;
use crate::strategy::Strategy;
use crate::world::{self, Options, Outcome};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use pirn_rt::blocking::fds;
use pirn_rt::sched::simulation;
use pirn_rt::stack::{LARGEST_STACK, main_stack_size};
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::helper;
use std::io;

/// Whether the process is a simulated program. Relaxed: it changes while there is one thread.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The first function of the program's first thread, as `pthread_create` takes it.
pub type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

unsafe extern "C" {
    fn pirn_count_pthreads(counts: *mut u64, room: usize) -> usize;
}

/// Runs `start(argument)`, and all threads that it makes, by a seed. Threads pause at one point in
/// `one_in` for at most `longest`. Returns why the program cannot go on; otherwise the process
/// ends.
///
/// # Errors
/// There can be no simulation.
///
/// # Safety
/// For the first thread of a process that has no other. `argument` is what `start` takes, and
/// stays.
pub unsafe fn run(
    seed: u64,
    (one_in, longest): (u64, Duration),
    start: Start,
    argument: *mut c_void,
) -> io::Result<String> {
    IS_ON.store(true, Relaxed);
    helper::begin_in_order();
    prepare()?;
    world::wait_for_carrier();
    // SAFETY: functions that stay: they are part of the library, which is never unloaded.
    unsafe {
        libc::atexit(say_line);
        libc::pthread_atfork(None, None, Some(leave));
    }
    world::begin(Options {
        seed,
        strategy: Strategy::of_program(seed),
        places: 8,
        pauses: one_in,
        longest_pause: longest.as_nanos() as u64,
        most_points: u64::MAX, // A program may go on for ever, as natively.
        ..Options::default()
    });
    simulation::set_running(true);
    let mut attributes = MaybeUninit::uninit();
    let stack = main_stack_size().min(LARGEST_STACK / 2); // There is more in its slot.
    // SAFETY: the attributes are initialised, and destroyed once; the caller's contract.
    let error = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        let error = pirn_posix::pirn_replace_first_thread(attributes.as_ptr(), start, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(match world::wait() {
        Outcome::Deadlock => format!("a deadlock, all threads wait: {}", world::line()),
        other => format!("{other:?}: {}", world::line()),
    })
}

/// Returns whether the process is a simulated program: then descriptors are not all the
/// simulation's own.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Returns until when the carrier is to wait for descriptors, by the machine's clock, if no thread
/// can run until `next`: children read and write them. If there is no such time, so may the
/// processes at the other ends of the standard descriptors.
pub(crate) fn expects_others(next: u64) -> Option<Deadline> {
    let is_standard = || next == u64::MAX && (0..3).any(fds::is_awaited);
    let expects = is_on() && (has_children() || is_standard());
    expects.then(|| Deadline::from_nanos(next))
}

/// Returns whether the process has children, also those that have ended and were not waited for.
fn has_children() -> bool {
    const QUERY: c_int = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel writes nothing for a null pointer.
    unsafe { sys::call!(libc::SYS_waitid, libc::P_ALL, 0, 0, QUERY, 0) }.is_ok()
}

/// Says what the run was like, at the end of the process.
extern "C" fn say_line() {
    if !is_on() {
        return;
    }
    let mut made = [0; 16];
    // SAFETY: the function writes as many counts as there is room for.
    let kinds = unsafe { pirn_count_pthreads(made.as_mut_ptr(), made.len()) };
    let others = match made[1..kinds.min(made.len())].iter().sum::<u64>() {
        0 => String::new(),
        others => format!("; beside it, {others} platform threads, which are not simulated"),
    };
    sys::complain(&["pirn: ", &world::line(), &others, "\n"]);
}

/// Leaves the simulation, in the child of a fork.
unsafe extern "C" fn leave() {
    simulation::set_running(false);
    IS_ON.store(false, Relaxed);
}
