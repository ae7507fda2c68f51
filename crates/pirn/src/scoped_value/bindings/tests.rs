use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

crate::scoped_value! {
    static USER: str;
    static REQUEST: u64;
}

/// Runs `f` as a fork would run, with this thread's bindings: on a platform thread and on a virtual
/// one.
fn fork(f: impl Fn() + Sync) {
    let bindings = Bindings::current();
    // SAFETY: both scopes end before this function does.
    let subtask = || unsafe { bindings.within(&f) };
    std::thread::scope(|scope| {
        scope.spawn(subtask);
    });
    crate::thread::scope(|scope| {
        scope.spawn(subtask);
    });
}

#[test]
fn a_fork_reads_the_bindings_it_was_given() {
    let user = String::from("alice");
    USER.bind(&user, || {
        REQUEST.bind(&7, || {
            fork(|| {
                assert_eq!(REQUEST.get(), 7);
                USER.with(|bound| assert!(ptr::eq(bound, &raw const *user), "a copy"));
            });
        });
        fork(|| assert!(!REQUEST.is_bound()));
    });
}

#[test]
fn a_fork_rebinds_for_itself_alone() {
    REQUEST.bind(&7, || {
        fork(|| {
            REQUEST.bind(&8, || fork(|| assert_eq!(REQUEST.get(), 8)));
            assert_eq!(REQUEST.get(), 7);
        });
        assert_eq!(REQUEST.get(), 7);
    });
}

#[test]
fn what_is_bound_after_the_scope_opened_is_not_inherited() {
    REQUEST.bind(&7, || {
        let opened = Bindings::current();
        REQUEST.bind(&8, || {
            USER.bind("bob", || {
                // SAFETY: the bindings belong to the enclosing call.
                unsafe {
                    opened.within(|| assert_eq!((REQUEST.get(), USER.is_bound()), (7, false)))
                };
                assert_eq!(REQUEST.get(), 8);
                assert!(USER.is_bound());
            });
        });
    });
}

#[test]
fn the_former_bindings_come_back_after_a_panic() {
    let outside = Bindings::current();
    REQUEST.bind(&7, || {
        let inside = Bindings::current();
        let panicking = AssertUnwindSafe(|| {
            // SAFETY: these bindings bind nothing of this thread's.
            unsafe { outside.within(|| panic!("within other bindings")) }
        });
        catch_unwind(panicking).unwrap_err();
        assert_eq!(Bindings::current(), inside);
        assert_eq!(REQUEST.get(), 7);
    });
    assert_eq!(Bindings::current(), outside);
}

#[test]
fn equal_means_the_same_bindings() {
    let outside = Bindings::current();
    REQUEST.bind(&7, || {
        let inside = Bindings::current();
        assert_ne!(inside, outside);
        USER.bind("alice", || assert_ne!(Bindings::current(), inside));
        assert_eq!(Bindings::current(), inside);
    });
    assert_eq!(Bindings::current(), outside);
}
