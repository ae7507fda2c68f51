//! Every transition in the tables of the protocols, one after the other and by one thread.

use core::ptr::NonNull;

use crate::handshake::Handshake;
use crate::join::JoinCell;
use crate::permit::ParkPermit;
use crate::primitives::UnsafeCell;

#[test]
fn permit_given_before_park() {
    let permit = ParkPermit::default();
    assert!(!permit.try_consume(), "EMPTY: no permit");
    assert!(!permit.expire(), "EMPTY: nobody to wake");
    assert!(!permit.unpark(), "EMPTY → NOTIFIED: nobody to wake");
    assert!(!permit.unpark(), "NOTIFIED → NOTIFIED");
    assert!(!permit.expire(), "NOTIFIED: nobody to wake");
    assert!(permit.try_consume(), "NOTIFIED → EMPTY");
    assert!(!permit.try_consume(), "permits do not add up");

    assert!(!permit.unpark());
    assert!(!permit.begin_park(), "NOTIFIED → EMPTY");
    assert!(!permit.try_consume(), "the permit was used up");
}

#[test]
fn permit_given_while_parked() {
    let permit = ParkPermit::new();
    assert!(permit.begin_park(), "EMPTY → PARKED");
    assert!(!permit.try_consume(), "PARKED: no permit");
    assert!(permit.unpark(), "PARKED → NOTIFIED: the duty to wake");
    assert!(!permit.unpark(), "one duty only");
    assert!(!permit.expire(), "one duty only");
    assert!(permit.end_park(), "NOTIFIED → EMPTY");
    assert!(!permit.try_consume());
}

#[test]
fn permit_expires() {
    let permit = ParkPermit::new();
    assert!(permit.begin_park());
    assert!(permit.expire(), "PARKED → EMPTY: the duty to wake");
    assert!(!permit.expire(), "one duty only");
    assert!(!permit.end_park(), "there was no permit");

    assert!(permit.begin_park());
    assert!(permit.expire());
    assert!(!permit.unpark(), "the expiry has the duty");
    assert!(permit.end_park(), "the late permit is used up");
    assert!(permit.begin_park(), "and gone");
}

#[test]
fn handshake_wake_comes_second() {
    let handshake = Handshake::default();
    for _ in 0..2 {
        assert!(!handshake.woken_early());
        assert!(handshake.parked(), "RUNNING → PARKED");
        assert!(handshake.wake(), "PARKED → RUNNABLE: the waker enqueues");
        handshake.mounted();
    }
}

#[test]
fn handshake_wake_comes_first() {
    let handshake = Handshake::new();
    for _ in 0..2 {
        assert!(!handshake.wake(), "RUNNING → RUNNABLE");
        assert!(!handshake.parked(), "the next stack enqueues");
        handshake.mounted();
    }
}

#[test]
fn handshake_wake_comes_early() {
    let handshake = Handshake::new();
    for _ in 0..2 {
        assert!(!handshake.wake());
        assert!(handshake.woken_early(), "RUNNABLE → RUNNING");
        assert!(!handshake.woken_early(), "once");
    }
    assert!(handshake.parked());
}

#[test]
fn join_waits() {
    let cell = JoinCell::default();
    let waiter = NonNull::from(&cell).cast();
    assert!(!cell.is_done());
    assert!(cell.register(waiter), "EMPTY → waiter");
    assert!(!cell.is_done());
    assert!(cell.unregister(waiter), "waiter → EMPTY");
    assert!(cell.register(waiter), "again");
    assert_eq!(cell.finish(), Some(waiter), "waiter → DONE");
    assert!(cell.is_done());
    assert!(!cell.unregister(waiter), "the finisher has it");
}

#[test]
fn join_comes_late() {
    let cell = JoinCell::new();
    let waiter = NonNull::from(&cell).cast();
    assert_eq!(cell.finish(), None, "EMPTY → DONE");
    assert!(cell.is_done());
    assert!(!cell.register(waiter), "nothing to wait for");
}

#[test]
fn cell_gives_access_to_its_value() {
    let cell = UnsafeCell::new(1);
    // SAFETY: no other pointer to the value is in use, in either call.
    cell.with_mut(|value| unsafe { *value += 1 });
    // SAFETY: as above.
    assert_eq!(cell.with(|value| unsafe { *value }), 2);
}
