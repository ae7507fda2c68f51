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
    use loom::sync::Mutex;
    pub use loom::sync::MutexGuard as Guard;

    pub struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub fn lock(&self) -> Guard<'_, T> {
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

    /// Lets others run.
    pub fn nap(_: u64) {
        loom::thread::yield_now();
    }

    /// Lets others run.
    pub fn back_off(_: u32) {
        loom::thread::yield_now();
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

pub mod wait {
    //! One episode of waiting, decided in a wait word as in the runtime.

    use super::time::Deadline;
    use crate::wait_word::WaitWord;
    use loom::thread::{self, Thread};

    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(u32)]
    pub enum Outcome {
        Ready = 2,
        TimedOut = 3,
        Closed = 4,
        Interrupted = 5,
    }

    pub struct Wait {
        word: WaitWord,
        thread: Thread,
    }

    impl Wait {
        pub fn new() -> Self {
            Self {
                word: WaitWord::pending(),
                thread: thread::current(),
            }
        }

        pub fn claim(&self, outcome: Outcome) -> Option<Thread> {
            let thread = self.thread.clone();
            self.word.decide(outcome as u32).map(|_| thread)
        }

        pub fn block_until(&self, deadline: Deadline) -> Outcome {
            if deadline.has_passed() && self.claim(Outcome::TimedOut).is_some() {
                return Outcome::TimedOut;
            }
            loop {
                match self.word.outcome() {
                    Some(2) => return Outcome::Ready,
                    Some(4) => return Outcome::Closed,
                    Some(outcome) => panic!("nobody claims with {outcome}"),
                    None => thread::park(),
                }
            }
        }
    }

    /// A small number, so that the model reaches the case without room for more.
    pub struct WakeList(Vec<Thread>);

    impl WakeList {
        pub const CAPACITY: usize = 1;

        pub fn new() -> Self {
            Self(Vec::new())
        }

        pub fn is_full(&self) -> bool {
            self.0.len() == Self::CAPACITY
        }

        pub fn len(&self) -> usize {
            self.0.len()
        }

        pub fn push(&mut self, thread: Thread) {
            self.0.push(thread);
        }

        pub fn perform(&mut self) -> usize {
            let count = self.0.len();
            self.0.drain(..).for_each(|thread| thread.unpark());
            count
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

    /// Takes a kick without waiting. Returns whether there was one.
    pub fn take(&self) -> bool {
        core::mem::take(&mut self.state.lock().unwrap().0)
    }

    /// Ends the model: all work is done, and nobody waits any more.
    pub fn end(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}
