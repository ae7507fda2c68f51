//! A runnable thread that is held while it is looked at, and those who mount it.
//!
//! `mounted_on` is a word of the model's, with the orderings of `Core`'s. The fence of a mount
//! stands for the barrier that `membarrier` executes there. It hides a missing Release in `take`,
//! which is needed where two look: in the program, there is no fence between `mounted_on` and that.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::fence;
use loom::thread;

use crate::state::MountFlags;
use crate::{Word, check};

const RUNNABLE: u32 = 1;
const RUNNING: u32 = 2;

struct Thread {
    mount_flags: MountFlags,
    mounted_on: AtomicU32,
    stack: Word,
}

impl Thread {
    /// Returns a thread that is runnable, and has run before.
    fn new() -> Arc<Thread> {
        let mount_flags = MountFlags::new();
        mount_flags.take(|_| ());
        Arc::new(Thread {
            mount_flags,
            mounted_on: AtomicU32::new(RUNNABLE),
            stack: Word::new(),
        })
    }

    /// Mounts it until it yields.
    fn mount(&self) {
        self.mounted_on.store(RUNNING, Relaxed);
        fence(SeqCst);
        if !self.mount_flags.is_nothing() {
            self.mount_flags.take(|_| thread::yield_now());
        }
        self.stack.write(1); // It runs.
        self.stack.write(2); // It is off its stack.
        self.mounted_on.store(RUNNABLE, Release);
    }

    /// Looks at its stack, if it can be held. Returns whether it could.
    fn look(&self) -> bool {
        if !self.mount_flags.ask() {
            return false;
        }
        fence(SeqCst);
        if !self.mount_flags.hold() {
            self.mount_flags.withdraw();
            return false;
        }
        let runnable = self.mounted_on.load(Acquire) == RUNNABLE;
        if runnable {
            assert_ne!(self.stack.read(), 1, "it runs");
        }
        self.mount_flags.release();
        runnable
    }
}

#[test]
fn a_thread_does_not_run_while_it_is_held() {
    check(4, || {
        let thread = Thread::new();
        let other = thread.clone();
        let mounts = thread::spawn(move || {
            other.mount();
            other.mount();
        });
        thread.look();
        mounts.join().unwrap();
        assert!(thread.mount_flags.is_nothing());
    });
}

#[test]
fn two_who_look_do_not_hold_it_for_each_other() {
    check(3, || {
        let thread = Thread::new();
        let [mounts, looks] = [thread.clone(), thread.clone()];
        let mounts = thread::spawn(move || mounts.mount());
        let looks = thread::spawn(move || looks.look());
        thread.look();
        mounts.join().unwrap();
        looks.join().unwrap();
        assert!(thread.mount_flags.is_nothing());
    });
}

#[test]
fn a_thread_that_nobody_mounts_is_held() {
    check(3, || {
        let thread = Thread::new();
        thread.mount_flags.time(1 << 20); // That is lost.
        assert!(thread.look());
        assert!(thread.mount_flags.is_nothing());
    });
}
