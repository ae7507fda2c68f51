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
//! The state is on the owner's stack, and the owner does not leave the scope while a member runs. A
//! member counts itself out under the lock and does not touch the scope afterwards; the owner
//! learns under the same lock that it was the last. So the frame outlives all its uses.

use super::tree::TreeShard;
use super::{deadline, tree};
use crate::scoped_value::Bindings;
use crate::thread::{self, Panic, Thread, ThreadId};
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use pirn_rt::blocking;
use pirn_rt::blocking::list::{Linked, Links, List};
use pirn_rt::blocking::wait::{Outcome, Wait, WakeList, Wakeup};
use pirn_rt::lock::Lock;
use pirn_rt::panic;
use pirn_rt::recorder::kinds;
use pirn_rt::sched;
use pirn_rt::sched::recorded;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::Core;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;
use std::io;
use std::sync::Arc;

thread_local! {
    /// The innermost scope that the running thread is in, as its owner or as a member.
    static SCOPE: Cell<*const ScopeState> = const { Cell::new(ptr::null()) };
}

/// What the owner and the members share; see the module's documentation.
pub(crate) struct ScopeState {
    pub(super) id: u64,
    pub(super) name: Option<Arc<str>>,
    pub(super) owner: Thread,
    /// The scope in which this one was opened.
    parent: *const ScopeState,
    /// When the scope is cancelled at the latest.
    pub(super) deadline: Deadline,
    /// The scoped values of the scope's members.
    pub(super) bindings: Bindings,
    cancelled: AtomicBool,
    pub(super) inner: Lock<Inner>,
    /// The list that has the scope, and the scope's place in it.
    pub(super) shard: &'static TreeShard,
    pub(super) place: Links<ScopeState>,
}

// SAFETY: the parent outlives the scope; the links are followed under the lock of the tree, and the
// lists of members under the scope's own lock.
unsafe impl Sync for ScopeState {}

/// The fields under the lock; see the module's drawing.
pub(super) struct Inner {
    pub(super) members: List<Member>,
    pub(super) interrupted: List<Member>,
    pub(super) running: usize,
    /// Whether a thread watches the clock for the scope.
    watched: bool,
    waiting: Option<OwnerWait>,
    cause: Option<Cause>,
}

/// What the owner waits for.
struct OwnerWait {
    wait: NonNull<Wait>,
    what: Until,
}

// SAFETY: followed under the lock, while the owner keeps the wait in place.
unsafe impl Send for OwnerWait {}

/// What an owner can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Until {
    /// At most this many members run, or the scope is cancelled.
    Room(usize),
    /// No member uses the scope, and no thread watches its clock.
    Unused,
}

/// Why a scope was cancelled.
#[derive(Debug)]
pub(super) enum Cause {
    /// The joiner cancelled it.
    Joiner,
    TimedOut,
    /// The owner was interrupted.
    Interrupted,
    /// A thread could not be started.
    Fork(io::Error),
    /// The joiner panicked, or the destructor of a subtask's closure or result did.
    Panicked(Panic),
    /// The owner cancelled it, or left it without a join.
    Owner,
}

impl Inner {
    fn has_come(&self, what: Until, cancelled: bool) -> bool {
        match what {
            Until::Room(most) => self.running <= most || cancelled,
            Until::Unused => self.running == 0 && !self.watched,
        }
    }

    /// Claims the owner if the condition that it waits for holds.
    fn claim_owner(&mut self, cancelled: bool) -> Option<Wakeup> {
        let OwnerWait { wait, what } = *self.waiting.as_ref()?;
        if !self.has_come(what, cancelled) {
            return None;
        }
        self.waiting = None;
        // SAFETY: the owner takes the wait out, under the lock, before the wait goes away.
        unsafe { wait.as_ref() }.claim(Outcome::Ready)
    }
}

/// Returns the innermost scope of the running thread.
///
/// # Safety
/// The result is not kept beyond the scope: beyond the function that [`within`] calls.
pub(super) unsafe fn current<'a>() -> Option<&'a ScopeState> {
    // SAFETY: set for a call during which the scope is there; the caller's contract.
    unsafe { SCOPE.get().as_ref() }
}

impl ScopeState {
    /// Returns the state of a scope that the running thread opens.
    pub(super) fn new(name: Option<Arc<str>>, deadline: Deadline) -> ScopeState {
        // SAFETY: a scope that is opened now ends before its parent does.
        let parent = unsafe { current() };
        let id = sched::next_id();
        ScopeState {
            id,
            name,
            owner: thread::current(),
            parent: parent.map_or(ptr::null(), ptr::from_ref),
            // An inner scope never outlives the deadline of the outer one, or of a call around it.
            deadline: deadline.min(deadline::in_force()),
            bindings: Bindings::current(),
            cancelled: AtomicBool::new(false),
            inner: Lock::new(Inner {
                members: List::new(),
                interrupted: List::new(),
                running: 0,
                watched: false,
                waiting: None,
                cause: None,
            }),
            shard: tree::shard(id),
            place: Links::new(),
        }
    }

