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
    pub use crate::sleeper::Sleeper;

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
    /// A deadline that has passed, one that will not in the model, and none.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Deadline(u64);

    impl Deadline {
        const PASSED: Deadline = Deadline(0);
        const LATER: Deadline = Deadline(1);
        pub const NEVER: Deadline = Deadline(u64::MAX);

        pub const fn from_nanos(nanos: u64) -> Deadline {
            Deadline(nanos)
        }

        pub const fn nanos(self) -> u64 {
            self.0
        }

        pub fn after_nanos(timeout: u64) -> Deadline {
            match timeout {
                0 => Deadline::PASSED,
                _ => Deadline::LATER,
            }
        }

        pub fn has_passed(self) -> bool {
            self == Deadline::PASSED
        }
    }
}

pub mod vthread {
    //! Threads that are only passed on.

    use crate::Word;
    use core::ptr::{self, NonNull};
    use loom::cell::UnsafeCell;

    pub struct Core {
        /// The link of the queue that it is in. Loom checks that accesses are ordered.
        pub next: Link,
        /// Written by the thread that makes it runnable, read by the one that runs it.
        pub word: Word,
    }

    impl Core {
        pub fn new() -> Self {
            Self {
                next: Link(UnsafeCell::new(ptr::null())),
                word: Word::new(),
            }
        }
    }

    pub struct Link(UnsafeCell<*const Core>);

    impl Link {
        pub fn get(&self) -> *const Core {
            // SAFETY: loom panics before it gives the pointer while another thread writes.
            self.0.with(|link| unsafe { *link })
        }

        pub fn set(&self, next: *const Core) {
            self.replace(next);
        }

        pub fn replace(&self, next: *const Core) -> *const Core {
            // SAFETY: loom panics before it gives the pointer to two threads at once.
            self.0.with_mut(|link| unsafe { ptr::replace(link, next) })
        }
    }

    // SAFETY: loom checks each access; see above.
    unsafe impl Sync for Core {}
    // SAFETY: loom checks each access; see above.
    unsafe impl Send for Core {}

    pub struct Ready(NonNull<Core>);

    impl Ready {
        /// # Safety
        /// The core outlives the model.
        pub unsafe fn new(core: NonNull<Core>) -> Self {
            Self(core)
        }

        pub fn into_raw(self) -> NonNull<Core> {
            self.0
        }

        pub fn core(&self) -> &Core {
            // SAFETY: the contract of `new`.
            unsafe { self.0.as_ref() }
        }
    }
}

pub mod sched {
    //! What a nap knows of the runtime: how many are idle, how often the others switch, and the
    //! eventfd.

    use super::time::Deadline;
    use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
    use loom::sync::{Condvar, Mutex};

    pub struct Runtime {
        pub settings: Settings,
        pub idle: Idle,
        pub processors: Processors,
        pub poller: Poller,
    }

    pub struct Settings {
        pub parallelism: usize,
    }

    pub struct Idle(pub AtomicUsize);

    impl Idle {
        pub fn count(&self) -> usize {
            self.0.load(Relaxed)
        }
    }

    pub struct Processors(pub AtomicU32);

    impl Processors {
        pub fn switches(&self) -> u32 {
            self.0.load(Relaxed)
        }
    }

    /// The eventfd: its counter, which a nap sees, and the edge, which is what epoll reports.
    pub struct Poller {
        state: Mutex<(u64, bool)>,
        changed: Condvar,
    }

    impl Poller {
        pub fn new() -> Self {
            Self {
                state: Mutex::new((0, false)),
                changed: Condvar::new(),
            }
        }

        pub fn kick(&self) {
            let mut state = self.state.lock().unwrap();
            *state = (state.0 + 1, true);
            self.changed.notify_one();
        }

        /// A nap may end at any time.
        pub fn wait_for_kick(&self, _: Deadline) -> bool {
            loom::thread::yield_now();
            self.state.lock().unwrap().0 > 0
        }

        pub fn take_kicks(&self) -> bool {
            core::mem::take(&mut self.state.lock().unwrap().0) > 0
        }

        /// Waits in epoll: for an edge, unless the deadline has passed.
        pub fn fetch(&self, deadline: Deadline) {
            let mut state = self.state.lock().unwrap();
            while !state.1 && !deadline.has_passed() {
                state = self.changed.wait(state).unwrap();
            }
            state.1 = false;
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
        #[allow(dead_code)] // The models have no interrupts.
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

        pub fn claim(&self, outcome: Outcome) -> Option<Wakeup> {
            let wakeup = Wakeup(self.thread.clone());
            self.word.decide(outcome as u32).map(|_| wakeup)
        }

        pub fn block_until(&self, deadline: Deadline) -> Outcome {
            if deadline.has_passed() && self.claim(Outcome::TimedOut).is_some() {
                return Outcome::TimedOut;
            }
            loop {
                match self.word.outcome() {
                    Some(2) => return Outcome::Ready,
                    Some(4) => return Outcome::Closed,
                    Some(outcome) => panic!("no model claims with {outcome}"),
                    None => thread::park(),
                }
            }
        }
    }

    pub struct Wakeup(Thread);

    /// A small number, so that the model reaches the case without room for more.
    pub struct WakeList(Vec<Wakeup>);

    impl WakeList {
        pub const CAPACITY: usize = 1;

        pub fn new() -> Self {
            Self(Vec::new())
        }

        pub fn is_full(&self) -> bool {
            self.0.len() == Self::CAPACITY
        }

        pub fn push(&mut self, wakeup: Wakeup) {
            self.0.push(wakeup);
        }

        pub fn perform(&mut self) -> usize {
            let count = self.0.len();
            self.0.drain(..).for_each(|wakeup| wakeup.0.unpark());
            count
        }
    }
}

pub mod task {
    /// Wakes a task.
    pub fn wake(waker: core::task::Waker) {
        waker.wake();
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

    /// Ends the model, once all work is done: each [`wait`](Kicks::wait) returns.
    pub fn end(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// Starts a thread of a model.
pub fn spawn<W: 'static, T: 'static>(
    world: &loom::sync::Arc<W>,
    f: impl FnOnce(&W) -> T + 'static,
) -> loom::thread::JoinHandle<T> {
    let world = world.clone();
    loom::thread::spawn(move || f(&world))
}

/// Sleeps as a carrier does until nothing is `left`. One that attends sleeps until its deadline,
/// which in the model takes no time, and then does what is due.
pub fn sleep(
    attendance: &crate::attendance::Attendance,
    kicks: &Kicks,
    left: &loom::sync::atomic::AtomicUsize,
    first: impl Fn() -> time::Deadline,
    act: impl Fn(u64),
) {
    loop {
        let deadline = attendance.begin(&first);
        if deadline == time::Deadline::NEVER {
            match kicks.wait() {
                true => continue,
                false => return,
            }
        }
        attendance.end(deadline);
        act(deadline.nanos());
        if left.load(loom::sync::atomic::Ordering::Relaxed) == 0 {
            return;
        }
    }
}
