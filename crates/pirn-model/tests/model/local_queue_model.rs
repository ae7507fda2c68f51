//! The local queue: its owner against stealers. No item is lost or taken twice, each is seen as it
//! was when pushed, and each taker finds them in order. The rings are small and begin just below
//! the wrap of the indices, as all queues do, so that both the ring and the indices wrap.

use core::ptr::NonNull;

use loom::sync::Arc;
use loom::thread;

use crate::local_queue::{LocalQueue, RingSlot};
use crate::{Word, check};

type Queue<const CAP: usize> = LocalQueue<Word, CAP>;

/// Up to three processors' queues, and `N` items to go through them.
struct Queues<const CAP: usize, const N: usize> {
    queues: [Queue<CAP>; 3],
    items: [Word; N],
}

impl<const CAP: usize, const N: usize> Queues<CAP, N> {
    fn new() -> Arc<Self> {
        Self::growing(CAP)
    }

    /// Makes queues that grow up to `most`.
    fn growing(most: usize) -> Arc<Self> {
        let slots = || (0..2 * most).map(|_| RingSlot::new());
        Arc::new(Self {
            queues: core::array::from_fn(|_| Queue::with_slots(slots().collect())),
            items: core::array::from_fn(|_| Word::new()),
        })
    }

    /// Pushes item number `id`, as the owner of `queue`. Returns whether there was room.
    fn push(&self, queue: usize, id: usize) -> bool {
        self.items[id].write(id as u32);
        let item = NonNull::from(&self.items[id]);
        // SAFETY: in each model, one thread uses `queue` as its own.
        unsafe { self.queues[queue].push_back(item, 0) }.is_ok()
    }

    fn pop(&self, queue: usize) -> Option<u32> {
        // SAFETY: as in `push`.
        unsafe { self.queues[queue].pop() }.map(take)
    }

    fn shrink(&self, queue: usize) {
        // SAFETY: as in `push`.
        unsafe { self.queues[queue].shrink() };
    }

    /// Steals from `victim` into `dest`, the caller's own. Returns the item that it gets itself.
    fn steal(&self, victim: usize, dest: usize) -> Option<u32> {
        // SAFETY: as in `push`.
        unsafe { self.queues[victim].steal_into(&self.queues[dest]) }.map(take)
    }

    /// Steals once from queue 0, and then takes all stolen items.
    fn steal_and_drain(&self, dest: usize) -> Vec<u32> {
        let mut taken = Vec::from_iter(self.steal(0, dest));
        taken.extend(self.drain(dest));
        taken
    }

    fn drain(&self, queue: usize) -> Vec<u32> {
        core::iter::from_fn(|| self.pop(queue)).collect()
    }
}

/// Marks `item` as taken, and returns its number.
fn take(item: NonNull<Word>) -> u32 {
    const TAKEN: u32 = u32::MAX;
    // SAFETY: the items outlive the threads that hold queues with pointers to them.
    let item = unsafe { item.as_ref() };
    let id = item.read();
    assert_ne!(id, TAKEN, "an item was taken twice");
    item.write(TAKEN);
    id
}

/// Panics unless each taker has its items in order, and together they have items `0..n`, once each.
fn assert_all_taken(n: u32, takers: &[Vec<u32>]) {
    for taken in takers {
        assert!(taken.is_sorted(), "out of order: {taken:?}");
    }
    assert_once_each(n, takers);
}

fn assert_once_each(n: u32, takers: &[Vec<u32>]) {
    let mut all = takers.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..n), "lost or doubled: {takers:?}");
}

/// Runs `thief` in a thread of its own.
fn spawn<const CAP: usize, const N: usize, R: 'static>(
    queues: &Arc<Queues<CAP, N>>,
    thief: impl FnOnce(&Queues<CAP, N>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let queues = queues.clone();
    thread::spawn(move || thief(&queues))
}

#[test]
fn owner_and_stealer() {
    check(3, || {
        let queues = Queues::<4, 4>::new();
        let thief = spawn(&queues, |queues| queues.steal_and_drain(1));
        let mut popped = Vec::new();
        assert!(queues.push(0, 0));
        assert!(queues.push(0, 1));
        assert!(queues.push(0, 2));
        popped.extend(queues.pop(0));
        assert!(queues.push(0, 3));
        popped.extend(queues.drain(0));
        assert_all_taken(4, &[popped, thief.join().unwrap()]);
    });
}

#[test]
fn owner_and_two_stealers() {
    check(2, || {
        let queues = Queues::<4, 3>::new();
        let thieves = [1, 2].map(|dest| spawn(&queues, move |q| q.steal_and_drain(dest)));
        for id in 0..3 {
            assert!(queues.push(0, id));
        }
        let popped = Vec::from_iter(queues.pop(0));
        let [first, second] = thieves.map(|thief| thief.join().unwrap());
        let rest = queues.drain(0);
        assert_all_taken(3, &[popped, first, second, rest]);
    });
}

