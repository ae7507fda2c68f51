//! The messages that wait in a pool, and which of them can be begun next.
//!
//! ```text
//!   order:  | item | key 7 | item | key 9 | ...        first come, first served
//!   keys:   7 -> item, item, item    (it has a turn in the order)
//!           9 -> item                (it has a turn in the order)
//!           4 -> item, item          (one of its items is being handled: no turn)
//! ```
//!
//! An item without a key is in the order itself. An item with a key is behind the others of its
//! key, and the key has a *turn* in the order, unless an item of it is being handled: when that
//! item is over, the key gets its next turn, at the end. So any worker takes any key, the items of
//! one key are in order, and a key with many or slow items holds up no other key.
//!
//! Permits are given in this order: if the next item is too heavy for the permits that are left, it
//! waits, and nothing overtakes it. So heavy items do not wait for ever.
//!
//! Urgent items come first, in the order and in their key. A key with an urgent item gets a turn
//! among the urgent ones, so it may have two turns. A turn that finds no item is skipped.
//!
//! Rejected: keys hashed to fixed workers. A slow key then holds up all other keys of its worker
//! while other workers are free, and the pool could not grow without reordering messages.

use super::rules::Tag;
use std::collections::{HashMap, VecDeque};

/// An item that waits, and its tag.
pub(super) struct Entry<T> {
    pub(super) item: T,
    pub(super) tag: Tag,
}

/// Urgent entries, and the others, which come after them.
struct Lanes<T> {
    urgent: VecDeque<T>,
    usual: VecDeque<T>,
}

impl<T> Lanes<T> {
    const fn new() -> Lanes<T> {
        Lanes {
            urgent: VecDeque::new(),
            usual: VecDeque::new(),
        }
    }

    fn push(&mut self, item: T, is_urgent: bool) {
        match is_urgent {
            true => self.urgent.push_back(item),
            false => self.usual.push_back(item),
        }
    }

    fn first(&self) -> Option<&T> {
        self.urgent.front().or_else(|| self.usual.front())
    }

    fn pop(&mut self) -> Option<T> {
        self.urgent.pop_front().or_else(|| self.usual.pop_front())
    }

    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.usual.is_empty()
    }
}

/// A place in the order.
enum Place<T> {
    Item(Numbered<T>),
    /// The turn of a key.
    Turn(u64),
}

/// An entry with a number: the lower of two is older.
struct Numbered<T>(u64, Entry<T>);

/// The waiting items of one key. It exists while there are any, or while one is being handled.
struct Queue<T> {
    lanes: Lanes<Numbered<T>>,
    is_busy: bool,
}

/// See the head of this file.
pub(super) struct Ready<T> {
    order: Lanes<Place<T>>,
    keys: HashMap<u64, Queue<T>>,
    /// The permits that are free.
    permits: usize,
    waiting: usize,
    /// The number of items so far.
    pushed: u64,
}

impl<T> Ready<T> {
    pub(super) fn new(permits: usize) -> Ready<T> {
        Ready {
            order: Lanes::new(),
            keys: HashMap::new(),
            permits,
            waiting: 0,
            pushed: 0,
        }
    }