    /// Returns whether this is the child of a fork, and the scope was opened in the parent: its
    /// members have stayed behind there, and one of them may hold the lock.
    pub(super) fn is_left_behind(&self) -> bool {
        !ptr::eq(self.shard, tree::shard(self.id))
    }

    /// Returns the scope in which this one was opened.
    pub(super) fn parent(&self) -> Option<&ScopeState> {
        // SAFETY: the parent is further down on the owner's stack, or the owner is its member: it
        // outlives this scope.
        unsafe { self.parent.as_ref() }
    }

    /// Calls `f` with this as the running thread's innermost scope.
    pub(super) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        panic::with_local(&SCOPE, ptr::from_ref(self), f)
    }

    /// Calls `f` with this scope in the tree of all scopes.
    pub(super) fn known<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Known<'a>(&'a ScopeState);
        impl Drop for Known<'_> {
            fn drop(&mut self) {
                tree::remove(self.0);
                recorded::scope_closed(self.0.id, self.0.name.as_deref());
            }
        }
        // SAFETY: removed below, before the borrow ends; the owner calls this once.
        unsafe { tree::add(self) };
        recorded::event(kinds::SCOPE_OPEN, self.id);
        let _known = Known(self);
        self.within(f)
    }

    /// Returns whether the scope has been cancelled.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release in `cancel`, so that we see what the canceller did
        // before.
        self.cancelled.load(Ordering::Acquire)
    }

    /// Adds the member of `thread`, which is about to run. Returns `false` if the scope is
    /// cancelled; then the thread must not run.
    ///
    /// # Safety
    /// The member is this scope's, is `thread`'s, has entered no scope, and stays in its place
    /// until it has [left](Self::leave).
    pub(super) unsafe fn enter(&self, member: &Member, thread: NonNull<Core>) -> bool {
        let mut inner = self.inner.lock();
        if self.is_cancelled() {
            return false;
        }
        member.thread.set(Some(thread));
        // SAFETY: the caller's contract.
        unsafe { inner.members.append(member) };
        inner.running += 1;
        true
    }

    /// Takes a member out of the scope, which may be gone when this returns.
    ///
    /// # Safety
    /// The member has entered this scope, and has not left it.
    pub(super) unsafe fn leave(&self, member: &Member) {
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

    /// Applies `part`, by which a thread ends its use of the scope, and wakes the owner if it waits
    /// for that. The scope may be gone when this returns.
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

    /// Records that a thread watches the clock.
    pub(super) fn begin_watch(&self) {
        self.inner.lock().watched = true;
    }

    /// Records that no thread watches the clock any more. The scope may be gone when this returns.
    pub(super) fn end_watch(&self) {
        self.depart(|inner| inner.watched = false);
    }

    /// Returns the reason of a wait. A wait for all members is one that only they can end, or a
    /// cancellation of the scope.
    fn awaited(&self, what: Until) -> WaitReason {
        let for_all = match what {
            Until::Room(most) => most == 0 && self.deadline.is_never(),
            Until::Unused => true,
        };
        let kind = if for_all {
            Kind::Scope
        } else {
            Kind::ScopeEvent
        };
        WaitReason::new(kind, self.id)
    }

    /// Blocks the owner, which is the caller, until `what` holds, the deadline passes, or (if
    /// `interruptible` says so) it is interrupted.
    pub(super) fn wait(
        &self,
        what: Until,
        deadline: Deadline,
        interruptible: Interruptible,
    ) -> Outcome {
        blocking::wait_past_safe_points(|| self.wait_once(what, deadline, interruptible))
    }

    /// Does what [`wait`](Self::wait) does, until a safe point of the owner is requested.
    fn wait_once(&self, what: Until, deadline: Deadline, interruptible: Interruptible) -> Outcome {
        if self.is_left_behind() {
            return Outcome::Closed;
        }
        let mut inner = self.inner.lock();
        if inner.has_come(what, self.is_cancelled()) {
            return Outcome::Ready;
        }
        let wait = match Wait::begin(self.awaited(what), interruptible) {
            Ok(wait) => wait,
            Err(refused) => return refused,
        };
        inner.waiting = Some(OwnerWait {
            wait: NonNull::from(&wait),
            what,
        });
        drop(inner);
        let outcome = wait.block_until(deadline);
        // A platform thread, or a handler, goes on as soon as it is claimed, but the lock that the
        // claimer holds is on its stack: it waits until the claimer has unlocked. (A virtual thread
        // is woken after that.)
        if outcome != Outcome::Ready || !wait.is_virtual() {
            self.inner.lock().waiting = None;
        }
        outcome
    }

    /// Cancels the scope unless it is cancelled already: no more subtasks are started, the owner's
    /// join returns, and all members but `except` are interrupted.
    pub(super) fn cancel(&self, cause: Cause, except: Option<&Member>) {
        if self.is_left_behind() {
            return self.cancelled.store(true, Ordering::Relaxed); // Relaxed: for this thread only.
        }
        let wakeup = {
            let mut inner = self.inner.lock();
            if self.is_cancelled() {
                drop(inner);
                drop(cause); // It may run user code: not under the lock.
                return;
            }
            inner.cause = Some(cause);
            // Release: pairs with the Acquire in `is_cancelled`.
            self.cancelled.store(true, Ordering::Release);
            inner.claim_owner(true)
        };
        recorded::event(kinds::SCOPE_CANCEL, self.id);
        if let Some(wakeup) = wakeup {
            wakeup.perform();
        }
        while self.interrupt_some(except) {}
    }

    /// Interrupts some members that have not been interrupted yet. Returns whether there may be
    /// more.
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
                // SAFETY: the member stays where it is, as it did for the other list.
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
            crate::thread::interrupt::tell_listeners(thread);
        }
        count == WakeList::CAPACITY
    }

    /// Takes the reason for which the scope was cancelled.
    pub(super) fn take_cause(&self) -> Option<Cause> {
        match self.is_cancelled() {
            true => self.inner.lock().cause.take(),
            false => None,
        }
    }
}

