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
mod builder;
pub(crate) mod drive;
pub(crate) mod group;
mod identity;
mod interrupt;
pub(crate) mod join;
mod join_future;
mod listeners;
mod names;
pub(crate) mod panics;
mod park;
mod parker;
mod quiesce;
pub(crate) mod scheduler;
pub(crate) mod scoped;
mod semaphore;
#[cfg(feature = "macros")]
pub(crate) mod std_start;

pub use crate::panic::Panic;
pub use annotate::annotate;
pub use builder::Builder;
pub use identity::{Thread, ThreadId, ThreadState, current};
pub use interrupt::{
    Interrupted, is_interrupt, is_interrupted, park_interruptible, park_timeout_interruptible,
    sleep_interruptible, sleep_until_interruptible, take_interrupt,
};
pub use join::JoinHandle;
pub use join_future::JoinFuture;
pub(crate) use listeners::tell as tell_listeners;
pub use listeners::{OnInterrupt, on_interrupt};
pub use park::{no_preemption, park, park_timeout, sleep, sleep_until, yield_now};
pub use parker::Parker;
pub use quiesce::quiesce;
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
