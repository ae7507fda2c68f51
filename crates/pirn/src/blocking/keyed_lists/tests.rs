use super::super::list::Links;
use super::*;

struct Item {
    key: usize,
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
        self.key
    }
}

fn items(count: usize, key: impl Fn(usize) -> usize) -> Vec<Item> {
    let item = |number| Item {
        key: key(number),
        number,
        links: Links::new(),
    };
    (0..count).map(item).collect()
}

/// Returns the numbers of the waiters of `key`, in order.
fn waiting_for(waiters: &mut KeyedLists<Item>, key: usize) -> Vec<usize> {
    let all = waiters.list(key).iter();
    all.filter(|item| item.key == key)
        .map(|item| item.number)
        .collect()
}

#[test]
fn every_waiter_is_found_by_its_key_in_order_of_arrival() {
    const KEYS: usize = 500;
    let items = items(5 * KEYS, |number| 0x1000 + number % KEYS * 64);
    let mut waiters = KeyedLists::new();
    for item in &items {
        // SAFETY: the tests keep their items until the end.
        unsafe { waiters.append(item, item.number + 1) };
    }
    assert!(waiters.lists().len() > 100);
    for key in 0..KEYS {
        let expected: Vec<usize> = (0..5).map(|i| key + i * KEYS).collect();
        assert_eq!(waiting_for(&mut waiters, 0x1000 + key * 64), expected);
    }
    for item in &items {
        // SAFETY: it is in this list.
        unsafe { waiters.list(item.key).remove(item) };
    }
    assert!(waiters.lists().iter().all(|list| list.is_empty()));
}

#[test]
fn few_waiters_share_one_list_and_many_of_one_key_do_too() {
    let few = items(CROWD, |number| number * 8);
    let mut waiters = KeyedLists::new();
    for item in &few {
        // SAFETY: the tests keep their items until the end.
        unsafe { waiters.append(item, item.number + 1) };
    }
    assert_eq!(waiters.lists().len(), 1);
    assert!(waiters.share_list(0, 1 << 40));

    let many = items(100_000, |_| 8);
    let mut waiters = KeyedLists::new();
    for item in &many {
        // SAFETY: as above.
        unsafe { waiters.append(item, item.number + 1) };
    }
    assert_eq!(waiters.lists().len(), MOST_LISTS);
    assert_eq!(waiting_for(&mut waiters, 8).len(), many.len());
}
