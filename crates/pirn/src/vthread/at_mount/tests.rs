use super::*;

#[test]
fn times_are_exact_to_the_unit() {
    for start in [0, 127, 128, 1 << 38, (1 << 38) - 1, (1 << 62) + 12_345] {
        for nanos in [0, 128, 1_000_000, 100_000_000_000] {
            let timed = AtMount::timed(start);
            assert!(!timed.is_nothing() && timed != AtMount::STACK);
            let found = timed.runnable_for(|| start + nanos).unwrap();
            assert!(
                found.abs_diff(nanos) <= 256,
                "{found} for {nanos} from {start}"
            );
        }
    }
}

#[test]
fn a_clock_that_is_behind_tells_of_no_time() {
    let timed = AtMount::timed(1 << 40);
    assert_eq!(timed.runnable_for(|| (1 << 40) - 1000), Some(0));
}

#[test]
fn other_duties_have_no_time() {
    assert_eq!(AtMount::NOTHING.runnable_for(|| 1 << 40), None);
    assert_eq!(AtMount::STACK.runnable_for(|| 1 << 40), None);
}