/// The owner goes round a ring of two, so that it overwrites slots that a slow stealer reads.
#[test]
fn slots_are_reused_under_a_stealer() {
    check(3, || {
        let queues = Queues::<2, 4>::new();
        let thief = spawn(&queues, |queues| {
            let mut taken = queues.steal_and_drain(1);
            taken.extend(queues.steal_and_drain(1));
            taken
        });
        let mut popped = Vec::new();
        for id in 0..4 {
            while !queues.push(0, id) {
                popped.extend(queues.pop(0));
            }
        }
        popped.extend(queues.drain(0));
        assert_all_taken(4, &[popped, thief.join().unwrap()]);
    });
}

/// Two stealers and a ring of two: one learns `head` from the other.
#[test]
fn slots_are_reused_under_two_stealers() {
    check(2, || {
        let queues = Queues::<2, 3>::new();
        let thieves = [1, 2].map(|dest| spawn(&queues, move |q| q.steal_and_drain(dest)));
        let mut popped = Vec::new();
        for id in 0..3 {
            while !queues.push(0, id) {
                popped.extend(queues.pop(0));
            }
        }
        let [first, second] = thieves.map(|thief| thief.join().unwrap());
        popped.extend(queues.drain(0));
        assert_all_taken(3, &[popped, first, second]);
    });
}

/// A full queue grows while it is stolen from.
#[test]
fn growing_and_stealer() {
    check(3, || {
        let queues = Queues::<2, 5>::growing(8);
        let thief = spawn(&queues, |queues| queues.steal_and_drain(1));
        for id in 0..5 {
            assert!(queues.push(0, id));
        }
        let rest = queues.drain(0);
        assert_all_taken(5, &[thief.join().unwrap(), rest]);
    });
}

/// A queue grows, shrinks and grows again while it is stolen from, so that a slow stealer reads a
/// ring that is in use for the second time.
#[test]
fn growing_twice_and_stealer() {
    check(2, || {
        let queues = Queues::<2, 7>::growing(8);
        let thief = spawn(&queues, |queues| queues.steal_and_drain(1));
        let mut popped = Vec::new();
        for id in 0..3 {
            assert!(queues.push(0, id));
        }
        for _ in 0..2 {
            popped.extend(queues.pop(0));
        }
        queues.shrink(0);
        for id in 3..7 {
            assert!(queues.push(0, id));
        }
        popped.extend(queues.drain(0));
        assert_all_taken(7, &[popped, thief.join().unwrap()]);
    });
}

/// A stealer learns of the growth from another stealer.
#[test]
fn growing_and_two_stealers() {
    check(2, || {
        let queues = Queues::<2, 4>::growing(8);
        let thieves = [1, 2].map(|dest| spawn(&queues, move |q| q.steal_and_drain(dest)));
        for id in 0..4 {
            assert!(queues.push(0, id));
        }
        let [first, second] = thieves.map(|thief| thief.join().unwrap());
        assert_all_taken(4, &[first, second, queues.drain(0)]);
    });
}

/// The stealer's own queue is stolen from while it fills up, in slots that were used before.
#[test]
fn stealer_is_stolen_from() {
    check(2, || {
        let queues = Queues::<4, 7>::new();
        for id in 0..4 {
            assert!(queues.push(1, id));
        }
        assert_eq!(queues.drain(1), [0, 1, 2, 3]);
        let thief = spawn(&queues, |queues| queues.steal(0, 1));
        let third = spawn(&queues, |queues| queues.steal(1, 2));
        for id in 4..7 {
            assert!(queues.push(0, id));
        }
        let stolen = Vec::from_iter(thief.join().unwrap());
        let third = Vec::from_iter(third.join().unwrap());
        let rests = [0, 1, 2].map(|queue| queues.drain(queue));
        let used = vec![0, 1, 2, 3];
        assert_once_each(7, &[used, stolen, third, rests.concat()]);
    });
}

/// No thread sees a length greater than the number of items pushed.
#[test]
fn length_seen_from_outside() {
    check(3, || {
        let queues = Queues::<4, 2>::new();
        let observer = spawn(&queues, |queues| queues.queues[0].len());
        for id in 0..2 {
            assert!(queues.push(0, id));
            assert!(!queues.queues[0].is_empty());
            assert_eq!(queues.pop(0), Some(id as u32));
        }
        assert!(queues.queues[0].is_empty());
        assert!(observer.join().unwrap() <= 2);
    });
}
