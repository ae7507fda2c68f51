//! The functions that the macros' output calls. Not for use by hand.

use crate::thread::{Builder, std_start};
use pirn_rt::runtime;
use std::io::{self, Write};
use std::panic::resume_unwind;

/// The stack size of `main` if `ulimit -s` sets no limit.
const MAIN_STACK: usize = 8 << 20;

/// Runs `f` on a virtual thread with the stack size of `main`, and returns its result; a panic
/// continues in the caller. If the runtime cannot start, ends the process with an error.
#[track_caller]
pub fn run_main<T: Send + 'static>(name: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let builder = runtime::ensure_started().map(|runtime| {
        let least = runtime.settings.default_class.stack_bytes();
        Builder::new().stack_size(main_stack_size().clamp(least, 1 << 30))
    });
    // No closure: it would hide the caller.
    let result = match builder {
        Ok(builder) => std_start::run(builder, name, f),
        Err(e) => Err(e),
    };
    match result {
        Ok(result) => result.unwrap_or_else(|payload| resume_unwind(payload)),
        Err(e) => {
            let _ = writeln!(io::stderr(), "pirn: cannot start the main thread: {e}");
            std::process::exit(1)
        }
    }
}

/// Runs `f` on a virtual thread with the name that the test harness would give its own thread, and
/// returns its result; a panic continues in the caller. The output of `f` is captured as in any
/// test.
///
/// # Panics
/// If the runtime cannot start.
#[track_caller]
pub fn run_test<T: Send + 'static>(path: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    // The harness's names leave out the name of the crate.
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    match std_start::run(Builder::new(), name, f) {
        Ok(result) => result.unwrap_or_else(|payload| resume_unwind(payload)),
        Err(e) => panic!("{e}"),
    }
}

/// Returns the limit of the main thread's stack.
fn main_stack_size() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: an rlimit to be filled in.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
    match limit.rlim_cur {
        libc::RLIM_INFINITY => MAIN_STACK,
        bytes => usize::try_from(bytes).unwrap_or(MAIN_STACK),
    }
}
