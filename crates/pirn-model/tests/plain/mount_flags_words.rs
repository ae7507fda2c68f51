//! What a mount has to do besides: single steps of its word.

use crate::state::{MountFlags, MountWork};

fn timed(start: u64) -> MountWork {
    let word = MountFlags::new();
    word.time(start);
    word.take(|_| panic!("no other thread holds it"))
}

#[test]
fn times_are_exact_to_the_unit() {
    for start in [0, 127, 128, 1 << 38, (1 << 38) - 1, (1 << 62) + 12_345] {
        for nanos in [0, 128, 1_000_000, 100_000_000_000] {
            let found = timed(start).runnable_for(|| start + nanos).unwrap();
            assert!(
                found.abs_diff(nanos) <= 256,
                "{found} for {nanos} from {start}"
            );
        }
    }
}

#[test]
fn a_clock_that_is_behind_tells_of_no_time() {
    assert_eq!(timed(1 << 40).runnable_for(|| (1 << 40) - 1000), Some(0));
}

#[test]
fn other_duties_have_no_time() {
    let word = MountFlags::new();
    for _ in 0..2 {
        // A new thread's, then nothing.
        let duty = word.take(|_| panic!("no other thread holds it"));
        assert_eq!(duty.runnable_for(|| 1 << 40), None);
    }
    assert!(word.is_nothing());
}

#[test]
fn who_mounts_first_is_not_held() {
    let word = MountFlags::new();
    assert!(!word.ask(), "it has no stack");
    word.time(1 << 40);
    assert!(!word.ask(), "it still has none");
    assert!(word.take(|_| ()).is_first());
    assert!(word.ask());
    assert!(!word.ask(), "one asks at a time");
    assert_eq!(word.take(|_| ()).runnable_for(|| 1 << 40), None);
    assert!(!word.hold());
    word.withdraw();
    assert!(word.is_nothing());
}

#[test]
fn who_mounts_later_waits() {
    let word = MountFlags::new();
    word.take(|_| ());
    word.time(1 << 40);
    assert!(word.ask() && word.hold());
    word.time(1 << 41); // It is not overwritten.
    let mut rounds = 0;
    word.take(|round| {
        rounds = round + 1;
        if round == 2 {
            word.release();
        }
    });
    assert_eq!(rounds, 3);
    assert!(word.is_nothing());
}
