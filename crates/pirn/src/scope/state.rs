//! What the owner of a scope and its members share: the list of members, and whether the scope is
//! cancelled.
//!
//! ```text
//!   the owner's stack                                   the members' own memory
//!   +--------------------------------------+
//!   | ScopeState                           |   members      +--------+   +--------+
//!   |   lock ---- members -----------------+--------------->| Member |<->| Member |   running, or about to
//!   |        \--- interrupted -------------+--------------->| Member |              running, have been told to end
//!   |         \-- running: 3               |   interrupted  +--------+
//!   |          \- waiting: the owner       |
//!   +--------------------------------------+
//! ```
//!
//! It is on the owner's stack, and the owner does not leave before nobody runs. A member counts
//! itself out under the lock and does not touch the scope after it; the owner learns that it was
//! the last under the same lock. So the frame is there as long as anybody uses it.

use super::member::{Member, Who};
use super::tree;
use crate::blocking::list::{Links, List};
use crate::blocking::wait::{Outcome, Wait, WakeList, Wakeup};
use crate::local;
use crate::lock::Lock;
use crate::scoped_value::Bindings;
use crate::thread::{Panic, ThreadId, quietly};
use crate::time::Deadline;
use crate::vthread::ids;
use crate::vthread::wait_word::Hearing;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::Arc;

thread_local! {
    /// The innermost scope that the running thread is in, as its owner or as a member.
    static INNERMOST: Cell<*const ScopeState> = const { Cell::new(ptr::null()) };
}

/// See the module's documentation.
pub(crate) struct ScopeState {
    pub(super) id: u64,
    pub(super) name: Option<Arc<str>>,
    /// Alive as long as this is: it is on that thread's stack.
    pub(super) owner: Who,
    /// The scope in which this one was opened.
    parent: *const ScopeState,
    /// When it is cancelled at the latest.
    pub(super) deadline: Deadline,
    /// The scoped values of its members.
    pub(super) bindings: Bindings,
    cancelled: AtomicBool,
    pub(super) inner: Lock<Inner>,
    /// Its place among all scopes there are.
    pub(super) place: Links<ScopeState>,
}

// SAFETY: the parent outlives it; the links are followed under the lock of the tree, and what is in
// the lists of members is under its own.
unsafe impl Sync for ScopeState {}

/// See the module's drawing.
pub(super) struct Inner {
    pub(super) members: List<Member>,
    pub(super) interrupted: List<Member>,
    pub(super) running: usize,
    /// Whether a thread watches the clock for it.
    keeper: bool,
    waiting: Option<OwnerWait>,
    cause: Option<Cause>,
}

/// What the owner waits for.
struct OwnerWait {
    wait: NonNull<Wait>,
    what: Until,
}

// SAFETY: followed under the lock, while the owner keeps it there.
unsafe impl Send for OwnerWait {}

/// What an owner can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Until {
    /// No more members than this, or the scope is cancelled.
    Room(usize),
    /// Nobody uses the scope.
    Unused,
}

/// Why a scope was cancelled.
#[derive(Debug)]
pub(super) enum Cause {
    /// The joiner said so.
    Joiner,
    TimedOut,
    /// The owner was interrupted.
    Interrupted,
    /// A thread could not be started.
    Fork(io::Error),
    /// The joiner panicked, or a destructor of a subtask's closure or result.
    Panicked(Panic),
    /// The owner said so, or left.
    Owner,
}

impl Inner {
    fn has_come(&self, what: Until, cancelled: bool) -> bool {
        match what {
            Until::Room(most) => self.running <= most || cancelled,
            Until::Unused => self.running == 0 && !self.keeper,
        }
    }

    /// Claims the owner if what it waits for has come.
    fn claim_owner(&mut self, cancelled: bool) -> Option<Wakeup> {
        let OwnerWait { wait, what } = *self.waiting.as_ref()?;
        if !self.has_come(what, cancelled) {
            return None;
        }
        self.waiting = None;
        // SAFETY: the owner takes it out, under the lock, before it goes away.
        unsafe { wait.as_ref() }.claim(Outcome::Ready)
    }
}

