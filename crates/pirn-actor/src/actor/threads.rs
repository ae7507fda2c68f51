//! The threads on which actors run.

use pirn::thread::Builder;
use std::io;
use std::sync::Arc;

/// Where the threads of an actor come from.
#[derive(Clone, Default)]
pub(crate) enum Threads {
    /// Virtual threads, as `thread::spawn` makes them.
    #[default]
    Virtual,
    /// Virtual threads of this builder: with names, stack sizes, a scheduler.
    Made(Arc<Builder>),
    /// Platform threads.
    Platform,
}

impl Threads {
    /// Starts a thread.
    pub(crate) fn start(&self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        match self {
            Threads::Virtual => Builder::new().spawn(body).map(drop),
            Threads::Made(builder) => Builder::clone(builder).spawn(body).map(drop),
            Threads::Platform => std::thread::Builder::new().spawn(body).map(drop),
        }
    }
}
