//! Stocks that are filled ahead.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::{self as actor, AskError, Prefetch, Prefetched};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

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
    let numbers = actor::prefetch(3, supply);
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
    let numbers = actor::prefetch(2, supply);
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
    let numbers = actor::prefetch(5, move || {
        if !std::mem::take(&mut first) {
            blocked.wait();
        }
        Ok::<_, String>([1, 2])
    });
    assert_eq!(numbers.take(), Ok(1));
    assert_eq!(numbers.take(), Ok(2));
    assert_eq!(
        numbers.take_timeout(Duration::from_millis(2)),
        Err(AskError::TimedOut)
    );
    gate.open();
    assert_eq!(numbers.take(), Ok(1));
}

#[watched]
fn a_delivery_is_attempted_again_and_then_it_has_failed() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let none = Prefetch::below(1)
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
    let Err(AskError::Failed(failure)) = none.take() else {
        panic!("it has failed")
    };
    assert!(failure.to_string().starts_with("attempt "), "{failure}");
    assert_eq!(attempts.load(Ordering::SeqCst) % 3, 0);
}

#[watched]
fn a_delivery_that_succeeds_at_last_is_taken() {
    let mut attempts = 0;
    let numbers = Prefetch::below(1)
        .retries(3, Duration::ZERO)
        .start(move || {
            attempts += 1;
            if attempts % 4 == 0 {
                Ok([attempts])
            } else {
                Err("not yet")
            }
        });
    assert_eq!(numbers.take(), Ok(4));
    assert_eq!(numbers.take(), Ok(8));
}

#[watched]
fn somebody_helps_out_when_nothing_can_be_supplied() {
    let works = Arc::new(AtomicBool::new(true));
    let supplier_works = Arc::clone(&works);
    let supply = move || match supplier_works.load(Ordering::SeqCst) {
        true => Ok([1]),
        false => Err("none"),
    };
    let numbers = Prefetch::below(1).start_or(supply, || 911);
    assert_eq!(numbers.take(), Ok(1));
    works.store(false, Ordering::SeqCst);
    until(|| numbers.take() == Ok(911)); // one may be there still
    assert_eq!(numbers.take(), Ok(911));
    works.store(true, Ordering::SeqCst);
    until(|| numbers.take() == Ok(1)); // a delivery may have failed still
    assert_eq!(numbers.take(), Ok(1));
}

#[watched]
fn an_interrupt_ends_the_wait() {
    let numbers = actor::prefetch(1, || thread::sleep_interruptible(HOUR).map(|()| [1]));
    let taker = {
        let numbers = numbers.clone();
        thread::spawn(move || numbers.take())
    };
    taker.thread().interrupt();
    assert_eq!(taker.join().unwrap(), Err(AskError::Interrupted));
}

#[watched]
fn a_delivery_that_nobody_can_take_is_interrupted() {
    let (alive, begun) = (Arc::new(()), Gate::new());
    let (lives, begins) = (Arc::clone(&alive), begun.clone());
    let numbers = Prefetch::below(1).retries(u32::MAX, HOUR).start(move || {
        let _lives = &lives;
        begins.open();
        thread::sleep_interruptible(HOUR).map(|()| [1])
    });
    begun.wait();
    drop(numbers);
    until(|| Arc::strong_count(&alive) == 1);
}

#[watched]
fn a_supplier_that_takes_from_its_own_stock_is_a_deadlock() {
    let (own, there) = (Arc::new(Mutex::new(None::<Prefetched<u32>>)), Gate::new());
    let (its_own, waits) = (Arc::clone(&own), there.clone());
    let numbers = actor::prefetch(1, move || {
        waits.wait();
        let own = its_own.lock().unwrap().clone();
        own.unwrap().take().map(|n| [n])
    });
    *own.lock().unwrap() = Some(numbers.clone());
    there.open();
    let error = numbers.take().unwrap_err();
    assert!(error.to_string().contains("deadlock"), "{error}");
    *own.lock().unwrap() = None;
}