/// The innermost scope of the running thread.
pub(super) fn current<'a>() -> Option<&'a ScopeState> {
    // SAFETY: set by `within`, for a call during which the scope is there; callers do not keep it
    // longer.
    unsafe { INNERMOST.get().as_ref() }
}

impl ScopeState {
    /// Of a scope that the running thread opens.
    pub(super) fn new(name: Option<Arc<str>>, deadline: Deadline) -> ScopeState {
        let parent = current();
        let inherited = parent.map_or(Deadline::NEVER, |parent| parent.deadline);
        ScopeState {
            id: ids::next(),
            name,
            owner: Who::current(),
            parent: parent.map_or(ptr::null(), ptr::from_ref),
            // An inner scope never outlives the outer's deadline.
            deadline: deadline.min(inherited),
            bindings: Bindings::current(),
            cancelled: AtomicBool::new(false),
            inner: Lock::new(Inner {
                members: List::new(),
                interrupted: List::new(),
                running: 0,
                keeper: false,
                waiting: None,
                cause: None,
            }),
            place: Links::new(),
        }
    }

    /// The scope in which it was opened.
    pub(super) fn parent(&self) -> Option<&ScopeState> {
        // SAFETY: it is further down on the owner's stack, or the owner is its member: it outlives
        // this one.
        unsafe { self.parent.as_ref() }
    }

