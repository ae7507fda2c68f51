//! The surroundings of the modelled files: fences, locks, the kernel's futex and the time.

pub mod arch {
    use loom::sync::atomic::{Ordering, fence};

    pub fn full_fence() {
        fence(Ordering::SeqCst);
    }

    pub fn fence_after_atomic() {
        fence(Ordering::SeqCst);
    }
}

pub mod lock {
    use loom::sync::{Mutex, MutexGuard};

    pub struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

pub mod sys {
    use super::time::Deadline;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    loom::lazy_static! {
        /// The kernel's queue of a futex word. No model uses two words.
        static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    /// Returns the time, which stands still.
    pub fn now() -> u64 {
        0
    }

    pub fn futex_wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Result<(), ()> {
        let queue = QUEUE.0.lock().unwrap();
        // SeqCst: the kernel compares behind a full fence.
        if word.load(Ordering::SeqCst) == expected && !deadline.has_passed() {
            drop(QUEUE.1.wait(queue));
        }
        Ok(())
    }

    pub fn futex_wake(_: &AtomicU32, count: i32) -> usize {
        let _queue = QUEUE.0.lock().unwrap();
        assert_eq!(count, 1);
        QUEUE.1.notify_one();
        1
    }
}

pub mod time {
    /// A deadline that has passed, or never will.
    #[derive(Clone, Copy, PartialEq)]
    pub struct Deadline(bool);

    impl Deadline {
        pub const NEVER: Deadline = Deadline(false);

        pub fn after_nanos(timeout: u64) -> Deadline {
            Deadline(timeout == 0)
        }

        pub fn has_passed(self) -> bool {
            self.0
        }
    }
}

/// The eventfd that idle carriers sleep on, edge-triggered. Kicks not yet fetched count as one.
pub struct Kicks {
    state: loom::sync::Mutex<(bool, bool)>,
    changed: loom::sync::Condvar,
}

impl Kicks {
    pub fn new() -> Self {
        Self {
            state: loom::sync::Mutex::new((false, false)),
            changed: loom::sync::Condvar::new(),
        }
    }

    pub fn kick(&self) {
        self.state.lock().unwrap().0 = true;
        self.changed.notify_one();
    }

    /// Waits for a kick. Returns `false` at the end of the model.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        while !state.0 && !state.1 {
            state = self.changed.wait(state).unwrap();
        }
        state.0 = false;
        !state.1
    }

    /// Ends the model: all work is done, and nobody waits any more.
    pub fn end(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}
