use super::*;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Returns a budget of a test's own.
fn all() -> &'static Taken {
    Box::leak(Box::new(Taken(Mutex::new(0))))
}

fn refusal(taken: &'static Taken, bytes: u64) -> String {
    match Budget::take_of(taken, bytes, Duration::ZERO) {
        Ok(_) => panic!("{bytes} bytes fitted"),
        Err(refusal) => refusal.0,
    }
}

#[test]
fn answers_have_no_more_than_all_the_room_together() {
    let taken = all();
    let half = Budget::take_of(taken, MOST_BYTES / 2, Duration::ZERO);
    let other = Budget::take_of(taken, MOST_BYTES / 2, Duration::ZERO);
    let said = refusal(taken, 1);
    assert!(
        said.starts_with("busy: dumps that are under way have 256 MiB, this one may need 1 MiB,"),
        "{said}"
    );
    // Small answers need none.
    drop(Budget::take_of(taken, 0, Duration::ZERO).ok().unwrap());
    drop(half);
    drop(
        Budget::take_of(taken, MOST_BYTES / 2, Duration::ZERO)
            .ok()
            .unwrap(),
    );
    refusal(taken, MOST_BYTES);
    drop(other);
    assert_eq!(*taken.lock(), 0);
}

#[test]
fn one_that_is_larger_than_all_is_alone() {
    let taken = all();
    let small = Budget::take_of(taken, 1, Duration::ZERO);
    refusal(taken, u64::MAX);
    drop(small);
    let large = Budget::take_of(taken, u64::MAX, Duration::ZERO);
    refusal(taken, 1);
    drop(large);
    drop(Budget::take_of(taken, 1, Duration::ZERO).ok().unwrap());
}

#[test]
fn what_an_answer_really_has_counts() {
    let taken = all();
    let mut budget = Budget::take_of(taken, 1, Duration::ZERO).ok().unwrap();
    budget.resize(2 * MOST_BYTES);
    refusal(taken, 1);
    budget.resize(1);
    let other = Budget::take_of(taken, MOST_BYTES - 1, Duration::ZERO);
    drop((budget, other));
    assert_eq!(*taken.lock(), 0);
}

#[test]
fn who_waits_gets_the_room_that_becomes_free() {
    let taken = all();
    let waits = AtomicBool::new(false);
    let budget = Budget::take_of(taken, MOST_BYTES, Duration::ZERO).ok();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            refusal(taken, 1);
            waits.store(true, SeqCst);
            Budget::take_of(taken, 1, Duration::from_secs(600)).is_ok()
        });
        while !waits.load(SeqCst) {
            std::thread::yield_now();
        }
        drop(budget);
        assert!(waiting.join().unwrap());
    });
}
