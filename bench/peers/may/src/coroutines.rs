//! What the workloads share: joining coroutines, and waiting for many of them to arrive.

use anyhow::{Error, anyhow};
use may::coroutine::{self, JoinHandle};
use may::go;
use may::sync::SyncFlag;
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The result of a coroutine; its panic becomes the caller's, so that it comes out at the top.
pub fn joined<T>(handle: JoinHandle<T>) -> T {
    handle.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Does the work in a coroutine, and waits for it.
pub fn inside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    joined(go!(move || {
        let result = work();
        end_after_park();
        result
    }))
}

/// What a coroutine that has parked calls before it ends.
///
/// may 0.3.51 resumes a coroutine that is unparked in the instant in which it parks from within
/// its own `park`. If it then ends, without waiting once more, and its handle has been dropped,
/// may waits for that `park` to be over before it frees the coroutine: forever, and the worker is
/// lost. A yield leaves the `park`.
pub fn end_after_park() {
    coroutine::yield_now();
}

/// Parks the coroutine, which is about to end, until it is released.
pub fn park_until(released: &AtomicBool) {
    while !released.load(SeqCst) {
        coroutine::park();
    }
    end_after_park();
}

/// Releases and joins them; gives the time it took, and the wrapping sum of what they returned.
pub fn wake_all(handles: Vec<JoinHandle<u64>>, released: &AtomicBool) -> (Duration, u64) {
    let start = Instant::now();
    released.store(true, SeqCst);
    for handle in &handles {
        handle.coroutine().unpark();
    }
    let sum = handles.into_iter().map(joined).fold(0, u64::wrapping_add);
    (start.elapsed(), sum)
}

/// What a panic said.
pub fn error_of(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    match text.or_else(|| panic.downcast_ref::<&str>().copied()) {
        Some(text) => anyhow!("{text}"),
        None => anyhow!("a coroutine panicked"),
    }
}

/// The sum of 0 … n−1.
pub fn sum_below(n: u64) -> u64 {
    n * n.saturating_sub(1) / 2
}

/// Lets one wait until as many coroutines as expected have come to a place.
pub struct Arrivals {
    missing: AtomicUsize,
    complete: SyncFlag,
}

impl Arrivals {
    pub fn expect(count: usize) -> Arrivals {
        Arrivals {
            missing: AtomicUsize::new(count),
            complete: SyncFlag::new(),
        }
    }

    pub fn arrive(&self) {
        if self.missing.fetch_sub(1, SeqCst) == 1 {
            self.complete.fire();
        }
    }

    pub fn wait(&self) {
        self.complete.wait();
    }
}
