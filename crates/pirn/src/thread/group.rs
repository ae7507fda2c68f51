//! Threads that belong to a group, which learns of their ends: those of a scope, those of an
//! executor.

use core::any::type_name;
use pirn_rt::vthread::body::{self, Body};
use pirn_rt::vthread::record::Attributes;
use pirn_rt::vthread::{ClosureBody, Ready, ThreadRef};

/// What a group's thread tells it.
pub(crate) trait Member {
    /// The closure has panicked, or was dropped by a scheduler without a call.
    fn panicked(&self) {}

    /// The thread has ended: its result is published, or dropped if there is no handle. Called
    /// once. The caller uses nothing of the group afterwards but this member.
    fn ended(&self);
}

/// The body of a group's thread. The closure's body comes first, so that a handle finds the result
/// at the same place as in any other thread.
#[repr(C)]
struct GroupBody<T, F, M> {
    inner: ClosureBody<T, F>,
    member: M,
}

impl<T, F: FnOnce() -> T, M: Member> Body for GroupBody<T, F, M> {
    fn code() -> &'static str {
        type_name::<F>()
    }

    unsafe fn run(&self) {
        // SAFETY: the caller's contract.
        unsafe {
            self.inner.run();
            if self.inner.has_panicked() {
                self.member.panicked();
            }
        }
    }

    unsafe fn abandon(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.inner.abandon() };
        self.member.panicked();
    }

    unsafe fn drop_result(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.inner.drop_result() };
    }

    unsafe fn ended(&self) {
        self.member.ended();
    }
}

/// Makes a thread of a group, which will call `closure`. Returns `None` if there is no memory.
pub(crate) fn allocate<T, F: FnOnce() -> T, M: Member>(
    attributes: Attributes,
    closure: F,
    member: M,
) -> Option<(ThreadRef, Ready)> {
    let body = GroupBody {
        inner: ClosureBody::new(closure),
        member,
    };
    let write = |place: *mut GroupBody<T, F, M>| {
        // SAFETY: `allocate` passes memory that is valid for writes.
        unsafe { place.write(body) }
    };
    // SAFETY: `write` writes the whole body.
    let (thread, ready, _) = unsafe { body::allocate(attributes, write) }?;
    Some((thread, ready))
}
