//! The virtual threads that `pirn-macros` starts: `std` knows them by name, and the test harness
//! captures their output.
//!
//! `std` fills in two places only when it starts a thread itself: the thread's name, for panic
//! messages, and the buffer in which the test harness captures a test's output. So here `std`'s
//! start runs on a virtual thread:
//!
//! ```text
//! std::thread::Builder::spawn(f)
//!   pthread_create(start, argument)     interposed, and told beforehand how to answer
//!     virtual thread: start(argument)   tells std name and buffer, then calls f
//! ```
//!
//! This costs one or two allocations, for the few threads that need it.

use crate::thread::{Builder, JoinHandle, Result};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem;
use core::panic::Location;
use core::ptr;
use pirn_libc::{Start, answer_next_create};
use pirn_rt::sched::body::caught;
use pirn_rt::sched::runtime;
use pirn_rt::stack::main_stack_size;
use pirn_rt::vthread::record::Place;
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc;

/// Runs `f` on a virtual thread with the stack size of `main`, and returns its result; a panic
/// continues in the caller. If the runtime cannot start, ends the process with an error.
#[track_caller]
pub fn run_main<T: Send + 'static>(name: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let builder = runtime::ensure_started().map(|runtime| {
        let least = runtime.settings.default_class.stack_bytes();
        Builder::new().stack_size(main_stack_size().max(least))
    });
    // No closure: it would hide the caller.
    let result = match builder {
        Ok(builder) => run(builder, name, f),
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
    match run(Builder::new(), name, f) {
        Ok(result) => result.unwrap_or_else(|payload| resume_unwind(payload)),
        Err(e) => panic!("{e}"),
    }
}

/// How to make the next thread, and the result of making it.
struct Order {
    place: Place,
    builder: Cell<Option<Builder>>,
    made: Cell<Option<io::Result<JoinHandle<()>>>>,
}

thread_local! {
    /// The order that [`answer`] takes: it is on the stack of [`run`].
    static ORDER: Cell<*const Order> = const { Cell::new(ptr::null()) };
}

/// Runs `f` on a virtual thread that `std` knows by `name`, and waits for its end.
///
/// # Errors
/// The same as for [`Builder::spawn`].
#[track_caller]
fn run<F, T>(builder: Builder, name: &str, f: F) -> io::Result<Result<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    runtime::ensure_started()?;
    let (give, given) = mpsc::channel();
    let order = Order {
        place: Location::caller(),
        builder: Cell::new(Some(builder.name(name.to_owned()))),
        made: Cell::new(None),
    };
    ORDER.set(&order);
    answer_next_create(Some(answer));
    let native = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            // The receiver is waiting.
            let _ = give.send(caught(f));
        });
    answer_next_create(None);
    ORDER.set(ptr::null());
    let thread = match (native, order.made.take()) {
        (Ok(native), Some(Ok(thread))) => {
            // The thread has no `pthread_t` to detach. This leaks a few hundred bytes.
            mem::forget(native);
            thread
        }
        (_, Some(Err(e))) | (Err(e), None) => return Err(e),
        (Ok(_), None) => unreachable!("std starts threads by another function than pthread_create"),
        (Err(_), Some(Ok(_))) => unreachable!("std did not start a thread that it was given"),
    };
    Ok(thread.join().and_then(|()| match given.recv() {
        Ok(result) => result,
        Err(_) => unreachable!("it has ended, and sends a result before that"),
    }))
}

/// Answers a `pthread_create` of `std` with a virtual thread.
///
/// # Safety
/// `start` may be called with `argument`, once, on any thread.
unsafe fn answer(start: Start, argument: *mut c_void) -> c_int {
    /// The function that `pthread_create` was to run, once, on any thread.
    struct Call(Start, *mut c_void);
    // SAFETY: the contract of `answer`.
    unsafe impl Send for Call {}
    impl Call {
        fn run(self) {
            (self.0)(self.1);
        }
    }
    // SAFETY: `run` keeps it until it has taken back the pointer.
    let Some(order) = (unsafe { ORDER.get().as_ref() }) else {
        return libc::EAGAIN;
    };
    let Some(builder) = order.builder.take() else {
        return libc::EAGAIN;
    };
    let call = Call(start, argument);
    let made = builder.spawn_at(order.place, move || call.run());
    let code = made.as_ref().map_or(libc::EAGAIN, |_| 0);
    order.made.set(Some(made));
    code
}
