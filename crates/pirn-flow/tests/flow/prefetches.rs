//! Stocks that are filled ahead.

use crate::common::{Gate, HOUR, until, watched};
use pirn::scope::with_deadline;
use pirn::thread;
use pirn_flow::prefetch::{Builder, Error, prefetch};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Supplies the numbers from 0 on, `each` at a time, and counts the deliveries.
fn counter(
    each: usize,
) -> (
    impl FnMut() -> Result<std::ops::Range<usize>, String>,
    Arc<AtomicUsize>,
) {
    let deliveries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&deliveries);
    let supply = move || {
        let first = count.fetch_add(1, Ordering::SeqCst) * each;
        Ok(first..first + each)
    };
    (supply, deliveries)
}

#[watched]
fn items_are_there_before_they_are_wanted() {
    let (supply, deliveries) = counter(10);
    let numbers = prefetch(3, supply);
    until(|| numbers.len() == 10);
    assert_eq!(deliveries.load(Ordering::SeqCst), 1);
    for n in 0..7 {
        assert_eq!(numbers.take(), Ok(n));
    }
    // Three are left, which is not below three.
    assert_eq!((numbers.len(), deliveries.load(Ordering::SeqCst)), (3, 1));
    assert_eq!(numbers.take(), Ok(7));
    until(|| numbers.len() == 12);
    assert_eq!(deliveries.load(Ordering::SeqCst), 2);
}

#[watched]
fn all_who_take_get_different_items() {
    let (supply, _) = counter(7);
    let numbers = prefetch(2, supply);
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let numbers = numbers.clone();
            thread::spawn(move || {
                (0..100)
                    .map(|_| numbers.take().unwrap())
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let taken: Vec<_> = takers
        .into_iter()
        .flat_map(|taker| taker.join().unwrap())
        .collect();
    let different: BTreeSet<_> = taken.iter().collect();
    assert_eq!((taken.len(), different.len()), (800, 800));
}

#[watched]
fn what_is_there_can_be_taken_while_more_is_on_its_way() {
    let gate = Gate::new();
    let (blocked, mut first) = (gate.clone(), true);
    let numbers = prefetch(5, move || {
        if !std::mem::take(&mut first) {
            blocked.wait();
        }
        Ok::<_, String>([1, 2])
    });
    assert_eq!(numbers.take(), Ok(1));
    assert_eq!(numbers.take(), Ok(2));
    assert_eq!(
        numbers.take_timeout(Duration::from_millis(2)),
        Err(Error::TimedOut)
    );
    gate.open();
    assert_eq!(numbers.take(), Ok(1));
}

#[watched]
fn a_delivery_is_attempted_again_and_then_it_has_failed() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let none = Builder::new(1)
        .retries(2, Duration::from_millis(1))
        .start(move || {
            let attempt = count.fetch_add(1, Ordering::SeqCst);
            match attempt {
                0 => panic!("an attempt that panics"),
                1 => Ok(vec![]),
                _ => Err::<Vec<u32>, _>(format!("attempt {attempt}")),
            }
        });
    until(|| attempts.load(Ordering::SeqCst) == 3);
    // Perhaps of the first delivery, perhaps of another.
    let Err(Error::Failed(failure)) = none.take() else {
        panic!("it has failed")
    };
    assert!(failure.starts_with("attempt "), "{failure}");
    assert_eq!(attempts.load(Ordering::SeqCst) % 3, 0);
}

#[watched]
fn the_fallback_helps_out_when_nothing_can_be_supplied() {
    let works = Arc::new(AtomicBool::new(true));
    let supplier_works = Arc::clone(&works);
    let supply = move || match supplier_works.load(Ordering::SeqCst) {
        true => Ok([1]),
        false => Err("none"),
    };
    let numbers = Builder::new(1).fallback(|| 911).start(supply);
    assert_eq!(numbers.take(), Ok(1));
    works.store(false, Ordering::SeqCst);
    until(|| numbers.take() == Ok(911)); // one may be there still
    assert_eq!(numbers.take(), Ok(911));
    works.store(true, Ordering::SeqCst);
    until(|| numbers.take() == Ok(1)); // a delivery may have failed still
    assert_eq!(numbers.take(), Ok(1));
}

#[watched]
fn an_interrupt_or_a_deadline_ends_the_wait() {
    let numbers = prefetch(1, || thread::sleep_interruptible(HOUR).map(|()| [1]));
    let taker = {
        let numbers = numbers.clone();
        thread::spawn(move || numbers.take())
    };
    taker.thread().interrupt();
    assert_eq!(taker.join().unwrap(), Err(Error::Interrupted));
    // And so does a deadline.
    let late = with_deadline(Instant::now(), || numbers.take_timeout(HOUR));
    assert_eq!(late, Err(Error::TimedOut));
}

#[watched]
fn a_delivery_that_cannot_be_taken_is_interrupted() {
    let (alive, begun) = (Arc::new(()), Gate::new());
    let (lives, begins) = (Arc::clone(&alive), begun.clone());
    let numbers = Builder::new(1).retries(u32::MAX, HOUR).start(move || {
        let _lives = &lives;
        begins.open();
        thread::sleep_interruptible(HOUR).map(|()| [1])
    });
    begun.wait();
    drop(numbers);
    until(|| Arc::strong_count(&alive) == 1);
}
