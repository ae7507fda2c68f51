//! The slot for one answer.
//!
//! ```text
//!   empty --give--> given --take--> taken
//!     |  \
//!     |   wait --> awaited (by a thread or a task) --give--> given, and the waiter is woken
//!     |     (or displaced: as given, with the error `Gone`)
//!   abandon
//!     v
//!   abandoned: a given answer is dropped, and a request that has not begun is skipped
//! ```
//!
//! `word.rs` says which side owns the contents of the slot. There is no lock: each side needs one
//! exchange.

use super::word::{By, Left, Sides, Word};
use crate::edges::Over;
use crate::error::AskError;
use crate::time::{Late, Limit};
use core::cell::UnsafeCell;
use core::ops::Deref;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;
use core::task::Waker;
use pirn::thread::Parker;

/// A waiter to be woken.
pub(super) enum Waiter {
    /// The thread at the slot's parker. The mark says first that its wait is over.
    Thread(Over),
    Task(Waker),
}

type Answer<R> = Result<R, AskError>;

struct Slot<R> {
    word: Word,
    answer: UnsafeCell<Option<Answer<R>>>,
    waiter: UnsafeCell<Option<Waiter>>,
    /// Where a thread waits. It does not use its own permit, which other code on it may use
    /// meanwhile.
    parker: Parker,
    sides: Sides,
}

/// One side's pointer to the slot.
struct Side<R>(NonNull<Slot<R>>);

impl<R> Deref for Side<R> {
    type Target = Slot<R>;
    fn deref(&self) -> &Slot<R> {
        // SAFETY: the slot is freed when both sides have left, and this side has not.
        unsafe { self.0.as_ref() }
    }
}

