//! The one thread on which tokio and `async-nats` live.
//!
//! It is a virtual thread: tokio's `epoll_wait` parks it, so that an answer wakes an asker without
//! the kernel's help. A platform thread in its place costs two wake-ups by the kernel per ask.

use crate::error::NodeError;
use crate::poison::locked;
use core::time::Duration;
use pirn::thread::{self, JoinHandle};
use std::future::Future;
use std::sync::{Arc, Mutex, mpsc};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

pub(super) struct Runtime {
    handle: Handle,
    over: Arc<Notify>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Runtime {
    pub(super) fn start() -> Result<Runtime, NodeError> {
        let (tell, told) = mpsc::channel();
        let over = Arc::new(Notify::new());
        let until_over = Arc::clone(&over);
        let run = move || match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                drop(tell.send(Ok(runtime.handle().clone())));
                runtime.block_on(until_over.notified());
            }
            Err(error) => drop(tell.send(Err(error))),
        };
        let thread = thread::Builder::new().name("nats".to_string()).spawn(run);
        let thread = thread.map_err(NodeError::unavailable)?;
        let handle = told.recv().expect("it tells, whatever happens");
        Ok(Runtime {
            handle: handle.map_err(NodeError::unavailable)?,
            over,
            thread: Mutex::new(Some(thread)),
        })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs a future on the thread, and waits for its result.
    pub(super) fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NodeError> {
        pirn::block_on(self.handle.spawn(future)).map_err(|_| NodeError::Closed)
    }

    /// Does the same with a time limit.
    pub(super) fn run_within<T: Send + 'static>(
        &self,
        limit: Duration,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NodeError> {
        let limited = self.run(async move { tokio::time::timeout(limit, future).await })?;
        limited.map_err(|_| NodeError::unavailable("no answer in time"))
    }

    /// Ends the thread, and what runs on it. May be called from it: then it ends a little later.
    pub(super) fn stop(&self) {
        self.over.notify_one();
        let thread = locked(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            drop(thread.join());
        }
    }
}