/// Interrupts a member under the lock of its scope. The wakeup goes into `wakes`; if callbacks
/// listen for interrupts of the thread, its id is returned so that the caller runs them.
fn interrupt(member: &Member, wakes: &mut WakeList) -> Option<ThreadId> {
    let thread = member.thread()?;
    let (wakeup, listened) = thread.begin_interrupt();
    if let Some(wakeup) = wakeup {
        wakes.push(wakeup);
    }
    listened.then(|| thread.id())
}

/// A subtask's place in the lists of its scope. It lies in the allocation of the subtask's thread.
pub(super) struct Member {
    links: Links<Member>,
    scope: NonNull<ScopeState>,
    /// The thread, once the member has entered the scope. Under the scope's lock.
    thread: Cell<Option<NonNull<Core>>>,
    /// Whether the member has been interrupted, and so is in the list of interrupted members. Under
    /// the scope's lock.
    interrupted: Cell<bool>,
}

impl Linked for Member {
    fn links(&self) -> &Links<Member> {
        &self.links
    }
}

impl Member {
    /// Returns a member of a scope that does not end before the member has [left](Self::leave).
    pub(super) fn new(scope: &ScopeState) -> Member {
        Member {
            links: Links::new(),
            scope: NonNull::from(scope),
            thread: Cell::new(None),
            interrupted: Cell::new(false),
        }
    }

    /// Returns a handle to the member's thread. Called under the scope's lock, with a member of its
    /// lists.
    pub(super) fn thread(&self) -> Option<Thread> {
        // SAFETY: the thread does not end before it has left the scope, for which it needs the
        // lock.
        let core = self.thread.get().map(|core| unsafe { core.as_ref() });
        core.map(|core| Thread::from_virtual(core.to_ref()))
    }

    /// Leaves the scope, which may be gone when this returns, if the member has entered it.
    ///
    /// # Safety
    /// Called once, by the member's thread at its end, or by the owner if it has not entered.
    pub(super) unsafe fn leave(&self) {
        if self.thread.get().is_some() {
            // SAFETY: the scope waits for all members that have entered, and by our contract this
            // one has not left it.
            unsafe { self.scope.as_ref().leave(self) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::{self, JoinError};
    use crate::testing::fork_while;
    use crate::thread::Interrupted;

    #[test]
    fn the_child_of_a_fork_leaves_a_scope_that_a_member_has_locked() {
        let outcome: Result<(), JoinError<Interrupted>> = scope::open(|s| {
            let parked = s.fork(crate::thread::park_interruptible);
            // SAFETY: the scope stays until the holder has ended.
            let scope: &'static ScopeState = unsafe { current() }.unwrap();
            let hold = |meanwhile: &dyn Fn()| {
                let _inner = scope.inner.lock();
                meanwhile();
            };
            fork_while(hold, || {
                assert!(format!("{s:?}").contains("subtasks: []"));
                scope.cancel(Cause::Owner, None);
                assert_eq!(
                    scope.wait(Until::Unused, Deadline::NEVER, Interruptible::Never),
                    Outcome::Closed
                );
                let joined = s.join().unwrap_err();
                assert!(matches!(joined.error(), JoinError::Cancelled));
            });
            parked.thread().unwrap().unpark();
            Err(JoinError::Cancelled)
        });
        assert!(outcome.is_err());
    }
}
