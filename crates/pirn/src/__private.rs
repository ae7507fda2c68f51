//! What the macros expand to. Not for use by hand.

use crate::thread::Builder;

/// Runs `f` on a virtual thread and returns what it returns; a panic goes on in the caller.
///
/// # Panics
/// When the runtime cannot start.
#[track_caller]
pub fn run_main<T: Send + 'static>(name: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    match Builder::new().name(name.to_owned()).spawn(f) {
        Ok(handle) => match handle.join() {
            Ok(result) => result,
            Err(payload) => std::panic::resume_unwind(payload),
        },
        Err(e) => panic!("{e}"),
    }
}
