//! Calls that a signal's handler may interrupt.

use std::io;

/// Calls `call` until no handler has interrupted it.
pub fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
