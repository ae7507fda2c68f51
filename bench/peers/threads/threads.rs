//! What the demo's server has to know of threads.

use crate::thread;
use std::io;

/// A kind of thread.
pub trait Threads: Copy + Send + Sync + 'static {
    /// Starts a thread that runs `body`.
    ///
    /// # Errors
    /// Where there is no room for another thread.
    fn spawn(self, body: impl FnOnce() + Send + 'static) -> io::Result<()>;
}

/// This program's kind.
#[derive(Clone, Copy)]
pub struct Ours;

impl Threads for Ours {
    fn spawn(self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        thread::Builder::new().spawn(body).map(drop)
    }
}
