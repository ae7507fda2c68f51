//! The part that the joiners that a failure cancels have in common.

use crate::scope::{Completed, Failure};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn_rt::poison::locked;
use std::sync::Mutex;

/// Keeps the first failure.
#[derive(Debug)]
pub(super) struct KeptFailure<E> {
    /// Whether there is one. Saves the lock in a scope in which nothing fails.
    failed: AtomicBool,
    failure: Mutex<Option<Failure<E>>>,
}

impl<E> KeptFailure<E> {
    pub(super) fn new() -> KeptFailure<E> {
        KeptFailure {
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Takes the failure of a subtask, if it is the first, and cancels the scope on any failure.
    pub(super) fn on_complete<T>(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        if subtask.is_success() {
            return ControlFlow::Continue(());
        }
        let mut first = locked(&self.failure);
        if first.is_none()
            && let Err(failure) = subtask.take()
        {
            *first = Some(failure);
        }
        self.failed.store(true, Ordering::Relaxed); // Relaxed: published by the cancellation.
        ControlFlow::Break(())
    }

    /// Takes the failure, if there is one.
    pub(super) fn take(&self) -> Option<Failure<E>> {
        // Relaxed: the join has seen the end of all subtasks, or that this failure cancelled the
        // scope.
        match self.failed.load(Ordering::Relaxed) {
            true => locked(&self.failure).take(),
            false => None,
        }
    }
}
