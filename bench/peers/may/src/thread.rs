//! may's coroutines by the names of `std::thread`. A thread that is no coroutine, such as main's,
//! parks by itself: may's `park` does nothing there.

use may::coroutine::{self, Coroutine};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

pub use may::coroutine::{sleep, yield_now};

/// A coroutine, or a thread.
#[derive(Clone)]
pub enum Thread {
    Coroutine(Coroutine),
    System(std::thread::Thread),
}

impl Thread {
    pub fn unpark(&self) {
        match self {
            Thread::Coroutine(coroutine) => coroutine.unpark(),
            Thread::System(thread) => thread.unpark(),
        }
    }
}

// These are not inlined, for what they look at is thread-local, and a coroutine may come back on
// another thread.
#[inline(never)]
pub fn current() -> Thread {
    match coroutine::is_coroutine() {
        true => Thread::Coroutine(coroutine::current()),
        false => Thread::System(std::thread::current()),
    }
}

#[inline(never)]
pub fn park() {
    match coroutine::is_coroutine() {
        true => coroutine::park(),
        false => std::thread::park(),
    }
}

#[inline(never)]
pub fn park_timeout(limit: Duration) {
    match coroutine::is_coroutine() {
        true => coroutine::park_timeout(limit),
        false => std::thread::park_timeout(limit),
    }
}

pub struct Builder(coroutine::Builder);

impl Builder {
    pub fn new() -> Builder {
        Builder(coroutine::Builder::new())
    }

    pub fn stack_size(self, bytes: usize) -> Builder {
        // may counts words.
        Builder(self.0.stack_size(bytes / size_of::<usize>()))
    }

    /// may panics, with the operating system's words, when it cannot get a stack.
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        // SAFETY: only the coroutines of `scope` are cancelled, the stacks are large enough, and
        // no value of a thread-local is kept across a call that waits.
        let spawned = catch_unwind(AssertUnwindSafe(|| unsafe { self.0.spawn(body) }));
        let handle = spawned.map_err(|panic| io::Error::other(words(&*panic)))??;
        let thread = Thread::Coroutine(handle.coroutine().clone());
        Ok(JoinHandle { handle, thread })
    }
}

pub struct JoinHandle<T> {
    handle: coroutine::JoinHandle<T>,
    thread: Thread,
}

impl<T> JoinHandle<T> {
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    pub fn is_finished(&self) -> bool {
        self.handle.is_done()
    }

    pub fn join(self) -> std::thread::Result<T> {
        self.handle.join()
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
    text.unwrap_or_else(|| "a coroutine panicked".to_owned())
}
