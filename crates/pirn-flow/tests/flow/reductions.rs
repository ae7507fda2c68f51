//! Map and reduce.

use crate::common::{Gate, HOUR, watched};
use pirn::scope::{JoinError, deadline, with_deadline};
use pirn::thread;
use pirn_actor as actor;
use pirn_flow::map_reduce::{map_reduce, try_map_reduce};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

#[watched]
fn all_items_are_mapped_and_reduced() {
    for parallelism in [1, 2, 8, 5000] {
        let sum = map_reduce(
            parallelism,
            0..1000,
            |n| n * n,
            0,
            |sum, square| sum + square,
        );
        assert_eq!(sum.unwrap(), 332_833_500);
    }
    let nothing = map_reduce(3, [0; 0], |n| n, 7, |sum, n| sum + n);
    assert_eq!(nothing.unwrap(), 7);
}

#[watched]
fn as_many_items_as_may_be_are_mapped_at_a_time_and_no_more() {
    let (running, all) = (AtomicUsize::new(0), Barrier::new(4));
    let most = map_reduce(
        4,
        0..40,
        |_| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            all.wait(); // four, or none goes on
            running.fetch_sub(1, Ordering::SeqCst);
            now
        },
        0,
        usize::max,
    );
    assert!(most.unwrap() <= 4);
}

#[watched]
fn results_are_reduced_as_they_come() {
    // The first item is mapped when the second has been reduced.
    let reduced = Gate::new();
    let map = |n| {
        if n == 0 {
            reduced.wait();
        }
        n
    };
    let order = map_reduce(2, 0..2, map, Vec::new(), |mut order, n| {
        reduced.open();
        order.push(n);
        order
    });
    assert_eq!(order.unwrap(), [1, 0]);
}

#[watched]
fn both_functions_may_borrow() {
    let words = ["warp".to_string(), "weft".to_string(), "warp".to_string()];
    let calls = AtomicUsize::new(0);
    let mut seen = Vec::new();
    let different = map_reduce(
        2,
        &words,
        |word| {
            calls.fetch_add(1, Ordering::SeqCst);
            word.as_str()
        },
        BTreeSet::new(),
        |mut set, word| {
            seen.push(word);
            set.insert(word);
            set
        },
    );
    assert_eq!(different.unwrap().len(), 2);
    assert_eq!((seen.len(), calls.into_inner()), (3, 3));
}

#[watched]
fn items_are_taken_when_there_is_a_thread_for_them() {
    let held = Arc::new(());
    let items = std::iter::repeat_with(|| Arc::clone(&held)).take(3000);
    let most = map_reduce(
        4,
        items,
        |item| {
            thread::yield_now();
            item
        },
        0,
        // A slow reduction holds up the mapping: ours, four with threads, one that waits for one.
        |most: usize, item| {
            thread::yield_now();
            most.max(Arc::strong_count(&item))
        },
    );
    assert!(most.unwrap() <= 6);
}

#[watched]
fn a_panic_in_either_function_is_an_error_and_ends_the_others() {
    for in_map in [true, false] {
        let ended = Mutex::new(0);
        let all_begun = Barrier::new(3);
        let map = |n: u32| {
            if n < 3 {
                all_begun.wait();
            }
            if n == 0 {
                assert!(!in_map, "in the map");
            } else if thread::sleep_interruptible(HOUR).is_err() {
                *ended.lock().unwrap() += 1;
            }
            n
        };
        let reduce = |_, _| panic!("in the reduction");
        let result = map_reduce(3, 0.., map, (), reduce);
        let Err(JoinError::Panicked(panic)) = result else {
            panic!("{result:?}")
        };
        let wanted = if in_map {
            "in the map"
        } else {
            "in the reduction"
        };
        assert!(panic.message().unwrap().contains(wanted), "{panic}");
        assert!(*ended.lock().unwrap() >= 2, "they were waited for");
    }
}

#[watched]
fn the_first_error_of_functions_that_can_fail_is_the_result() {
    let in_map = try_map_reduce(
        3,
        0..,
        |n| if n < 50 { Ok(n) } else { Err("map") },
        0,
        |sum, n| Ok(sum + n),
    );
    assert!(
        matches!(in_map, Err(JoinError::Failed("map"))),
        "{in_map:?}"
    );
    let until_ten = |count, _| {
        if count < 10 {
            Ok(count + 1)
        } else {
            Err("ten")
        }
    };
    let in_reduce = try_map_reduce(3, 0.., Ok, 0, until_ten);
    assert!(
        matches!(in_reduce, Err(JoinError::Failed("ten"))),
        "{in_reduce:?}"
    );
}

#[watched]
fn an_interrupt_ends_it() {
    // While it waits for room, while it waits for the last ones, and while it has always room.
    for items in [10, 2, usize::MAX] {
        let begun = Gate::new();
        let begins = begun.clone();
        let reducing = thread::spawn(move || {
            let map = |_| {
                begins.open();
                if items < usize::MAX {
                    let _ = thread::sleep_interruptible(HOUR);
                }
            };
            map_reduce(2, 0..items, map, (), |(), ()| ())
        });
        begun.wait();
        reducing.thread().interrupt();
        let result = reducing.join().unwrap();
        assert!(matches!(result, Err(JoinError::Interrupted)), "{result:?}");
    }
}

#[watched]
fn the_deadline_of_the_asker_ends_it() {
    for takes_long in [true, false] {
        let (tell, told) = mpsc::channel();
        let reduces = actor::function(move |()| {
            let map = |_| {
                if takes_long {
                    let _ = thread::sleep_interruptible(HOUR);
                }
            };
            let reduced: Result<(), JoinError<Infallible>> =
                map_reduce(2, 0u64.., map, (), |(), ()| ());
            tell.send(reduced).unwrap();
        });
        let reduced = std::iter::repeat_with(|| {
            // On a busy machine the time may be up before the message is begun.
            let _ = reduces.ask_timeout((), Duration::from_millis(5));
            told.recv_timeout(Duration::from_millis(50)).ok()
        });
        let reduced = reduced.flatten().next();
        assert!(
            matches!(reduced, Some(Err(JoinError::TimedOut))),
            "{reduced:?}"
        );
    }
}

#[watched]
fn the_callers_deadline_holds_for_the_functions() {
    let count = |have_one| {
        let map = |_| u32::from(deadline().is_some() == have_one);
        map_reduce(2, 0..4, map, 0, |sum, n| sum + n).unwrap()
    };
    assert_eq!(with_deadline(Instant::now() + HOUR, || count(true)), 4);
    assert_eq!(count(false), 4);
}