    /// Calls `f` with this as the running thread's innermost scope.
    pub(super) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        local::with(&INNERMOST, ptr::from_ref(self), f)
    }

    /// Calls `f` with this scope in the tree of all scopes.
    pub(super) fn known<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Known<'a>(&'a ScopeState);
        impl Drop for Known<'_> {
            fn drop(&mut self) {
                tree::remove(self.0);
            }
        }
        // SAFETY: removed below, before the borrow ends; the owner calls this once.
        unsafe { tree::add(self) };
        let _known = Known(self);
        self.within(f)
    }

    /// Whether it has been cancelled.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release in `cancel`: what the canceller did before.
        self.cancelled.load(Ordering::Acquire)
    }

    /// Adds a member that is going to run. Returns `false` if the scope is cancelled: it must not.
    ///
    /// # Safety
    /// It is in no scope, and stays in its place until it has [left](Self::leave).
    pub(super) unsafe fn enter(&self, member: &Member) -> bool {
        let mut inner = self.inner.lock();
        if self.is_cancelled() {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { inner.members.append(member) };
        inner.running += 1;
        member.entered.set(true);
        true
    }

    /// Reserves the place of a thread that will be a member once it runs, and counts it as running.
    /// Returns `false` if the scope is cancelled.
    pub(super) fn reserve_place(&self) -> bool {
        let mut inner = self.inner.lock();
        if self.is_cancelled() {
            return false;
        }
        inner.running += 1;
        true
    }

    /// Adds a member in a [reserved](Self::reserve_place) place.
    ///
    /// # Safety
    /// As for [`enter`](Self::enter).
    pub(super) unsafe fn take_place(&self, member: &Member) {
        let mut inner = self.inner.lock();
        member.entered.set(true);
        let cancelled = self.is_cancelled();
        member.interrupted.set(cancelled);
        let list = match cancelled {
            true => &mut inner.interrupted,
            false => &mut inner.members,
        };
        // SAFETY: the caller's contract.
        unsafe { list.append(member) };
    }

    /// Gives up a [reserved](Self::reserve_place) place: the thread could not be started.
    pub(super) fn give_up_place(&self) {
        self.inner.lock().running -= 1;
    }

    /// Takes a member out. The scope may be gone when this returns.
    pub(super) fn leave(&self, member: &Member) {
        self.depart(|inner| {
            let list = match member.interrupted.get() {
                true => &mut inner.interrupted,
                false => &mut inner.members,
            };
            // SAFETY: the flag, under the lock, says which list it is in.
            unsafe { list.remove(member) };
            inner.running -= 1;
        });
    }

    /// Ends somebody's part in the scope, and wakes the owner if it waits for that. The scope may
    /// be gone when this returns.
    fn depart(&self, part: impl FnOnce(&mut Inner)) {
        let wakeup = {
            let mut inner = self.inner.lock();
            part(&mut inner);
            let cancelled = self.is_cancelled();
            inner.claim_owner(cancelled)
        };
        if let Some(wakeup) = wakeup {
            wakeup.perform();
        }
    }

    /// A thread begins to watch the clock.
    pub(super) fn begin_keeping(&self) {
        self.inner.lock().keeper = true;
    }

    /// The thread that watched the clock does not any more. The scope may be gone when this
    /// returns.
    pub(super) fn end_keeping(&self) {
        self.depart(|inner| inner.keeper = false);
    }

    /// Blocks the owner, which is the caller, until `what` holds, the deadline passes, or (if
    /// `hearing` is given) it is interrupted.
    pub(super) fn wait(
        &self,
        what: Until,
        deadline: Deadline,
        hearing: Option<Hearing>,
    ) -> Outcome {
        let mut inner = self.inner.lock();
        if inner.has_come(what, self.is_cancelled()) {
            return Outcome::Ready;
        }
        if crate::runtime::has_forked() {
            return Outcome::Closed; // The members have stayed behind in the parent process.
        }
        let Some(wait) = Wait::hearing(hearing) else {
            return Outcome::Interrupted;
        };
        inner.waiting = Some(OwnerWait {
            wait: NonNull::from(&wait),
            what,
        });
        drop(inner);
        let outcome = wait.block_until(deadline);
        // A platform thread goes on as soon as it is claimed. The lock is on its stack: it waits
        // until the claimer has let go of it. (A virtual thread is woken after that.)
        if outcome != Outcome::Ready || matches!(self.owner, Who::Platform(_)) {
            self.inner.lock().waiting = None;
        }
        outcome
    }

    /// Cancels it, unless it has been: nothing more is started, the owner's join returns, and all
    /// members but `except` are interrupted.
    pub(super) fn cancel(&self, cause: Cause, except: Option<&Member>) {
        let wakeup = {
            let mut inner = self.inner.lock();
            if self.is_cancelled() {
                drop(inner);
                quietly(|| drop(cause)); // User code: not under the lock.
                return;
            }
            inner.cause = Some(cause);
            // Release: pairs with the Acquire in `is_cancelled`.
            self.cancelled.store(true, Ordering::Release);
            if crate::runtime::has_forked() {
                return; // The members have stayed behind in the parent process.
            }
            inner.claim_owner(true)
        };
        if let Some(wakeup) = wakeup {
            wakeup.perform();
        }
        while self.interrupt_some(except) {}
    }

    /// Interrupts some members that have not been. Returns whether there may be more.
    fn interrupt_some(&self, except: Option<&Member>) -> bool {
        let mut wakes = WakeList::new();
        let mut listened = [const { None }; WakeList::CAPACITY];
        let mut count = 0;
        {
            let inner = &mut *self.inner.lock();
            while !wakes.is_full()
                && count < WakeList::CAPACITY
                && let Some(member) = inner.members.take_first()
            {
                // SAFETY: it stays where it is, as it did for the other list.
                unsafe { inner.interrupted.append(member) };
                member.interrupted.set(true);
                if except.is_none_or(|except| !ptr::eq(except, member)) {
                    listened[count] = interrupt(member, &mut wakes);
                }
                count += 1;
            }
        }
        wakes.perform();
        for thread in listened.into_iter().flatten() {
            crate::thread::tell_listeners(thread);
        }
        count == WakeList::CAPACITY
    }

    /// Takes the reason for which it was cancelled.
    pub(super) fn take_cause(&self) -> Option<Cause> {
        match self.is_cancelled() {
            true => self.inner.lock().cause.take(),
            false => None,
        }
    }
}

/// Interrupts a member under the lock of its scope: the wake goes to a list, and if somebody
/// listens for interrupts of the thread, they are to be told.
fn interrupt(member: &Member, wakes: &mut WakeList) -> Option<ThreadId> {
    // SAFETY: alive as long as it is a member.
    let thread = unsafe { member.who()?.thread() };
    let (wakeup, listened) = thread.begin_interrupt();
    if let Some(wakeup) = wakeup {
        wakes.push(wakeup);
    }
    listened.then(|| thread.id())
}
