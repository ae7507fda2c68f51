//! Attempts to start the runtime: one at a time, and none after one has failed for good.

use crate::lock::Lock;
use std::io;

/// Held during an attempt.
pub static STARTING: Lock<()> = Lock::new(());

/// Makes it possible to start in the child of a fork: a thread that is gone may have been starting.
///
/// # Safety
/// In the child of a fork, whose only thread is the caller.
pub(super) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe {
        STARTING.renew(());
        FAILURE.0.renew(None);
    }
}

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
