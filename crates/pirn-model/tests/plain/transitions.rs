//! Every transition in the protocols' tables, one after the other and in one thread.

use core::ptr::NonNull;

use crate::primitives::UnsafeCell;
use crate::state::Handshake;
use crate::state::JoinCell;
use crate::state::ParkPermit;
use crate::wait_word::{Decided, InterruptEffect, Interruptible, WaitWord};

#[test]
fn permit_given_before_park() {
    let permit = ParkPermit::new();
    assert!(!permit.try_consume(), "EMPTY: no permit");
    assert!(!permit.expire(), "EMPTY: no thread to wake");
    assert!(!permit.unpark(), "EMPTY → NOTIFIED: no thread to wake");
    assert!(!permit.unpark(), "NOTIFIED → NOTIFIED");
    assert!(!permit.expire(), "NOTIFIED: no thread to wake");
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
    let handshake = Handshake::new();
    for _ in 0..2 {
        assert!(!handshake.woken_early());
        assert!(handshake.parked(), "RUNNING → PARKED");
        assert!(handshake.wake(), "PARKED → RUNNABLE: the waker enqueues");
        handshake.resumed();
    }
}

#[test]
fn handshake_wake_comes_first() {
    let handshake = Handshake::new();
    for _ in 0..2 {
        assert!(!handshake.wake(), "RUNNING → RUNNABLE");
        assert!(!handshake.parked(), "the next stack enqueues");
        handshake.resumed();
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
fn handshake_is_walked() {
    let handshake = Handshake::new();
    assert!(!handshake.begin_inspection(), "RUNNING");
    for _ in 0..2 {
        assert!(handshake.parked());
        assert!(handshake.begin_inspection(), "PARKED → INSPECTED");
        assert!(!handshake.begin_inspection(), "one reader at a time");
        assert!(handshake.end_inspection(), "INSPECTED → PARKED");
        assert!(handshake.begin_inspection());
        assert!(
            !handshake.wake(),
            "INSPECTED → RUNNABLE: the reader enqueues"
        );
        assert!(!handshake.begin_inspection(), "RUNNABLE");
        assert!(!handshake.end_inspection(), "the duty");
        handshake.resumed();
    }
}

#[test]
fn join_waits() {
    let cell = JoinCell::new();
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

const READY: u32 = 2;
const INTERRUPTED: u32 = 5;

/// The effect of an interrupt that ends nothing, and that no listener waits for.
const UNDELIVERED: InterruptEffect = InterruptEffect {
    ended: None,
    listened: false,
};

#[test]
fn wait_is_decided_once() {
    let word = WaitWord::idle();
    assert_eq!(word.decide(READY), None, "there is no wait");
    for interruptible in [Interruptible::OnceInSleep, Interruptible::Always] {
        assert!(word.begin(interruptible).is_ok(), "outcome → PENDING");
        assert_eq!(word.outcome(), None);
        assert_eq!(word.decide(READY), Some(Decided { asleep: false }));
        assert_eq!(word.outcome(), Some(READY), "PENDING → outcome");
        assert_eq!(word.decide(3), None, "one duty only");
        assert_eq!(word.fall_asleep(), None, "nothing to sleep for");
    }
    assert_eq!(WaitWord::pending().outcome(), None);
}

#[test]
fn wait_falls_asleep() {
    let word = WaitWord::pending();
    let compared = word.fall_asleep();
    assert!(compared.is_some(), "PENDING → ASLEEP");
    assert_eq!(word.fall_asleep(), compared, "ASLEEP");
    assert_eq!(word.outcome(), None);
    assert_eq!(word.decide(READY), Some(Decided { asleep: true }));
    assert_eq!(word.outcome(), Some(READY), "ASLEEP → outcome");
}

#[test]
fn interrupt_ends_a_wait() {
    for asleep in [false, true] {
        let word = WaitWord::idle();
        assert!(word.begin(Interruptible::OnceInSleep).is_ok());
        if asleep {
            assert!(word.fall_asleep().is_some());
        }
        let ended = Some(Decided { asleep });
        let first = word.interrupt(INTERRUPTED);
        assert_eq!(
            first,
            InterruptEffect {
                ended,
                ..UNDELIVERED
            }
        );
        assert_eq!(word.outcome(), Some(INTERRUPTED));
        assert_eq!(word.decide(READY), None, "one duty only");
        assert!(
            word.begin(Interruptible::OnceInSleep).is_ok(),
            "it has been delivered"
        );
    }
}

#[test]
fn interrupt_before_a_wait_is_heard_by_it() {
    let word = WaitWord::idle();
    assert!(!word.take());
    assert_eq!(word.interrupt(INTERRUPTED), UNDELIVERED);
    assert!(word.is_interrupted());
    assert!(word.begin(Interruptible::OnceInSleep).is_err(), "delivered");
    assert!(word.begin(Interruptible::OnceInSleep).is_ok(), "once");
    assert_eq!(word.decide(READY), Some(Decided { asleep: false }));
    assert!(word.is_interrupted(), "a wait leaves the flag");
    for _ in 0..2 {
        assert!(
            word.begin(Interruptible::Always).is_err(),
            "as long as the flag is set"
        );
    }
    assert_eq!(word.interrupt(INTERRUPTED), UNDELIVERED);
    assert!(
        word.begin(Interruptible::OnceInSleep).is_err(),
        "once per interrupt"
    );
    assert_eq!(word.interrupt(INTERRUPTED), UNDELIVERED);
    assert!(word.begin(Interruptible::Always).is_err());
    assert!(
        word.begin(Interruptible::OnceInSleep).is_ok(),
        "it was delivered"
    );
}

#[test]
fn interrupt_is_taken() {
    let word = WaitWord::idle();
    assert_eq!(word.interrupt(INTERRUPTED), UNDELIVERED);
    assert!(word.take(), "any → none");
    assert!(!word.take());
    assert!(!word.is_interrupted());
    assert!(
        word.begin(Interruptible::Always).is_ok(),
        "the thread can wait again"
    );
}

#[test]
fn interrupt_is_listened_to() {
    let word = WaitWord::idle();
    assert!(!word.listen(), "there was none before");
    let listened = InterruptEffect {
        listened: true,
        ..UNDELIVERED
    };
    assert_eq!(word.interrupt(INTERRUPTED), listened);
    assert!(word.listen(), "there was one");
    assert!(word.take());
    assert!(!word.listen(), "that was taken");
    assert_eq!(word.outcome(), Some(READY), "the wait is another matter");
}

#[test]
fn a_futex_does_not_hear_for_a_sleep() {
    let word = WaitWord::idle();
    assert!(word.begin(Interruptible::OnceInFutex).is_ok());
    let ended = word.interrupt(5).ended;
    assert!(ended.is_some());
    assert!(
        word.begin(Interruptible::OnceInFutex).is_ok(),
        "delivered already"
    );
    assert!(word.decide(2).is_some());
    assert!(
        word.begin(Interruptible::OnceInSleep).is_err(),
        "not delivered before"
    );
    assert!(
        word.begin(Interruptible::OnceInSleep).is_ok(),
        "delivered now"
    );
    assert!(word.decide(2).is_some());
    assert!(word.begin(Interruptible::Always).is_err());
    assert!(word.take());
    assert!(word.begin(Interruptible::Always).is_ok());
}

#[test]
fn cell_gives_access_to_its_value() {
    let cell = UnsafeCell::new(1);
    // SAFETY: no other pointer to the value is in use, in either call.
    cell.with_mut(|value| unsafe { *value += 1 });
    // SAFETY: no other pointer to the value is in use, in either call.
    assert_eq!(cell.with(|value| unsafe { *value }), 2);
}
