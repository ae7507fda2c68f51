//! The common code of the tests of scopes: kinds of owners, subtasks that wait, counts of drops.

#![allow(dead_code)] // each test binary uses only a part of it

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use pirn::scope::{self, Completed, JoinError, Joiner, JoinerFor, State, Subtask};
use pirn::thread;

use crate::common::on_virtual;
pub use crate::common::{interrupt_me_soon, until, until_it_waits};

/// Longer than any test.
pub const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The error of subtasks in these tests.
pub type Oops = &'static str;

/// Runs a test on owners of both kinds. It must leave nothing behind.
#[track_caller]
pub fn everywhere(test: fn()) {
    let whole = move || {
        test();
        assert!(
            !thread::take_interrupt(),
            "interrupted, and not by the test"
        );
        assert!(scopes_of_mine().is_empty());
    };
    whole();
    on_virtual(whole);
}

/// Returns the open scopes of the running thread.
pub fn scopes_of_mine() -> Vec<scope::ScopeInfo> {
    let mut all = scope::snapshot();
    all.retain(|scope| scope.owner.id() == thread::current().id());
    all
}

/// Waits until a subtask has completed.
pub fn until_done<T, E>(subtask: &Subtask<'_, T, E>) {
    until(|| subtask.state() != State::Unavailable);
}

/// Waits until no subtask of a scope runs any more; all of them have begun.
pub fn until_all_have_left<J: Joiner>(scope: &scope::TaskScope<'_, '_, J>) {
    until(|| format!("{scope:?}").contains("subtasks: []"));
}

/// Waits for an interrupt, and fails with `"interrupted"`.
pub fn forever<T>() -> Result<T, Oops> {
    match thread::sleep_interruptible(FOREVER) {
        Err(thread::Interrupted) => Err("interrupted"),
        Ok(()) => unreachable!("a day has passed"),
    }
}

/// Counts itself in, waits for an interrupt, counts it, and fails with `"interrupted"`.
pub fn counted_forever<T>(begun: &AtomicUsize, interrupted: &AtomicUsize) -> Result<T, Oops> {
    begun.fetch_add(1, SeqCst);
    let result = forever();
    interrupted.fetch_add(1, SeqCst);
    result
}

/// Returns the payload of the panic that `f` ends with.
pub fn payload_of<R>(f: impl FnOnce() -> R) -> Box<dyn Any + Send> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it was to panic"),
        Err(payload) => payload,
    }
}

/// Returns the message of the panic that `f` ends with.
pub fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let panic = thread::Panic::new(payload_of(f));
    panic.message().unwrap_or("no text").to_owned()
}

/// Counts tokens made and dropped: each once.
#[derive(Default)]
pub struct Drops {
    made: AtomicUsize,
    dropped: AtomicUsize,
}

impl Drops {
    pub fn token(&self) -> Token<'_> {
        self.made.fetch_add(1, SeqCst);
        Token(self)
    }

    /// Asserts that this many tokens have been made, and each of them dropped once.
    #[track_caller]
    pub fn assert_all(&self, count: usize) {
        let seen = (self.made.load(SeqCst), self.dropped.load(SeqCst));
        assert_eq!(seen, (count, count), "tokens made and dropped");
    }

    pub fn dropped(&self) -> usize {
        self.dropped.load(SeqCst)
    }
}

/// Counts when it is dropped.
pub struct Token<'a>(&'a Drops);

impl Drop for Token<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
    }
}

/// Counts its calls, and cancels the scope when the first subtask completes.
#[derive(Default)]
pub struct CancelOnFirst {
    pub forks: AtomicUsize,
    pub completions: AtomicUsize,
}

impl Joiner for CancelOnFirst {
    type Error = Oops;
    type Output = usize;

    /// Returns how many subtasks have completed.
    fn result(&self) -> Result<usize, JoinError<Oops>> {
        Ok(self.completions.load(SeqCst))
    }
}

impl<T> JoinerFor<T> for CancelOnFirst {
    fn on_fork(&self, index: usize) -> ControlFlow<()> {
        assert_eq!(self.forks.fetch_add(1, SeqCst), index);
        ControlFlow::Continue(())
    }

    fn on_complete(&self, _: &mut Completed<'_, T, Oops>) -> ControlFlow<()> {
        self.completions.fetch_add(1, SeqCst);
        ControlFlow::Break(())
    }
}
