use super::*;
use crate::blocking::list::{Links, STEPS};
use core::cell::{Cell, RefCell};
use std::collections::HashMap;

struct Item {
    key: Cell<usize>,
    number: usize,
    links: Links<Item>,
}

impl Linked for Item {
    fn links(&self) -> &Links<Item> {
        &self.links
    }
}

impl Keyed for Item {
    fn key(&self) -> usize {
        self.key.get()
    }
}

fn items(count: usize, key: impl Fn(usize) -> usize) -> Vec<Item> {
    let item = |number| Item {
        key: Cell::new(key(number)),
        number,
        links: Links::new(),
    };
    (0..count).map(item).collect()
}

fn append_all(queues: &mut KeyedQueues<Item>, items: &[Item]) {
    for item in items {
        // SAFETY: the tests keep their items until the end, and add each to one bucket.
        unsafe { queues.append(item) };
    }
}

/// Returns the numbers of the waiters of `key`, in order.
fn waiting_for(queues: &mut KeyedQueues<Item>, key: usize) -> Vec<usize> {
    let numbers = RefCell::new(Vec::new());
    let note = |item: &Item| {
        assert_eq!(item.key.get(), key);
        numbers.borrow_mut().push(item.number);
        false
    };
    queues.take_while(key, note, |_| unreachable!("none is wanted"));
    numbers.into_inner()
}

fn take_first(queues: &mut KeyedQueues<Item>, key: usize) -> Option<usize> {
    let mut first = None;
    let note = |item: &Item| {
        assert!(!item.links.is_linked(), "a claimed item may be gone");
        first = Some(item.number);
        ControlFlow::Break(())
    };
    queues.take_while(key, |_| true, note);
    first
}

#[test]
fn waiters_of_a_key_are_found_in_order_of_arrival() {
    const KEYS: usize = 500;
    let items = items(5 * KEYS, |number| 0x1000 + number % KEYS * 64);
    let mut queues = KeyedQueues::new();
    append_all(&mut queues, &items);
    for key in 0..KEYS {
        let expected: Vec<usize> = (0..5).map(|i| key + i * KEYS).collect();
        assert_eq!(waiting_for(&mut queues, 0x1000 + key * 64), expected);
    }
    assert_eq!(waiting_for(&mut queues, 0x1000 + KEYS * 64), []);
}

#[test]
fn a_wake_visits_no_waiter_of_another_key() {
    const KEYS: usize = 3000;
    let items = items(2 * KEYS, |number| 0x1000 + number % KEYS * 8);
    let mut queues = KeyedQueues::new();
    append_all(&mut queues, &items);
    STEPS.set(0);
    for round in 0..2 {
        for key in 0..KEYS {
            let woken = take_first(&mut queues, 0x1000 + key * 8);
            assert_eq!(woken, Some(round * KEYS + key));
        }
    }
    assert_eq!(STEPS.get(), 2 * KEYS, "one step per wake");
}

/// A bucket with more keys than its table takes, as it is without memory for a table.
#[test]
fn keys_without_a_place_are_found_too() {
    const KEYS: usize = 5000;
    let items = items(2 * KEYS, |number| number % KEYS * 4);
    let mut queues = KeyedQueues::new();
    append_all(&mut queues, &items);
    assert!(!queues.few.is_empty());
    for key in (0..KEYS).rev() {
        assert_eq!(waiting_for(&mut queues, key * 4), [key, key + KEYS]);
        // SAFETY: it is in no other bucket.
        unsafe { queues.remove(&items[key]) };
        assert_eq!(take_first(&mut queues, key * 4), Some(key + KEYS));
        assert_eq!(take_first(&mut queues, key * 4), None);
    }
    assert!(queues.few.is_empty());
    assert_eq!(queues.few_len, 0);
}

#[test]
fn all_waiters_are_taken_up_to_the_last_that_is_asked_for() {
    for count in [1, 2, 3, 100, 6000] {
        let items = items(count, |number| number / 2 * 4);
        let mut queues = KeyedQueues::new();
        append_all(&mut queues, &items);
        for asked in [10, usize::MAX] {
            let before = items.iter().filter(|item| item.links.is_linked()).count();
            let mut taken = 0;
            queues.take_all_while(|item| {
                assert!(!item.links.is_linked(), "a claimed item may be gone");
                taken += 1;
                break_if(taken == asked)
            });
            assert_eq!(taken, before.min(asked));
            for item in &items {
                let waits = waiting_for(&mut queues, item.key.get()).contains(&item.number);
                assert_eq!(waits, item.links.is_linked());
            }
        }
        assert!(items.iter().all(|item| !item.links.is_linked()));
    }
}

/// Returns numbers in no order, below a bound that the caller gives.
fn some_numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |bound| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 20) as usize % bound
    }
}

/// The operations of the parking lot, in no order, and the same on plain vectors.
#[test]
fn queues_are_as_vectors_per_key() {
    for (keys, waiters) in [(2, 8), (5, 20), (40, 100), (4000, 6000)] {
        let mut number = some_numbers(keys as u64 + 1);
        let items = items(waiters, |_| 0);
        let mut queues = KeyedQueues::new();
        let mut expected: HashMap<usize, Vec<usize>> = HashMap::new();
        for _ in 0..50_000 {
            let item = &items[number(waiters)];
            let key = number(keys) * 4;
            let (old, listed) = (item.key.get(), expected.entry(item.key.get()).or_default());
            match (number(4), listed.iter().position(|&n| n == item.number)) {
                (0, Some(place)) => {
                    listed.remove(place);
                    // SAFETY: it is in no other bucket.
                    unsafe { queues.remove(item) };
                }
                (1, _) => {
                    let first = (!listed.is_empty()).then(|| listed.remove(0));
                    assert_eq!(take_first(&mut queues, old), first);
                }
                (2, _) => {
                    let count = number(3).min(listed.len());
                    let moved: Vec<usize> = listed.drain(..count).collect();
                    let mut taken = queues.take(old, count);
                    expected.entry(key).or_default().extend(&moved);
                    for number in moved {
                        assert_eq!(taken.take_first().map(|item| item.number), Some(number));
                        items[number].key.set(key);
                        // SAFETY: it stays, and is in no list.
                        unsafe { queues.append(&items[number]) };
                    }
                }
                (_, None) => {
                    item.key.set(key);
                    expected.entry(key).or_default().push(item.number);
                    // SAFETY: it stays, and is in no list.
                    unsafe { queues.append(item) };
                }
                _ => {}
            }
            assert_eq!(
                waiting_for(&mut queues, key),
                *expected.entry(key).or_default()
            );
        }
        for (key, expected) in expected {
            assert_eq!(waiting_for(&mut queues, key), expected);
        }
        let places = queues.table.capacity();
        assert!(places <= (2 * keys).next_power_of_two().max(8), "{places}");
    }
}