impl<R> Drop for Side<R> {
    fn drop(&mut self) {
        if self.sides.leave() {
            // SAFETY: `sides` leaked this box, and both sides have left: no other pointer to it is
            // used.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

// SAFETY: a side is like an `Arc` of a slot. `Slot` is `Send` and `Sync` for `R: Send`.
unsafe impl<R: Send> Send for Side<R> {}
// SAFETY: as for `Send`.
unsafe impl<R: Send> Sync for Side<R> {}

// A panic leaves the contents of either side whole.
impl<R> UnwindSafe for Side<R> {}
impl<R> RefUnwindSafe for Side<R> {}

// SAFETY: the two sides hand each other the contents, answers and `Waiter`s, which are `Send`, by
// the word. Neither gets a reference to contents that the other one owns.
unsafe impl<R: Send> Sync for Slot<R> {}

impl<R> Slot<R> {
    /// Puts or takes the answer.
    ///
    /// # Safety
    /// The caller is the side that owns the answer, and keeps no reference to it.
    #[expect(clippy::mut_from_ref, reason = "see Safety")]
    unsafe fn answer(&self) -> &mut Option<Answer<R>> {
        // SAFETY: the caller's contract.
        unsafe { &mut *self.answer.get() }
    }

    /// Puts or takes the waiter.
    ///
    /// # Safety
    /// As for `answer`.
    #[expect(clippy::mut_from_ref, reason = "see Safety")]
    unsafe fn waiter(&self) -> &mut Option<Waiter> {
        // SAFETY: the caller's contract.
        unsafe { &mut *self.waiter.get() }
    }
}

/// Makes a slot, and its two sides.
pub(super) fn sides<R>() -> (Giver<R>, Asker<R>) {
    let slot = Box::new(Slot {
        word: Word::new(),
        answer: UnsafeCell::new(None),
        waiter: UnsafeCell::new(None),
        parker: Parker::new(),
        sides: Sides::both(),
    });
    let slot = NonNull::from(Box::leak(slot));
    (Giver(Side(slot)), Asker(Side(slot)))
}

/// The side that gives the answer. There is one.
pub(super) struct Giver<R>(Side<R>);

impl<R> Giver<R> {
    /// Gives the answer, and wakes the waiter. Returns the answer if the asker has abandoned the
    /// slot.
    pub(super) fn give(&mut self, answer: Answer<R>) -> Result<(), Answer<R>> {
        if !self.0.word.is_open() {
            return Err(answer);
        }
        // SAFETY: the word is open, so no answer has been given, and there is no other giver.
        unsafe { *self.0.answer() = Some(answer) };
        self.given(self.0.word.give())
    }

    /// Called before the request is dropped. A thread that waits is woken with `Gone`, and no
    /// longer counts as waiting. Called with a lock of the receiver held, so a task, whose waker is
    /// the program's code, is woken only when the request is dropped; a task has no edge.
    pub(super) fn displace(&mut self) {
        if self.0.word.is_open() {
            // SAFETY: as in `give`.
            unsafe { *self.0.answer() = Some(Err(AskError::Gone)) };
            drop(self.given(self.0.word.displace()));
        }
    }

    /// Wakes the waiter that the word has returned, or returns the answer that the word has
    /// refused.
    fn given(&self, by: Option<Option<By>>) -> Result<(), Answer<R>> {
        let Some(by) = by else {
            // SAFETY: the word has refused the answer, so it is still the giver's.
            let answer = unsafe { self.0.answer().take() };
            return Err(answer.expect("it was put before"));
        };
        if by.is_some() {
            // SAFETY: the exchange has seen the waiter, so the giver owns it.
            match unsafe { self.0.waiter().take() } {
                Some(Waiter::Thread(over)) => {
                    over.set();
                    self.0.parker.unpark();
                }
                Some(Waiter::Task(waker)) => waker.wake(),
                None => unreachable!("who waits has been put before"),
            }
        }
        Ok(())
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.0.word.is_abandoned()
    }
}

/// The side that waits for the answer. There is one.
pub(super) struct Asker<R>(Side<R>);

impl<R> Asker<R> {
    /// Takes the answer, or sets the waiter to be woken when it comes.
    pub(super) fn take_or_wait(&mut self, waiter: impl FnOnce() -> Waiter) -> Option<Answer<R>> {
        let answer = self.take();
        if answer.is_some() || self.watch(waiter()) {
            return answer;
        }
        self.take()
    }

    /// Sets the waiter to be woken when the answer comes. Returns false if it has come.
    pub(super) fn watch(&mut self, waiter: Waiter) -> bool {
        let by = match &waiter {
            Waiter::Thread(_) => By::Thread,
            Waiter::Task(_) => By::Task,
        };
        let before = match self.0.word.take_back() {
            // SAFETY: `take_back` has returned it to the asker.
            true => unsafe { self.0.waiter().take() },
            false => None,
        };
        drop(before);
        if self.0.word.is_given() {
            return false; // The giver may be about to wake the waiter before this one.
        }
        // SAFETY: the word says that no waiter is set, so the giver does not look at it.
        unsafe { *self.0.waiter() = Some(waiter) };
        let waits = self.0.word.await_by(by);
        if !waits {
            // SAFETY: `await_by` has failed, so the giver has not seen it.
            drop(unsafe { self.0.waiter().take() });
        }
        waits
    }

    /// Waits until the answer wakes the running thread, which has set itself as the waiter, or
    /// until `limit`.
    pub(super) fn wait(&mut self, limit: Limit) -> Result<(), Late> {
        limit.park_at(&self.0.parker)
    }

    /// Takes the answer, if it has come.
    pub(super) fn take(&mut self) -> Option<Answer<R>> {
        self.0.word.is_given().then(|| {
            // SAFETY: it has been given, so the asker owns it.
            let answer = unsafe { self.0.answer().take() };
            self.0.word.taken();
            answer.expect("it was put before")
        })
    }
}

impl<R> Drop for Asker<R> {
    /// Abandons the slot, and drops an answer that was given.
    fn drop(&mut self) {
        match self.0.word.abandon() {
            Left::Nothing => {}
            // SAFETY: the exchange came before the giver's, so the asker owns its waiter again.
            Left::Waiter => drop(unsafe { self.0.waiter().take() }),
            // SAFETY: it has been given, so the asker owns it.
            Left::Answer => drop(unsafe { self.0.answer().take() }),
        }
    }
}
