//! The place for one answer.
//!
//! ```text
//!   empty --give--> given --take--> taken
//!     |  \
//!     |   wait --> awaited (by a thread or a task) --give--> given, and the waiter is woken
//!     |     (or displaced: as given, with the error that it is gone)
//!   abandon
//!     v
//!   abandoned: what is given is dropped, and a request that has not been begun is skipped
//! ```
//!
//! `word.rs` says which side has what is in the place. No lock: each side needs one exchange.

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

/// Who is to be woken.
pub(super) enum Waiter {
    /// The thread at the slot's parker, which hears first that its wait is over.
    Thread(Over),
    Task(Waker),
}

type Answer<R> = Result<R, AskError>;

struct Slot<R> {
    word: Word,
    answer: UnsafeCell<Option<Answer<R>>>,
    waiter: UnsafeCell<Option<Waiter>>,
    /// Where a thread waits. Not by its own permit, which other code on it may use meanwhile.
    parker: Parker,
    sides: Sides,
}

/// What either side has of the place.
struct Side<R>(NonNull<Slot<R>>);

impl<R> Deref for Side<R> {
    type Target = Slot<R>;
    fn deref(&self) -> &Slot<R> {
        // SAFETY: it is there until both sides have left.
        unsafe { self.0.as_ref() }
    }
}

impl<R> Drop for Side<R> {
    fn drop(&mut self) {
        if self.sides.leave() {
            // SAFETY: it is of a box that was leaked, and the other side has left.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

// SAFETY: as an `Arc` of a slot, which is `Send` and `Sync`, with what is in it: `R`s.
unsafe impl<R: Send> Send for Side<R> {}
// SAFETY: as for `Send`.
unsafe impl<R: Send> Sync for Side<R> {}

// A panic leaves each side with what it has.
impl<R> UnwindSafe for Side<R> {}
impl<R> RefUnwindSafe for Side<R> {}

// SAFETY: the two sides give each other what is in it, by the word: answers, and `Waiter`s, which
// are `Send`. Neither gets a reference to the other one's.
unsafe impl<R: Send> Sync for Slot<R> {}

impl<R> Slot<R> {
    /// Puts or takes the answer.
    ///
    /// # Safety
    /// The caller is the side that has it, and keeps nothing of it.
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

/// Makes the two sides of a place for an answer.
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
    /// Gives the answer, and wakes who waits for it. Returns it if nobody wants it.
    pub(super) fn give(&mut self, answer: Answer<R>) -> Result<(), Answer<R>> {
        if !self.0.word.is_open() {
            return Err(answer);
        }
        // SAFETY: it is open, so nothing has been given, and there is no other giver.
        unsafe { *self.0.answer() = Some(answer) };
        self.given(self.0.word.give())
    }

    /// The request will be dropped: a thread that waits hears now that it is gone, and counts as
    /// waiting no more. Called under a lock of the receiver's, so a task, whose waker is the
    /// program's code, hears when the request is dropped; it counts as waiting for nobody.
    pub(super) fn displace(&mut self) {
        if self.0.word.is_open() {
            // SAFETY: as in `give`.
            unsafe { *self.0.answer() = Some(Err(AskError::Gone)) };
            drop(self.given(self.0.word.displace()));
        }
    }

    /// Wakes who waits, by what the word has said, or returns the answer that it has refused.
    fn given(&self, by: Option<Option<By>>) -> Result<(), Answer<R>> {
        let Some(by) = by else {
            // SAFETY: it has not been given.
            let answer = unsafe { self.0.answer().take() };
            return Err(answer.expect("it was put before"));
        };
        if by.is_some() {
            // SAFETY: the exchange has found it, so it is the giver's.
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
    /// Takes the answer, or says who is to be woken when it comes.
    pub(super) fn take_or_wait(&mut self, waiter: impl FnOnce() -> Waiter) -> Option<Answer<R>> {
        let answer = self.take();
        if answer.is_some() || self.watch(waiter()) {
            return answer;
        }
        self.take()
    }

    /// Says who is to be woken when the answer comes. Returns false if it is there.
    pub(super) fn watch(&mut self, waiter: Waiter) -> bool {
        let by = match &waiter {
            Waiter::Thread(_) => By::Thread,
            Waiter::Task(_) => By::Task,
        };
        let before = match self.0.word.take_back() {
            // SAFETY: it is the asker's again.
            true => unsafe { self.0.waiter().take() },
            false => None,
        };
        drop(before);
        if self.0.word.is_given() {
            return false; // And the giver may be about to wake the one before.
        }
        // SAFETY: nobody waits by the word, so the giver does not look at it.
        unsafe { *self.0.waiter() = Some(waiter) };
        let waits = self.0.word.await_by(by);
        if !waits {
            // SAFETY: the giver has not seen it.
            drop(unsafe { self.0.waiter().take() });
        }
        waits
    }

    /// Waits until the answer is given to the thread that has said so, or it is late.
    pub(super) fn wait(&mut self, limit: Limit) -> Result<(), Late> {
        limit.park_at(&self.0.parker)
    }

    /// Takes the answer, if it is there.
    pub(super) fn take(&mut self) -> Option<Answer<R>> {
        self.0.word.is_given().then(|| {
            // SAFETY: it has been given, so it is the asker's.
            let answer = unsafe { self.0.answer().take() };
            self.0.word.taken();
            answer.expect("it was put before")
        })
    }
}

impl<R> Drop for Asker<R> {
    /// Nobody waits any more. What has been given is dropped.
    fn drop(&mut self) {
        match self.0.word.abandon() {
            Left::Nothing => {}
            // SAFETY: the giver has not found it, so it is the asker's again.
            Left::Waiter => drop(unsafe { self.0.waiter().take() }),
            // SAFETY: it has been given, so it is the asker's.
            Left::Answer => drop(unsafe { self.0.answer().take() }),
        }
    }
}
