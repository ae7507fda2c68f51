//! The common code of the tests of interruption: threads that are interrupted before or while they
//! wait.

#![allow(dead_code)] // each test binary uses only a part of it

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use pirn::thread;

use crate::common::until_it_waits;

/// Longer than any test.
pub const AN_HOUR: Duration = Duration::from_secs(3600);

/// Runs `wait` on a virtual thread that has interrupted itself before.
pub fn interrupted_before<T: Send>(wait: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            thread::current().interrupt();
            let result = wait();
            assert!(thread::take_interrupt(), "the flag stays");
            result
        });
        waiter.join().unwrap()
    })
}

/// Runs `wait` on a virtual thread that is interrupted when it waits.
pub fn interrupted_meanwhile<T: Send>(wait: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let result = wait();
            assert!(thread::take_interrupt(), "the flag stays");
            result
        });
        until_it_waits(waiter.thread());
        assert!(!waiter.thread().is_interrupted());
        waiter.thread().interrupt();
        waiter.join().unwrap()
    })
}

/// Runs `wait` interrupted before, and then interrupted meanwhile.
pub fn interrupted<T: Send>(wait: impl Fn() -> T + Sync) -> [T; 2] {
    [interrupted_before(&wait), interrupted_meanwhile(&wait)]
}

/// Asserts that an operation that would wait fails, interrupted before or meanwhile.
pub fn fails<T: Debug + Send>(wait: impl Fn() -> io::Result<T> + Sync) {
    for result in interrupted(wait) {
        assert_canceled(&result.unwrap_err());
    }
}

/// Asserts that it is the error of an interrupted operation.
pub fn assert_canceled(error: &io::Error) {
    assert_eq!(error.raw_os_error(), Some(libc::ECANCELED), "{error}");
    assert!(pirn::thread::is_interrupt(error));
}
