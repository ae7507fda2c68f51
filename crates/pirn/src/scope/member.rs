//! A thread's membership in a scope.

use super::state::ScopeState;
use crate::thread::Thread;
use core::cell::{Cell, OnceCell};
use core::ptr::NonNull;
use pirn_rt::blocking::list::{Linked, Links};
use pirn_rt::vthread::identity::Platform;
use pirn_rt::vthread::{self, Core};
use std::sync::Arc;

/// A thread's place in the lists of its scope. It lies in the allocation of a virtual thread, or on
/// the stack of a platform thread.
pub(super) struct Member {
    links: Links<Member>,
    scope: NonNull<ScopeState>,
    thread: OnceCell<Who>,
    /// Whether the member counts as running. Under the scope's lock.
    pub(super) entered: Cell<bool>,
    /// Whether it has been interrupted, and so is in the list of interrupted members. Under the
    /// scope's lock.
    pub(super) interrupted: Cell<bool>,
}

/// A thread, without a counted reference if it is a virtual one.
pub(super) enum Who {
    Virtual(NonNull<Core>),
    Platform(Arc<Platform>),
}

impl Who {
    /// Returns the running thread.
    pub(super) fn current() -> Who {
        match vthread::current() {
            Some(core) => Who::Virtual(core.as_ptr()),
            None => Who::Platform(Platform::current()),
        }
    }

    /// Returns a handle to the thread.
    ///
    /// # Safety
    /// The thread has not ended.
    pub(super) unsafe fn thread(&self) -> Thread {
        match self {
            // SAFETY: the caller's contract.
            Who::Virtual(core) => Thread::from_virtual(unsafe { core.as_ref() }.to_ref()),
            Who::Platform(platform) => Thread::from_platform(Arc::clone(platform)),
        }
    }
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
            thread: OnceCell::new(),
            entered: Cell::new(false),
            interrupted: Cell::new(false),
        }
    }

    /// Sets the thread, before the member enters.
    pub(super) fn set_thread(&self, who: Who) {
        let _ = self.thread.set(who);
    }

    /// Returns the thread.
    pub(super) fn who(&self) -> Option<&Who> {
        self.thread.get()
    }

    /// Leaves the scope, which may be gone when this returns, if the member has entered it.
    ///
    /// # Safety
    /// Called once, and the member can have entered no scope but its own.
    pub(super) unsafe fn leave(&self) {
        if self.entered.get() {
            // SAFETY: the scope waits for all members that have entered, and by our contract this
            // one has not left it.
            unsafe { self.scope.as_ref().leave(self) };
        }
    }
}
