//! Per-platform-thread state, created on first use: an id and a wait word.

use super::ids;
use super::wait_word::WaitWord;
use std::sync::Arc;

/// The state of a platform thread.
pub struct Platform {
    pub thread: std::thread::Thread,
    pub id: u64,
    pub wait: WaitWord,
}

thread_local! {
    static PLATFORM: Arc<Platform> = Arc::new(Platform::of_this_thread());
}

impl Platform {
    fn of_this_thread() -> Platform {
        Platform {
            thread: std::thread::current(),
            id: ids::next(),
            wait: WaitWord::idle(),
        }
    }
}

/// Returns the state of the running platform thread.
#[inline]
pub fn current() -> Arc<Platform> {
    // While thread-locals are being destroyed ours may be gone; use a temporary one.
    PLATFORM
        .try_with(Arc::clone)
        .unwrap_or_else(|_| Arc::new(Platform::of_this_thread()))
}

/// Calls `f` with the running platform thread's word. `None` near the thread's end.
pub fn with_wait_word<R>(f: impl FnOnce(&WaitWord) -> R) -> Option<R> {
    PLATFORM.try_with(|platform| f(&platform.wait)).ok()
}
