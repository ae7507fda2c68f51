//! What there is of a platform thread that has come to know this library: an id, and its word of
//! waiting.

use super::core_::next_id;
use super::wait_word::WaitWord;
use std::sync::Arc;

/// A platform thread.
pub(crate) struct Platform {
    pub(crate) thread: std::thread::Thread,
    pub(crate) id: u64,
    pub(crate) wait: WaitWord,
}

thread_local! {
    static PLATFORM: Arc<Platform> = Arc::new(Platform::of_this_thread());
}

impl Platform {
    fn of_this_thread() -> Platform {
        Platform {
            thread: std::thread::current(),
            id: next_id(),
            wait: WaitWord::idle(),
        }
    }
}

/// The running platform thread.
pub(crate) fn current() -> Arc<Platform> {
    // In the destructors of a thread's locals there may be none any more: then a passing one must
    // do.
    PLATFORM
        .try_with(Arc::clone)
        .unwrap_or_else(|_| Arc::new(Platform::of_this_thread()))
}

/// The running platform thread's word; none near its end.
pub(crate) fn wait_word() -> Option<&'static WaitWord> {
    PLATFORM
        .try_with(|platform| {
            let word: *const WaitWord = &platform.wait;
            // SAFETY: in place until the thread's end. The 'static is a lie told to callers on that
            // very thread, who wait, and so cannot end, while they use it.
            unsafe { &*word }
        })
        .ok()
}
