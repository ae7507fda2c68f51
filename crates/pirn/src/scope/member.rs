//! A thread's membership in a scope.

use super::state::ScopeState;
use crate::blocking::list::{Linked, Links};
use crate::thread::Thread;
use crate::vthread::platform::{self, Platform};
use crate::vthread::{self, Core};
use core::cell::{Cell, OnceCell};
use core::ptr::NonNull;
use std::sync::Arc;

/// A thread's place in the lists of its scope: in the allocation of a virtual thread, on the stack
/// of a platform thread.
pub(super) struct Member {
    links: Links<Member>,
    scope: NonNull<ScopeState>,
    thread: OnceCell<Who>,
    /// Whether it counts as running. Under the scope's lock.
    pub(super) entered: Cell<bool>,
    /// Whether it has been interrupted, and so is in the list of those. Under the scope's lock.
    pub(super) interrupted: Cell<bool>,
}

/// A thread, without a reference that would have to be counted if it is a virtual one.
pub(super) enum Who {
    Virtual(NonNull<Core>),
    Platform(Arc<Platform>),
}

impl Who {
    /// The running thread.
    pub(super) fn current() -> Who {
        match vthread::current() {
            Some(core) => Who::Virtual(NonNull::from(core)),
            None => Who::Platform(platform::current()),
        }
    }

    /// A handle to it.
    ///
    /// # Safety
    /// It has not ended.
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
    /// Of a scope that will not end before it has [left](Self::leave).
    pub(super) fn new(scope: &ScopeState) -> Member {
        Member {
            links: Links::new(),
            scope: NonNull::from(scope),
            thread: OnceCell::new(),
            entered: Cell::new(false),
            interrupted: Cell::new(false),
        }
    }

    /// Sets which thread it is, before it enters.
    pub(super) fn set_thread(&self, who: Who) {
        let _ = self.thread.set(who);
    }

    /// The thread.
    pub(super) fn who(&self) -> Option<&Who> {
        self.thread.get()
    }

    /// Ends its part in the scope, which may be gone when this returns.
    pub(super) fn leave(&self) {
        if self.entered.get() {
            // SAFETY: the scope waits for all that have entered.
            unsafe { self.scope.as_ref() }.leave(self);
        }
    }
}
