//! What a process does once: it learns the layout of its C library before the first virtual thread,
//! and starts the runtime. The child of a fork [begins anew](renew).
//!
//! The child of a process with virtual threads has copies of all data, and one thread. The others
//! held locks and were in the middle of changes. So the child leaves the parent's runtime where it
//! is, and each file resets its statics in a function `after_fork`, which `renew` calls. A test
//! (`pirn-api/tests/statics.rs`) checks that every static is reset, or says why it is kept.

use crate::blocking::{fds, parking_lot, wait};
use crate::glibc::{late, malloc, symbols, tls};
use crate::lock::Lock;
#[cfg(feature = "dump")]
use crate::sched::current_stack;
use crate::sched::{carrier, deferred, magazines, os_thread, runtime};
use crate::stack::{depth, region};
use crate::vthread::{helper, table};
use crate::{recorder, sanitizer};
use core::ffi::c_void;
use std::io;

/// Held during an attempt to start the runtime: there is one at a time.
pub static STARTING: Lock<()> = Lock::new(());

/// Why the runtime could not start, after an attempt has failed.
pub struct StartFailure(Lock<Option<(io::ErrorKind, String)>>);
pub static FAILURE: StartFailure = StartFailure(Lock::new(None));

impl StartFailure {
    /// Runs `launch`, unless it has failed before. Remembers a failure.
    pub fn with<T>(&self, launch: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if let Some((kind, text)) = &*self.0.lock() {
            return Err(io::Error::new(*kind, text.clone()));
        }
        let result = launch();
        if let Err(e) = &result {
            *self.0.lock() = Some((e.kind(), e.to_string()));
        }
        result
    }
}

/// Makes it possible to start in the child of a fork: a thread of the parent may have been
/// starting.
///
/// # Safety
/// In the child of a fork, whose only thread is the caller.
unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe {
        STARTING.renew(());
        FAILURE.0.renew(None);
    }
}

/// Takes the runtime out of service in the child of a fork. The carriers exist only in the parent,
/// and threads that were not forked may hold locks, so nothing touches it again.
pub fn stop() {
    recorder::stop();
    os_thread::after_fork();
    if let Some(runtime) = runtime::get() {
        // Now: later the program may have closed them, and their numbers may mean other files.
        runtime.poller.close_in_child();
    }
    // SAFETY: in the child.
    unsafe { after_fork() };
    runtime::stop();
}

/// Resets the state of the process that belongs to the parent's runtime.
///
/// # Safety
/// In the child of a fork that has no runtime yet, under the lock of the start.
pub unsafe fn renew() {
    // SAFETY: the caller's contract.
    unsafe {
        parking_lot::after_fork();
        late::after_fork();
        magazines::after_fork();
        recorder::after_fork();
    }
    fds::after_fork();
    wait::after_fork();
    region::after_fork();
    table::after_fork();
    carrier::after_fork();
    helper::after_fork();
    deferred::after_fork();
    #[cfg(feature = "dump")]
    current_stack::after_fork();
}

/// Looks functions of libc up, and learns the layout of threads. Keeps `reserve` bytes in each
/// virtual thread for the thread-local data of libraries to come.
///
/// The layout is learned on a *fresh* platform thread, with unused thread-locals.
///
/// # Errors
/// The C library is not one that is known, or there is no platform thread.
pub fn study(reserve: usize) -> io::Result<()> {
    symbols::prepare();
    malloc::prepare().map_err(unsupported)?;
    on_fresh_thread(|| study_thread(reserve))
}

/// Checks at the end of the process how deep its stacks have been used. Called once, at the start.
pub fn check_stacks_at_exit() {
    extern "C" fn at_exit() {
        // Not in the child of a fork.
        if runtime::is_started() {
            depth::look_at_all();
        }
    }
    // SAFETY: the function does not unwind.
    unsafe { libc::atexit(at_exit) };
}

/// Returns the error of a process that cannot have virtual threads.
pub fn unsupported(text: String) -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("pirn cannot run here: {text}"),
    )
}

/// Learns the layout of threads in this C library, and keeps `reserve` bytes in each for the
/// thread-local data of libraries to come. Runs on a fresh platform thread.
fn study_thread(reserve: usize) -> Result<(), String> {
    malloc::probe()?;
    let template = tls::Template::capture(reserve)?;
    sanitizer::study(&template)?;
    let verified = template.rehearse(|tp| {
        // SAFETY: `rehearse` passes a complete block, which no thread uses.
        unsafe { malloc::verify(tp) }
    });
    tls::install(template);
    verified
}

/// Runs `f` on a platform thread that has run nothing else.
fn on_fresh_thread<F: Fn() -> Result<(), String> + Sync>(f: F) -> io::Result<()> {
    struct Task<F> {
        f: F,
        result: Result<(), String>,
    }
    extern "C" fn run<F: Fn() -> Result<(), String>>(task: *mut c_void) -> *mut c_void {
        // SAFETY: `join` below keeps the task in place until this thread has ended.
        let task = unsafe { &mut *task.cast::<Task<F>>() };
        task.result = (task.f)();
        core::ptr::null_mut()
    }
    let mut task = Task { f, result: Ok(()) };
    // SAFETY: a plain thread, joined at once. libc's own functions, because Pirn's are not ready
    // yet.
    let created = unsafe {
        let mut thread: libc::pthread_t = 0;
        let task = (&raw mut task).cast();
        let created = libc::pthread_create(&mut thread, core::ptr::null(), run::<F>, task);
        if created == 0 {
            libc::pthread_join(thread, core::ptr::null_mut());
        }
        created
    };
    if created != 0 {
        return Err(io::Error::from_raw_os_error(created));
    }
    task.result.map_err(unsupported)
}
