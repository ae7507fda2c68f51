//! Threads with the names and the meaning of `std::thread`, virtual by default.
//!
//! Change `use std::thread;` to `use pirn::thread;`: this module spawns virtual threads, and all
//! blocking operations of the standard library park them. All functions may be called from platform
//! threads as well, and then act on the platform thread.
//!
//! ```
//! use pirn::thread;
//! use std::sync::mpsc;
//!
//! let (sender, receiver) = mpsc::channel();
//! for i in 0..1000 {
//!     let sender = sender.clone();
//!     thread::spawn(move || sender.send(i).unwrap());
//! }
//! drop(sender);
//! assert_eq!(receiver.iter().sum::<i32>(), 499_500);
//! ```

pub(crate) mod annotate;
pub(crate) mod block_on;
mod builder;
mod identity;
pub(crate) mod interrupt;
mod join;
pub(crate) mod names;
mod park;
pub(crate) mod scheduler;
pub(crate) mod scoped;
mod semaphore;

pub use crate::panic::Panic;
pub use annotate::annotate;
pub use builder::Builder;
pub use identity::{Thread, ThreadId, ThreadState, current};
pub use interrupt::{
    Interrupted, OnInterrupt, is_interrupt, is_interrupted, on_interrupt, park_interruptible,
    park_timeout_interruptible, sleep_interruptible, take_interrupt,
};
pub use join::{JoinFuture, JoinHandle, quiesce};
pub use park::{Parker, no_preemption, park, park_timeout, sleep, sleep_until, yield_now};
pub use scoped::{Scope, ScopedJoinHandle, scope};
pub use semaphore::{Permit, Semaphore};
pub use std::thread::{AccessError, LocalKey, Result, available_parallelism, panicking};

/// Spawns a virtual thread.
///
/// Like [`std::thread::spawn`]. The thread is detached when its handle is dropped.
///
/// # Panics
/// If the thread cannot be created; [`Builder::spawn`] returns the error instead.
///
/// # Examples
/// ```
/// let handle = pirn::thread::spawn(|| 6 * 7);
/// assert_eq!(handle.join().unwrap(), 42);
/// ```
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match Builder::new().spawn(f) {
        Ok(handle) => handle,
        Err(e) => panic!("failed to spawn a virtual thread: {e}"),
    }
}
