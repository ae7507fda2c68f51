//! What the runtime learns of this process's C library before the first virtual thread: once.

use crate::glibc::{malloc, symbols, tls};
use crate::sanitizer;
use core::ffi::c_void;
use std::io;

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
    sanitizer::study(template.image_bytes())?;
    let verified = template.rehearse(|tp| {
        // SAFETY: `rehearse` passes a complete block, which no thread uses.
        unsafe { malloc::verify(tp) }
    });
    tls::install(template);
    verified
}

/// Runs `f` on a platform thread that has run nothing else.
fn on_fresh_thread<F: Fn() -> Result<(), String> + Sync>(f: F) -> io::Result<()> {
    struct Errand<F> {
        f: F,
        result: Result<(), String>,
    }
    extern "C" fn run<F: Fn() -> Result<(), String>>(task: *mut c_void) -> *mut c_void {
        // SAFETY: `join` below keeps the task in place until this thread has ended.
        let task = unsafe { &mut *task.cast::<Errand<F>>() };
        task.result = (task.f)();
        core::ptr::null_mut()
    }
    let mut task = Errand { f, result: Ok(()) };
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
