//! The recorder's rings: readers copy them while they are written and overwritten.
//!
//! The main thread writes, because loom would explore nothing otherwise: it looks for other orders
//! from a load, not from a store whose own thread has loaded the word just before.
//!
//! Two orderings can be weakened unnoticed. The Acquire of `Ring::head`: a reader of slots reads
//! the head again, in `copy`. The Acquire of the exchange in `SharedRing::push`, which orders the
//! words of two writers of one slot: to loom, stores to a word come in the order in which it runs
//! them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::sync::Arc;
use loom::thread;

use crate::check;
use crate::ring::{Ring, Slot, Words};
use crate::shared_ring::{SharedRing, SharedSlot};

/// The content of the slot with this index.
fn words(index: u64) -> Words {
    [index + 1, 7 * (index + 1)]
}

fn ring(slots: usize, most: usize) -> Arc<Ring> {
    let slots = (0..slots).map(|_| Slot::new()).collect::<Vec<_>>();
    Arc::new(Ring::new(Vec::leak(slots), most))
}

/// Copies, and checks each slot. Returns the first index and the one behind the last.
fn copy(ring: &Ring, from: u64) -> (u64, u64) {
    let mut place = [[0; 2]; 4];
    let copied = ring.copy(from, &mut place);
    for (index, found) in (copied.first..).zip(&place[..copied.count]) {
        assert_eq!(*found, words(index), "a torn or an old slot");
    }
    assert!(copied.first >= from);
    (copied.first, copied.first + copied.count as u64)
}

/// Writes events with these numbers of slots.
fn write(ring: &Ring, events: &[usize]) {
    for &slots in events {
        let first = ring.head();
        let event: Vec<_> = (first..first + slots as u64).map(words).collect();
        ring.push(&event);
    }
}

#[test]
fn a_reader_of_a_ring_sees_no_slot_that_is_overwritten() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    check(2, || {
        let ring = ring(2, 1);
        let reader = ring.clone();
        let reader = thread::spawn(move || copy(&reader, 0));
        write(&ring, &[1; 3]);
        let (first, end) = reader.join().unwrap();
        // Relaxed: loom runs one execution after the other.
        SEEN.fetch_add((end - first) as usize, Relaxed);
        assert_eq!(copy(&ring, end.min(2)), (2, 3), "the last is there");
    });
    assert!(SEEN.load(Relaxed) > 0, "the reader never saw a slot");
}

#[test]
fn an_event_of_several_slots_is_seen_whole() {
    check(2, || {
        let ring = ring(4, 2);
        let reader = ring.clone();
        let reader = thread::spawn(move || copy(&reader, 0));
        write(&ring, &[2, 1, 2]);
        let (_, end) = reader.join().unwrap();
        assert!([0, 2, 3, 5].contains(&end), "a part of an event");
        assert_eq!(copy(&ring, end), (end.max(3), 5));
    });
}

fn event(writer: u64) -> [u64; 5] {
    std::array::from_fn(|word| writer * 10 + word as u64)
}

fn read_shared(ring: &SharedRing) {
    let mut seen = 0;
    let (end, missing) = ring.for_each(0, |found| {
        assert!(found == event(1) || found == event(2), "a torn event");
        seen += 1;
    });
    assert_eq!(seen + missing, end, "each is seen or counted");
}

#[test]
fn a_reader_of_the_shared_ring_sees_whole_events() {
    check(2, || {
        let slots = (0..2).map(|_| SharedSlot::new()).collect::<Vec<_>>();
        let ring = Arc::new(SharedRing::new(Vec::leak(slots)));
        ring.push(event(1));
        let writers = [1, 2].map(|writer| {
            let ring = ring.clone();
            thread::spawn(move || ring.push(event(writer)))
        });
        read_shared(&ring);
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(ring.head(), 3);
    });
}
