//! Atomics, and locks that are held too briefly.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

/// Broken: a read and a write, for an update.
pub fn update(mended: bool) {
    let sum = Arc::new(AtomicU32::new(0));
    let threads = [(); 2].map(|()| {
        let sum = Arc::clone(&sum);
        thread::spawn(move || match mended {
            true => drop(sum.fetch_add(1, SeqCst)),
            false => sum.store(sum.load(SeqCst) + 1, SeqCst),
        })
    });
    threads.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(sum.load(SeqCst), 2);
}

/// Broken: the lock is not held while the value is computed.
pub fn cache(mended: bool) {
    let cache = Arc::new((Mutex::new(HashMap::new()), AtomicU32::new(0)));
    let threads = [(); 3].map(|()| {
        let cache = Arc::clone(&cache);
        thread::spawn(move || {
            let (values, computed) = &*cache;
            let compute = |key| {
                computed.fetch_add(1, SeqCst);
                key * 2
            };
            if mended {
                return *values
                    .lock()
                    .unwrap()
                    .entry(7)
                    .or_insert_with(|| compute(7));
            }
            if let Some(value) = values.lock().unwrap().get(&7) {
                return *value;
            }
            let value = compute(7);
            values.lock().unwrap().insert(7, value);
            value
        })
    });
    threads
        .into_iter()
        .for_each(|it| assert_eq!(it.join().unwrap(), 14));
    assert_eq!(cache.1.load(SeqCst), 1);
}

/// The free slots of an array, as a stack without locks.
struct Free {
    /// The slot on top, in the lower half, and how often it has changed.
    top: AtomicU64,
    /// The slot below each.
    below: [AtomicU32; 3],
    taken: [AtomicBool; 3],
    /// Broken: changes are not counted, so the top looks the same when slots have come and gone.
    counts: bool,
}

impl Free {
    fn change(&self, change: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        loop {
            let old = self.top.load(SeqCst);
            let new = u64::from(change(old as u32)?);
            let count = (old >> 32) + u64::from(self.counts);
            let new = new | count << 32;
            if self.top.compare_exchange(old, new, SeqCst, SeqCst).is_ok() {
                return Some(old as u32);
            }
        }
    }

    fn pop(&self) -> Option<u32> {
        self.change(|top| Some(self.below.get(top as usize)?.load(SeqCst)))
    }

    fn push(&self, slot: u32) {
        self.change(|top| {
            self.below[slot as usize].store(top, SeqCst);
            Some(slot)
        });
    }

    fn take(&self) -> Option<u32> {
        let slot = self.pop()?;
        let taken = self.taken[slot as usize].swap(true, SeqCst);
        assert!(!taken, "slot {slot} is taken twice");
        Some(slot)
    }

    fn give_back(&self, slot: u32) {
        self.taken[slot as usize].store(false, SeqCst);
        self.push(slot);
    }
}

/// Broken: ABA.
pub fn stack(mended: bool) {
    let free = Arc::new(Free {
        top: AtomicU64::new(0),
        below: [1, 2, u32::MAX].map(AtomicU32::new),
        taken: Default::default(),
        counts: mended,
    });
    let threads = [(); 3].map(|()| {
        let free = Arc::clone(&free);
        thread::spawn(move || {
            for _ in 0..2 {
                let slots = [free.take(), free.take()];
                slots
                    .into_iter()
                    .flatten()
                    .for_each(|it| free.give_back(it));
            }
        })
    });
    threads.into_iter().for_each(|it| it.join().unwrap());
}

/// Broken: two atomics that belong together are read one after the other.
pub fn pair(mended: bool) {
    let pair = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let other = Arc::clone(&pair);
    let thread = thread::spawn(move || {
        for n in 1..=3 {
            match mended {
                true => other[0].store(n << 32 | n, SeqCst),
                false => other.iter().for_each(|half| half.store(n, SeqCst)),
            }
        }
    });
    for _ in 0..3 {
        let halves = match mended {
            true => {
                let both = pair[0].load(SeqCst);
                [both >> 32, both & 0xffff_ffff]
            }
            false => [&pair[0], &pair[1]].map(|half| half.load(SeqCst)),
        };
        assert_eq!(halves[0], halves[1]);
    }
    thread.join().unwrap();
}
