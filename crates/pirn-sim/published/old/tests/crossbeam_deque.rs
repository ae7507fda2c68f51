//! Items are stolen twice, and others never: RUSTSEC-2021-0093, mended in crossbeam-deque 0.8.1.

use crossbeam_deque::{Steal, Worker};
use pirn_sim::Sim;
use std::thread;

#[test]
fn each_item_is_popped_once() {
    published::is_found(
        "crossbeam-deque 0.8.0, RUSTSEC-2021-0093",
        Sim::new(),
        || {
            let own = Worker::new_lifo();
            let items = 70; // More than the first buffer has place for.
            (0..items).for_each(|item| own.push(item));
            let stealer = own.stealer();
            let thread = thread::spawn(move || {
                let (stolen, mut items) = (Worker::new_lifo(), Vec::new());
                loop {
                    match stealer.steal_batch_and_pop(&stolen) {
                        Steal::Success(item) => items.push(item),
                        Steal::Empty => break,
                        Steal::Retry => {}
                    }
                }
                items.extend(std::iter::from_fn(|| stolen.pop()));
                items
            });
            // Nearly all, so that the buffer shrinks, and then others into their places.
            let mut popped: Vec<_> = (0..items - 4).filter_map(|_| own.pop()).collect();
            (items..items + 10).for_each(|item| own.push(item));
            popped.extend(thread.join().unwrap());
            popped.extend(std::iter::from_fn(|| own.pop()));
            popped.sort_unstable();
            assert!(popped.into_iter().eq(0..items + 10));
        },
    );
}