    /// Returns the number of items that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn push(&mut self, entry: Entry<T>, is_urgent: bool) {
        self.waiting += 1;
        self.pushed += 1;
        let key = entry.tag.key;
        let entry = Numbered(self.pushed, entry);
        let Some(key) = key else {
            return self.order.push(Place::Item(entry), is_urgent);
        };
        let queue = self.keys.entry(key).or_insert_with(|| Queue {
            lanes: Lanes::new(),
            is_busy: false,
        });
        let has_turn = !queue.lanes.is_empty();
        queue.lanes.push(entry, is_urgent);
        if !queue.is_busy && (is_urgent || !has_turn) {
            self.order.push(Place::Turn(key), is_urgent);
        }
    }

    /// Returns true if [`pop`](Ready::pop) would return an item.
    pub(super) fn can_begin(&mut self) -> bool {
        self.next_weight()
            .is_some_and(|weight| weight <= self.permits)
    }

    /// Returns the weight of the next item.
    fn next_weight(&mut self) -> Option<usize> {
        loop {
            match self.order.first()? {
                Place::Item(Numbered(_, entry)) => return Some(entry.tag.weight),
                Place::Turn(key) => {
                    let queue = self.keys.get(key).filter(|queue| !queue.is_busy);
                    if let Some(Numbered(_, entry)) = queue.and_then(|queue| queue.lanes.first()) {
                        return Some(entry.tag.weight);
                    }
                }
            }
            // A turn without an item.
            self.order.pop();
        }
    }

    /// Takes out the next item that can be begun. When it is over, the caller calls
    /// [`give_back`](Ready::give_back) with its tag.
    pub(super) fn pop(&mut self) -> Option<Entry<T>> {
        if !self.can_begin() {
            return None;
        }
        let Numbered(_, entry) = match self.order.pop()? {
            Place::Item(entry) => entry,
            Place::Turn(key) => {
                let queue = self.keys.get_mut(&key)?;
                queue.is_busy = true;
                queue.lanes.pop()?
            }
        };
        self.waiting -= 1;
        self.permits -= entry.tag.weight;
        Some(entry)
    }

    /// Frees the permits of an item that is over. The next item of its key can be begun.
    pub(super) fn give_back(&mut self, tag: Tag) {
        self.permits += tag.weight;
        let Some(key) = tag.key else { return };
        let Some(queue) = self.keys.get_mut(&key) else {
            return;
        };
        queue.is_busy = false;
        if queue.lanes.is_empty() {
            self.keys.remove(&key);
        } else {
            let is_urgent = !queue.lanes.urgent.is_empty();
            self.order.push(Place::Turn(key), is_urgent);
        }
    }

    /// Takes out the oldest item that is not urgent, whether or not it can be begun. Looks at each
    /// key: this is for full pools that drop.
    pub(super) fn pop_oldest(&mut self) -> Option<T> {
        let number = |place: &Place<T>| match place {
            Place::Item(Numbered(number, _)) => Some(*number),
            Place::Turn(_) => None,
        };
        let places = self.order.usual.iter().enumerate();
        let unkeyed = places
            .filter_map(|(at, place)| Some((number(place)?, at)))
            .next();
        let fronts = self.keys.iter();
        let keyed = fronts
            .filter_map(|(key, queue)| Some((queue.lanes.usual.front()?.0, *key)))
            .min();
        let Numbered(_, entry) = match (unkeyed, keyed) {
            (Some((item, at)), keyed) if keyed.is_none_or(|(other, _)| item < other) => {
                match self.order.usual.remove(at)? {
                    Place::Item(entry) => entry,
                    Place::Turn(_) => unreachable!("only items have numbers"),
                }
            }
            (_, keyed) => self.drop_of_key(keyed?.1)?,
        };
        self.waiting -= 1;
        Some(entry.item)
    }

    /// Takes out the oldest item of a key that is not urgent. Its turn stays, and may find no item.
    fn drop_of_key(&mut self, key: u64) -> Option<Numbered<T>> {
        let queue = self.keys.get_mut(&key)?;
        let entry = queue.lanes.usual.pop_front();
        if queue.lanes.is_empty() && !queue.is_busy {
            self.keys.remove(&key);
        }
        entry
    }

    /// Takes out all items, in no order.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.waiting = 0;
        let order = core::mem::replace(&mut self.order, Lanes::new());
        let keys = core::mem::take(&mut self.keys);
        let all = |lanes: Lanes<Numbered<T>>| lanes.urgent.into_iter().chain(lanes.usual);
        let unkeyed = order.urgent.into_iter().chain(order.usual);
        let unkeyed = unkeyed.filter_map(|place| match place {
            Place::Item(entry) => Some(entry),
            Place::Turn(_) => None,
        });
        let keyed = keys.into_values().flat_map(move |queue| all(queue.lanes));
        unkeyed.chain(keyed).map(|Numbered(_, entry)| entry.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(item: u32, weight: usize, key: Option<u64>) -> Entry<u32> {
        let tag = Tag { weight, key };
        Entry { item, tag }
    }

    fn pop(ready: &mut Ready<u32>) -> Option<(u32, Tag)> {
        ready.pop().map(|entry| (entry.item, entry.tag))
    }

    fn items(ready: &mut Ready<u32>) -> Vec<u32> {
        core::iter::from_fn(|| pop(ready).map(|(item, _)| item)).collect()
    }

    #[test]
    fn items_come_in_order_and_urgent_ones_first() {
        let mut ready = Ready::new(0);
        for (item, is_urgent) in [(1, false), (2, true), (3, false), (4, true)] {
            ready.push(entry(item, 0, None), is_urgent);
        }
        assert_eq!(items(&mut ready), [2, 4, 1, 3]);
        assert_eq!(ready.waiting(), 0);
    }

    #[test]
    fn one_item_of_a_key_at_a_time() {
        let mut ready = Ready::new(0);
        for (item, key) in [(1, 7), (2, 7), (3, 9), (4, 7), (5, 9)] {
            ready.push(entry(item, 0, Some(key)), false);
        }
        ready.push(entry(6, 0, None), false);
        let first = ready.pop().unwrap();
        assert_eq!(first.item, 1);
        assert_eq!(items(&mut ready), [3, 6]);
        assert!(!ready.can_begin());
        ready.give_back(first.tag);
        assert_eq!(items(&mut ready), [2]);
        ready.give_back(first.tag);
        assert_eq!(items(&mut ready), [4]);
        ready.give_back(first.tag);
        assert_eq!((ready.waiting(), ready.can_begin()), (1, false));
    }

    #[test]
    fn a_key_is_forgotten_when_nothing_of_it_is_left() {
        let mut ready = Ready::new(0);
        ready.push(entry(1, 0, Some(7)), false);
        let first = ready.pop().unwrap();
        ready.give_back(first.tag);
        assert!(ready.keys.is_empty());
    }

    #[test]
    fn an_urgent_item_comes_first_in_its_key_and_brings_it_forward() {
        let mut ready = Ready::new(0);
        ready.push(entry(1, 0, None), false);
        ready.push(entry(2, 0, Some(7)), false);
        ready.push(entry(3, 0, Some(7)), true);
        let first = ready.pop().unwrap();
        assert_eq!(first.item, 3);
        assert_eq!(items(&mut ready), [1]);
        ready.give_back(first.tag);
        assert_eq!(items(&mut ready), [2]);
        ready.give_back(first.tag);
        assert!(ready.keys.is_empty() && !ready.can_begin());
    }

    #[test]
    fn nothing_overtakes_a_heavy_item() {
        let mut ready = Ready::new(10);
        ready.push(entry(1, 6, None), false);
        ready.push(entry(2, 6, None), false);
        ready.push(entry(3, 1, None), false);
        let first = ready.pop().unwrap();
        assert!(items(&mut ready).is_empty());
        ready.give_back(first.tag);
        assert_eq!(items(&mut ready), [2, 3]);
    }

    #[test]
    fn the_oldest_is_dropped_wherever_it_waits() {
        let mut ready = Ready::new(0);
        ready.push(entry(1, 0, Some(7)), false);
        ready.push(entry(2, 0, Some(7)), false);
        ready.push(entry(3, 0, None), false);
        ready.push(entry(4, 0, Some(9)), false);
        ready.push(entry(5, 0, None), true);
        let first = [ready.pop().unwrap().item, ready.pop().unwrap().item];
        assert_eq!(first, [5, 1]);
        let oldest = core::iter::from_fn(|| ready.pop_oldest());
        assert!(oldest.eq([2, 3, 4]));
        assert!(!ready.can_begin());
        assert_eq!(ready.waiting(), 0);
    }

    #[test]
    fn all_that_waits_can_be_taken() {
        let mut ready = Ready::new(0);
        ready.push(entry(1, 0, Some(7)), false);
        ready.push(entry(2, 0, Some(7)), true);
        ready.push(entry(3, 0, None), false);
        let mut all: Vec<_> = ready.take_all().collect();
        all.sort_unstable();
        assert_eq!((all, ready.waiting()), (vec![1, 2, 3], 0));
    }
}
